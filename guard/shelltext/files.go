package shelltext

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// readFile is the contents of a file: what the text wrote, or open.
func (r *reader) readFile(st *state, name string) string {
	text, ok := r.Files[st.path(name)]
	switch {
	case ok:
		return text
	case name == "/dev/null":
		return ""
	case cmdline.In("- /dev/stdin /dev/fd/0 /proc/self/fd/0", name):
		return st.input()
	}
	return open("file")
}

// writeFile records that the text writes a file: inside .git it is an operation,
// and so is putting back a file's committed contents.
func (r *reader) writeFile(st *state, name, content string, add bool) {
	full, content := st.path(name), noZeros(content)
	if guard.IsDevice(full) || name == "" {
		return
	}
	if r.protect(st, ">", name) {
		return
	}
	for kind, file := range cmdline.Parts(content) {
		if kind == cmdline.Blob && r.sameFile(st, full, file) {
			r.Operation("checkout.discard", []string{"git", "show", "…:" + file, ">", name},
				func() bool { return r.Fresh(full) })
			return
		}
	}
	if add {
		content = r.Files[full] + content
	}
	if len(content) <= maxValue && len(r.Files) < 256 {
		r.Files[full] = content
	} else {
		delete(r.Files, full)
	}
}

// sameFile reports whether full is the file whose committed contents have the
// path file (from the root of the tree, or from the directory).
func (r *reader) sameFile(st *state, full, file string) bool {
	full = cmdline.Tame(full)
	start := cmdline.Tame(r.Start())
	return full == cmdline.Tame(cmdline.Under(st.dir, file)) || superqode.Within(full, start) &&
		strings.HasSuffix(full, "/"+cmdline.Tame(file))
}

// protect records a write into .git, and reports whether it is one.
func (r *reader) protect(st *state, base string, paths ...string) bool {
	for _, p := range paths {
		if p != "" && r.Protects(st.place(), st.path(p)) {
			r.Operation("gitdir.write", []string{base, p}, nil)
			return true
		}
	}
	return false
}

// writer describes programs that write, move or delete files: their options, which
// operands they write, and the options whose values they write.
type writer struct {
	names, options string
	operands       operands
	values         string // options
	only           string // the operands are written only with one of these options
}

type operands int

const (
	noOperand operands = iota
	allOperands
	lastOperand
	removed // all, with what is in them
)

var writers = []writer{
	{"rm unlink shred truncate trash rmdir", "r/recursive R s/size= n=", removed, "", ""},
	{"mv", "t/target-directory= S/suffix=", removed, "target-directory", ""},
	{"mkdir touch chmod chown chgrp chattr setfacl", "m/mode= t= d/date= r/reference=", allOperands, "", ""},
	{"Remove-Item ri rd del erase", "", allOperands, "", ""}, // PowerShell and cmd
	{"cp ln ditto scp", "t/target-directory= S/suffix= i= P= F= c= l=", lastOperand, "target-directory", ""},
	{"install", "t/target-directory= S/suffix= m/mode= o/owner= g/group=", lastOperand, "target-directory", ""},
	{"rsync", "e/rsh= f/filter= exclude= include= exclude-from= include-from= remove-source-files", lastOperand, "",
		""},
	{"sed gsed", "e/expression= f/file= i/in-place? l=", allOperands, "", "in-place"},
	{"perl", "i? e= E= l? 0? F? M? m?", allOperands, "", "i"},
	{"ruby", "i? e= r= I=", allOperands, "", "i"},
	{"awk gawk", "i= F= v= f=", allOperands, "", "i"},
	{"ed ex", "", allOperands, "", ""},
	{"vim vi nvim", "c= cmd=", allOperands, "", "c"},
	{"sort", "o/output= t= k= T= S=", noOperand, "output", ""},
	{"curl gcc cc jq", "o/output= O?", noOperand, "output", ""},
	{"wget", "O/output-document= o/output-file= P/directory-prefix=", noOperand,
		"output-document output-file directory-prefix", ""},
	{"tar bsdtar", "C/directory= f/file= x/extract get", noOperand, "directory", "extract get"},
	{"unzip", "d= x= P=", noOperand, "d", ""},
	{"patch", "i/input= o/output= p/strip= d/directory= R/reverse dry-run", allOperands, "output", ""},
}

// writers checks the programs that write, move or delete files: inside .git, or on
// files that git listed.
func (c *command) writers() {
	st, args := c.st, c.args
	if c.name == "dd" {
		for _, a := range args {
			if to, ok := strings.CutPrefix(a, "of="); ok {
				c.writeFile(st, to, st.input(), false)
			}
		}
	}
	i := slices.IndexFunc(writers, func(w writer) bool { return cmdline.In(w.names, c.name) })
	if i < 0 {
		return
	}
	w := &writers[i]
	if strings.HasSuffix(c.name, "tar") && len(args) > 0 { // "tar xf"
		args = append([]string{"-" + strings.TrimPrefix(args[0], "-")}, args[1:]...)
	}
	p := cmdline.Parse(w.options, args)
	if w.only != "" && !p.Has(strings.Fields(w.only)...) || w.operands == removed && c.remove(p) {
		return
	}
	if c.name == "patch" {
		c.patch(p)
	}
	ops := p.Args
	switch {
	case cmdline.In("sed gsed awk gawk", c.name) && !p.Has("expression", "file", "f"): // the first one is the script
		ops = ops[min(1, len(ops)):]
	case w.operands == noOperand:
		ops = nil
	case w.operands == lastOperand && !p.Has("target-directory", "remove-source-files") && len(ops) > 0:
		ops = ops[len(ops)-1:]
	}
	for name := range strings.FieldsSeq(w.values) {
		ops = append(ops, p.Values[name]...)
	}
	if c.protect(st, c.name, ops...) || w.operands != lastOperand && c.name != "mv" || len(p.Args) < 2 {
		return
	}
	dest := last(p.Args)
	for _, src := range p.Args[:len(p.Args)-1] { // cp -r backup/.git .
		if guard.NamesGitDir(path.Base(src)) && (strings.HasSuffix(dest, "/") || dest == ".") {
			c.protect(st, c.name, path.Join(dest, ".git"))
		}
	}
	if _, git := guard.Program(p.Args[0]); git && c.name != "mv" {
		c.writeFile(st, dest, `exec git "$@"`, false) // another name of git
	} else if text, ok := c.Files[st.path(p.Args[0])]; ok && len(p.Args) == 2 {
		c.writeFile(st, dest, text, false)
	}
}

// remove is rm and its kin, and mv. It reports whether it has decided.
func (c *command) remove(p *cmdline.Parsed) bool {
	moves := c.name == "mv"
	whole := moves || p.Has("recursive", "R")
	for _, a := range p.Args {
		full := c.st.path(a)
		switch kind := cmdline.KindOf(a); {
		case kind == cmdline.Untracked && !moves:
			c.Operation("clean", c.line, func() bool { return c.Fresh(c.st.dir) })
		case kind == cmdline.Tracked && !moves && c.name != "rmdir":
			c.Operation("rm.force", c.line, func() bool { return c.Fresh(c.st.dir) })
		case whole && c.wholeTree(full), a == cmdline.Open(cmdline.Paths, allFiles) && c.name != "rmdir":
			c.Operation("gitdir.write", c.line, nil)
		case (whole || c.name == "rmdir") && c.LinkedWorktree(full):
			op := guard.Operation("worktree.remove")
			if moves {
				op = "worktree.move"
			}
			c.Operation(op, c.line, func() bool { return c.Fresh(full) })
		default:
			continue
		}
		return true
	}
	return false
}

// patch is patch(1): with -R, or with a patch that was made backwards, it takes
// changes away.
func (c *command) patch(p *cmdline.Parsed) {
	content := c.st.input()
	if files := append(p.Values["input"], p.Args[min(1, len(p.Args)):]...); len(files) > 0 {
		content = c.readFile(c.st, files[0])
	}
	kind := cmdline.KindOf(content)
	if !p.Has("dry-run") && (p.Has("reverse") && kind == cmdline.Diff || !p.Has("reverse") && kind == cmdline.Reverse) {
		c.Operation("apply.reverse", c.line, func() bool { return c.Fresh(c.st.dir) })
	}
}
