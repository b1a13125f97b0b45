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
	case "mkdir", "touch", "chmod", "chown", "chgrp", "chattr", "setfacl":
		c.protect(st, base, operands(args, "m= mode= t= d= r= reference= date="))
	case "mv":
		ops := operands(args, "t= target-directory= S= suffix=")
		for _, p := range ops {
			if c.wholeTree(under(st.dir, p)) {
				c.operation("gitdir.write", append([]string{base}, args...), nil)
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
		c.protect(st, base, newSpec("d=").parse(args, false).values["d"])
	}
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
		if base == "rm" && p.has("recursive", "R") && c.wholeTree(under(st.dir, a)) {
			c.operation("gitdir.write", words, nil)
			return
		}
	}
	c.protect(st, base, p.args)
}

func (c *checker) copies(st *state, base string, args []string) {
	spec := "t/target-directory= S/suffix="
	switch base {
	case "rsync":
		spec = "e/rsh= f/filter= exclude= include= exclude-from= include-from= remove-source-files delete"
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
	for i, a := range args {
		switch {
		case base == "patch" && (a == "-R" || a == "--reverse") && kindOf(inputOf(st)) == kindDiff:
			c.operation("apply.reverse", append([]string{base}, args...), func() bool { return c.inFresh(st.dir) })
			return
		case base == "sort" && (a == "-o" || a == "--output") && i+1 < len(args):
			c.protect(st, base, args[i+1:i+2])
		case strings.HasPrefix(a, "--in-place") || a == "-i" || a == "inplace" || len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "i") && base != "vim" && base != "awk":
			inPlace = true
		case !strings.HasPrefix(a, "-"):
			files = append(files, a)
		}
	}
	if inPlace && base != "sort" && base != "patch" {
		c.protect(st, base, files)
	}
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

func (c *checker) tar(st *state, base string, args []string) {
	extract, to := false, ""
	content := inputOf(st)
	for i, a := range args {
		if text, ok := c.files[under(st.dir, st.tilde(a))]; ok {
			content = text
		}
		switch {
		case a == "-C" || a == "--directory":
			if i+1 < len(args) {
				to = args[i+1]
			}
		case strings.HasPrefix(a, "--directory="):
			to = a[len("--directory="):]
		case a == "--extract" || a == "--get":
			extract = true
		case (i == 0 || strings.HasPrefix(a, "-")) && !strings.HasPrefix(a, "--"):
			extract = extract || strings.Contains(a, "x")
		}
	}
	if !extract {
		return
	}
	c.protect(st, base, []string{to})
	dir := under(st.dir, st.tilde(to))
	if kindOf(content) == kindArchive && (dir == st.dir || dir == c.startDir()) {
		c.operation("checkout.discard", append([]string{"git", "archive", "|", base}, args...), func() bool { return c.inFresh(dir) })
	}
}
