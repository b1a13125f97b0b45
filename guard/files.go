package guard

import (
	"path"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode"
)

// target is a file that a redirection writes what a command prints to.
type target struct {
	path string
	add  bool
}

// redirect applies redirections: input becomes st.stdin, the files for output
// are returned.
func (c *checker) redirect(st *state, redirs []*syntax.Redirect) []target {
	var out []target
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			text := ""
			if quotedWord(r.Word) {
				text = rawHeredoc(r.Hdoc)
			} else {
				text = c.heredoc(st, r.Hdoc)
			}
			if r.Op == syntax.DashHdoc {
				text = strings.ReplaceAll("\n"+text, "\n\t", "\n")[1:]
			}
			if standardInput(r) {
				st.stdin = &text
			}
		case syntax.WordHdoc:
			text := c.word(st, r.Word) + "\n"
			st.stdin = &text
		case syntax.RdrIn:
			text := c.readFile(st, c.word(st, r.Word))
			if standardInput(r) {
				st.stdin = &text
			}
		case syntax.DplIn:
			st.stdin = nil
		case syntax.DplOut:
			w := c.word(st, r.Word)
			if r.N == nil && strings.Trim(w, "0123456789-") != "" { // >&file
				out = append(out, target{w, false})
			}
		default:
			w := c.word(st, r.Word)
			if r.N != nil && r.N.Value != "1" {
				c.writeFile(st, w, unknownValue(kindOpen, "stderr"), false)
				continue
			}
			out = append(out, target{w, r.Op == syntax.AppOut || r.Op == syntax.AppAll || r.Op == syntax.AppClob})
		}
	}
	return out
}

func standardInput(r *syntax.Redirect) bool { return r.N == nil || r.N.Value == "0" }

func quotedWord(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	for _, p := range w.Parts {
		switch x := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.Contains(x.Value, `\`) {
				return true
			}
		}
	}
	return false
}

// rawHeredoc is the body of a here-document whose delimiter was quoted.
func rawHeredoc(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			b.WriteString(strings.ReplaceAll(l.Value, placeholder, string(rune(mark))))
		}
	}
	return b.String()
}

func (c *checker) readFile(st *state, name string) string {
	if text, ok := c.files[under(st.dir, name)]; ok {
		return text
	}
	if name == "/dev/null" {
		return ""
	}
	if st.stdin != nil && (name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0") {
		return *st.stdin
	}
	return unread(name)
}

// unread stands for the contents of a file that the text does not write.
func unread(name string) string {
	if listsPaths(name) {
		return unknownValue(kindPaths, "file")
	}
	return unknownValue(kindOpen, "file")
}

// listsPaths reports whether a file's name says that it holds a list of files.
func listsPaths(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	switch filepath.Ext(base) {
	case "", ".txt", ".lst", ".list", ".out":
		return strings.Contains(base, "path") || strings.Contains(base, "file")
	}
	return false
}

// writeFile records that the text writes a file: inside .git it is an operation,
// and so is putting back a file's committed contents.
func (c *checker) writeFile(st *state, name, content string, add bool) {
	full := under(st.dir, st.tilde(name))
	if isDevice(full) || name == "" {
		return
	}
	if c.gitPath(st, full) != "" {
		c.operation("gitdir.write", []string{">", name}, nil)
		return
	}
	for kind, file := range func(y func(byte, string) bool) { unknownParts(content, y) } {
		if kind == kindBlob && c.sameFile(st, full, file) {
			c.operation("checkout.discard", []string{"git", "show", "…:" + file, ">", name}, func() bool { return c.inFresh(full) })
			return
		}
	}
	if add {
		content = c.files[full] + content
	}
	if len(content) <= maxValue && len(c.files) < 256 {
		c.files[full] = content
	} else {
		delete(c.files, full)
	}
}

// sameFile reports whether full is the file whose committed contents have the
// path file (from the root of the tree, or from the directory).
func (c *checker) sameFile(st *state, full, file string) bool {
	full = tame(full)
	return full == tame(under(st.dir, file)) || full == tame(under(c.startDir(), file)) || superqode.Within(full, tame(c.startDir())) && strings.HasSuffix(full, "/"+tame(file))
}

func (c *checker) inFresh(p string) bool {
	for root := range c.fresh {
		if superqode.Within(p, root) {
			return true
		}
	}
	return false
}

// gitPath tells why a path is protected, or "": it lies in a .git that is, or
// may be, the guarded repository's.
func (c *checker) gitPath(st *state, full string) string {
	if g := c.in.Guarded; g != "" && superqode.Within(full, g) {
		return "inside the guarded repository's git directory"
	}
	rest, root := strings.TrimPrefix(full, "/"), "/"
	for rest != "" {
		comp, after, _ := strings.Cut(rest, "/")
		if namesGitDir(comp) {
			if c.otherRoot(st, root) {
				return ""
			}
			if openPlace(strings.TrimPrefix(root, st.dir)) {
				c.undecided(full, "which repository this belongs to")
				return ""
			}
			return "inside .git"
		}
		root, rest = path.Join(root, comp), after
	}
	return ""
}

// openPlace reports whether a path goes through an unknown word. The parts that
// stand for an unknown starting directory do not count.
func openPlace(p string) bool {
	for kind := range func(y func(byte, string) bool) { unknownParts(p, y) } {
		if kind != kindPlace {
			return true
		}
	}
	return false
}

// namesGitDir reports whether one component of a path, perhaps a glob, is .git.
func namesGitDir(comp string) bool {
	if strings.EqualFold(comp, ".git") {
		return true
	}
	if !strings.HasPrefix(comp, ".") || !strings.ContainsAny(comp, "*?[") {
		return false // "*" does not match a leading dot
	}
	ok, err := path.Match(strings.ReplaceAll(comp, "[!", "[^"), ".git")
	return ok && err == nil
}

// otherRoot reports whether the repository at root is clearly another one.
func (c *checker) otherRoot(st *state, root string) bool {
	if c.inFresh(root) {
		return true
	}
	if c.in.Guarded != "" && isKnown(root) && c.asks() != nil {
		common, ok := c.in.Resolver.Repository(c.ctx, At{Dir: root, Env: st.gitEnv()})
		return ok && common != c.in.Guarded
	}
	// A scratch repository under /tmp, while the work is not there.
	return !strings.ContainsAny(root, "*?[") && strings.HasPrefix(root, "/tmp/") && !superqode.Within(c.startDir(), root) && !superqode.Within(root, c.startDir())
}

// wholeTree reports whether deleting or moving p takes the repository along: it
// is the starting directory or above it.
func (c *checker) wholeTree(p string) bool {
	p = strings.TrimSuffix(p, "/")
	if p == "" {
		p = "/"
	}
	return superqode.Within(c.startDir(), p)
}

// isDevice reports whether a path is one of a device, where nothing that is written
// stays. /dev/shm holds files.
func isDevice(path string) bool {
	return strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}
