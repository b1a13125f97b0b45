package guard

import (
	"path"
	"slices"
	"strings"
)

// writers checks the tools that write, move or delete files: inside .git, or on
// files that git listed.
func (c *checker) writers(st *state, base string, args []string) {
	switch base {
	case "rm", "unlink", "shred", "truncate", "trash", "rmdir":
		c.remove(st, base, args)
	case "Remove-Item", "ri", "rd", "del", "erase": // PowerShell and cmd
		c.protect(st, base, args)
	case "mkdir", "touch", "chmod", "chown", "chgrp", "chattr", "setfacl":
		c.protect(st, base, operands(args, "m= mode= t= d= r= reference= date="))
	case "mv":
		ops := operands(args, "t= target-directory= S= suffix=")
		for _, p := range ops {
			if c.wholeTree(under(st.dir, p)) {
				c.operation("gitdir.write", append([]string{base}, args...), nil)
				return
			}
			if c.linkedWorktree(st, p) {
				c.operation("worktree.move", append([]string{base}, args...), nil)
				return
			}
		}
		c.protect(st, base, ops)
		c.copyFile(st, base, ops)
	case "cp", "ln", "install", "rsync", "scp", "ditto":
		c.copies(st, base, args)
	case "dd":
		for _, a := range args {
			if to, ok := strings.CutPrefix(a, "of="); ok {
				c.writeFile(st, to, inputOf(st), false)
			}
		}
	case "sed", "gsed", "perl", "ruby", "ex", "ed", "vim", "vi", "nvim", "awk", "gawk", "patch", "sort":
		c.editors(st, base, args)
	case "curl", "wget", "gcc", "cc", "jq":
		p := newSpec("o/output= O?").parse(args, false)
		if base == "wget" {
			p = newSpec("O/output-document= o/output-file= P/directory-prefix=").parse(args, false)
		}
		for _, v := range p.values {
			c.protect(st, base, v)
		}
	case "tar", "bsdtar":
		c.tar(st, base, args)
	case "sqlite3", "psql", "mysql":
		c.database(st, base, args)
	case "unzip":
		c.unzip(st, args)
	}
}

// linkedWorktree reports whether a path is the root of a linked worktree of this
// repository.
func (c *checker) linkedWorktree(st *state, p string) bool {
	full := under(st.dir, st.tilde(p))
	r, ok := c.asks().(worktreeResolver)
	if !ok || !isKnown(full) || r.LinkedWorktree(c.ctx, full) != Yes {
		return false
	}
	there, ok := c.in.Resolver.Repository(c.ctx, At{Dir: full})
	here := c.in.Guarded
	if here == "" && ok {
		here, ok = c.in.Resolver.Repository(c.ctx, At{Dir: c.startDir()})
	}
	return ok && here == there
}

func inputOf(st *state) string {
	if st.stdin == nil {
		return unknownValue(kindOpen, "stdin")
	}
	return *st.stdin
}

func operands(args []string, withValue string) []string {
	p := newSpec(withValue).parse(args, false)
	return slices.Concat(p.args, p.values["t"], p.values["target-directory"])
}

// protect records a write into .git.
func (c *checker) protect(st *state, base string, paths []string) {
	for _, p := range paths {
		if p != "" && c.gitPath(st, under(st.dir, st.tilde(p))) != "" {
			c.operation("gitdir.write", []string{base, p}, nil)
			return
		}
	}
}

func (c *checker) remove(st *state, base string, args []string) {
	p := newSpec("r/recursive R f/force i d/dir v/verbose s/size= n= u/remove z/zero one-file-system no-preserve-root preserve-root interactive?").parse(args, false)
	words := append([]string{base}, args...)
	for _, a := range p.args {
		kind := kindOf(a)
		if kind == kindUntracked {
			c.operation("clean", words, func() bool { return c.inFresh(st.dir) })
			return
		}
		if kind == kindTracked && base != "rmdir" {
			c.operation("rm.force", words, func() bool { return c.inFresh(st.dir) })
			return
		}
		if base == "rm" && p.has("recursive", "R") && c.wholeTree(under(st.dir, a)) || a == unknownValue(kindPaths, foundAll) && base != "rmdir" {
			c.operation("gitdir.write", words, nil)
			return
		}
		if (p.has("recursive", "R") || base == "rmdir") && c.linkedWorktree(st, a) {
			c.operation("worktree.remove", words, func() bool { return c.inFresh(under(st.dir, a)) })
			return
		}
	}
	c.protect(st, base, p.args)
}

func (c *checker) copies(st *state, base string, args []string) {
	spec := "t/target-directory= S/suffix="
	switch base {
	case "rsync":
		spec = "e/rsh= f/filter= exclude= include= exclude-from= include-from= remove-source-files delete del delete-before delete-during delete-after delete-delay delete-excluded n/dry-run"
	case "install":
		spec += " m/mode= o/owner= g/group="
	case "scp":
		spec = "i= P= o= F= c= l= S="
	}
	p := newSpec(spec).parse(args, false)
	dest := p.values["target-directory"]
	if len(dest) == 0 && len(p.args) > 1 {
		dest = p.args[len(p.args)-1:]
	}
	c.protect(st, base, dest)
	if p.has("remove-source-files") {
		c.protect(st, base, p.args)
	}
	if base == "rsync" && len(dest) == 1 && p.has("delete", "del", "delete-before", "delete-during", "delete-after", "delete-delay", "delete-excluded") && !p.has("dry-run") &&
		!strings.Contains(strings.Join(append(p.values["exclude"], p.values["filter"]...), " "), ".git") && c.wholeTree(under(st.dir, st.tilde(dest[0]))) {
		c.operation("gitdir.write", append([]string{base}, args...), nil) // what is not in the source goes, .git too
	}
	if base == "cp" && len(dest) == 1 && len(p.args) > 1 { // cp hooks/* . with a source named .git
		for _, src := range p.args[:len(p.args)-1] {
			if namesGitDir(path.Base(src)) && strings.HasSuffix(dest[0], "/") || namesGitDir(path.Base(src)) && dest[0] == "." {
				c.protect(st, base, []string{path.Join(dest[0], ".git")})
			}
		}
	}
	c.copyFile(st, base, p.args)
}

// copyFile carries known contents along.
func (c *checker) copyFile(st *state, base string, ops []string) {
	if len(ops) != 2 || base != "cp" && base != "mv" && base != "install" && base != "ln" {
		return
	}
	if _, ok := gitProgram(ops[0]); ok || isShell(path.Base(ops[0])) {
		c.renamed[under(st.dir, ops[1])] = ops[0]
	}
	if text, ok := c.files[under(st.dir, ops[0])]; ok {
		c.writeFile(st, ops[1], text, false)
	}
}

// editors are the tools that change files in place when told so.
func (c *checker) editors(st *state, base string, args []string) {
	inPlace := base == "ex" || base == "ed"
	var files []string
	if strings.Contains(" ex ed vim vi nvim ", " "+base+" ") {
		c.editorCommands(st, base, args)
	}
	if base == "patch" {
		c.patch(st, args)
		return
	}
	for i, a := range args {
		switch {
		case base == "sort" && (a == "-o" || a == "--output") && i+1 < len(args):
			c.protect(st, base, args[i+1:i+2])
		case base == "sort" && strings.HasPrefix(a, "--output="):
			c.protect(st, base, []string{a[len("--output="):]})
		case strings.HasPrefix(a, "--in-place") || a == "-i" || a == "inplace" || len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "i") && base != "vim" && base != "awk":
			inPlace = true
		case !strings.HasPrefix(a, "-"):
			files = append(files, a)
		}
	}
	if strings.HasPrefix(base, "vi") || base == "nvim" {
		inPlace = slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"wq", "wq!", "x", "w", "w!", "xa", "wqa"}, strings.TrimLeft(a, "+:"))
		})
	}
	if inPlace && base != "sort" {
		c.protect(st, base, files)
	}
}

const patchOptions = `b/backup c/context d/directory= D/ifdef= e/ed E/remove-empty-files f/force F/fuzz= g/get= i/input= l/ignore-whitespace n/normal N/forward
 o/output= p/strip= r/reject-file= R/reverse s/quiet silent t/batch T/set-time u/unified v/version V/version-control= x/debug= Y/basename-prefix= z/suffix=
 Z/set-utc dry-run posix merge? binary follow-symlinks no-backup-if-mismatch reject-format= quoting-style= read-only= verbose`

// patch is patch(1): with -R, or with a patch that was made backwards, it takes
// changes away.
func (c *checker) patch(st *state, args []string) {
	p := newSpec(patchOptions).parse(args, false)
	content := inputOf(st)
	if in := p.last("input"); in != "" {
		content = c.readFile(st, in)
	} else if len(p.args) > 1 {
		content = c.readFile(st, p.args[1])
	}
	if kind := kindOf(content); !p.has("dry-run") && (p.has("reverse") && kind == kindDiff || !p.has("reverse") && kind == kindReverse) {
		c.operation("apply.reverse", append([]string{"patch"}, args...), func() bool { return c.inFresh(st.dir) })
		return
	}
	if !p.has("dry-run") && len(p.args) > 0 {
		c.protect(st, "patch", p.args[:1])
	}
	c.protect(st, "patch", p.values["output"])
}

// editorCommands looks for "!command" in what an editor is told to do.
func (c *checker) editorCommands(st *state, base string, args []string) {
	var told []string
	for i, a := range args {
		switch {
		case (a == "-c" || a == "--cmd" || a == "-sc" || a == "-ec") && i+1 < len(args):
			told = append(told, args[i+1])
		case strings.HasPrefix(a, "+"):
			told = append(told, a[1:])
		}
	}
	if st.stdin != nil {
		told = append(told, strings.Split(*st.stdin, "\n")...)
	}
	for _, t := range told {
		if line, ok := strings.CutPrefix(strings.TrimLeft(t, ": %"), "!"); ok {
			c.nested(st, line, base+" runs it")
		}
	}
}

// database follows the commands that a database's client hands to a shell.
func (c *checker) database(st *state, base string, args []string) {
	told := slices.Clone(args)
	if st.stdin != nil && isKnown(*st.stdin) {
		told = append(told, strings.Split(*st.stdin, "\n")...)
	}
	for _, t := range told {
		for _, prefix := range []string{".shell ", ".system ", `\! `, "system "} {
			if line, ok := strings.CutPrefix(strings.TrimSpace(t), prefix); ok {
				c.nested(st, line, base+" runs it")
			}
		}
	}
}
