package linked

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// maxAttributes is the size from which Create does not read an attributes file:
// it then counts as naming every path. (git ignores those above 100 MB.)
const maxAttributes = 1 << 20

// attributes answers which paths git may convert on the way between work tree
// and object database. It errs on the safe side: a path that it calls raw or
// plain is; any other path is read instead of trusted. That allows simple
// matching: a pattern's last component, in lower case, against the path's last
// component.
type attributes struct {
	in  matcher // what may change when it is added
	out matcher // what may change when it is checked out
	eol bool    // text files are checked out with CRLF
}

// raw reports whether git stores the file's bytes as they are: no text, eol,
// crlf, ident, filter or working-tree-encoding attribute can be set.
func (a *attributes) raw(p string) bool { return !a.in.match(p) }

// plain reports whether git writes the blob's bytes as they are.
func (a *attributes) plain(p string) bool { return !a.out.match(p) }

// matcher is a set of paths that may contain more than necessary.
type matcher struct {
	all   bool // every path
	rules []attributeRules
}

// attributeRules are the patterns of the attributes files of one folder.
type attributeRules struct {
	dir   string // "" or "a/b/"
	names map[string]bool
	exts  map[string]bool // of patterns "*.c": ".c"
	globs []string
}

// readAttributes reads every place that can have attributes for the origin's
// files.
func readAttributes(
	ctx context.Context, repo *git.Repo, conf *git.Config, origin *snapshot.Snapshot, x *git.Index,
) (*attributes, error) {
	crlf := conf.Bool("core.autocrlf", false)
	a := &attributes{eol: crlf || strings.EqualFold(conf.Get("core.eol"), "crlf")}
	a.in.all = crlf || strings.EqualFold(conf.Get("core.autocrlf"), "input") || conf.Get("attr.tree") != ""
	a.out.all = crlf || conf.Get("attr.tree") != ""
	if a.out.all {
		return a, nil
	}
	global, err := globalFile(ctx, repo, "core.attributesfile", "attributes")
	if err != nil {
		return nil, err
	}
	prefix := filepath.Dir(filepath.Dir(repo.Bin))
	for _, p := range []string{
		global, filepath.Join(repo.CommonDir, "info/attributes"), filepath.Join(prefix, "etc/gitattributes"),
		"/etc/gitattributes", "/usr/local/etc/gitattributes", "/opt/homebrew/etc/gitattributes",
	} {
		a.file("", p)
	}
	for i := range origin.Entries {
		e := &origin.Entries[i]
		if dir, ok := attributesDir(e.Path); ok && e.Kind == snapshot.File {
			a.file(dir, e.Path.In(repo.TopLevel))
		} else if ok {
			a.everything(dir)
		}
	}
	for i := range x.Len() { // git takes from the index what the work tree lacks
		if dir, ok := attributesDir(x.Path(i)); ok && origin.Find(x.Path(i)) == nil {
			a.everything(dir)
		}
	}
	return a, nil
}

// attributesDir returns the folder, "" or with a slash at its end, that an
// attributes file applies to.
func attributesDir(p superqode.RelPath) (string, bool) {
	dir, ok := strings.CutSuffix(string(p), ".gitattributes")
	return dir, ok && (dir == "" || dir[len(dir)-1] == '/')
}

// globalFile returns the user's own file of attributes or ignore patterns, which
// key names; git reads a relative path from the work tree's root.
func globalFile(ctx context.Context, repo *git.Repo, key, name string) (string, error) {
	file, ok, err := repo.UserPath(ctx, key)
	if !ok {
		return repo.UserDefault(name), err
	}
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(repo.TopLevel, file)
	}
	return file, nil
}

// file adds the rules of one attributes file; a missing one has none.
func (a *attributes) file(dir, name string) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		a.everything(dir)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAttributes+1))
	if err != nil || len(data) > maxAttributes {
		a.everything(dir)
		return
	}
	a.parse(dir, string(data))
}

// everything counts every path below dir as converted.
func (a *attributes) everything(dir string) {
	a.in.everything(dir)
	a.out.everything(dir)
}

func (m *matcher) everything(dir string) {
	m.all = m.all || dir == ""
	m.rules = append(m.rules, attributeRules{dir: dir, globs: []string{"*"}})
}

func (a *attributes) parse(dir, data string) {
	in, out := newRules(dir), newRules(dir)
	for line := range strings.SplitSeq(data, "\n") {
		line = strings.TrimLeft(line, " \t\r\ufeff")
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if line[0] == '"' || strings.HasPrefix(line, "[attr]") { // a quoted pattern, or a macro under any name
			words[0] = "*"
			words = append(words, strings.Fields(line)...)
		}
		onAdd, onCheckout := a.converts(words[1:])
		if onAdd {
			in.add(words[0])
		}
		if onCheckout {
			out.add(words[0])
		}
	}
	a.in.join(in)
	a.out.join(out)
}

// converts reports whether one of the attributes can change contents on the way
// in and on the way out. Unset (-text) and unspecified (!text) ones do not.
func (a *attributes) converts(attrs []string) (in, out bool) {
	for _, w := range attrs {
		switch name, value, _ := strings.Cut(w, "="); name {
		case "ident", "filter", "working-tree-encoding":
			return true, true
		case "text", "crlf", "eol":
			in, out = true, out || a.eol || name == "eol" && value != "lf"
		}
	}
	return in, out
}

func newRules(dir string) *attributeRules {
	return &attributeRules{dir: dir, names: map[string]bool{}, exts: map[string]bool{}}
}

func (m *matcher) join(r *attributeRules) {
	if len(r.names)+len(r.exts)+len(r.globs) > 0 {
		m.rules = append(m.rules, *r)
		m.all = m.all || r.dir == "" && len(r.globs) > 0 && r.globs[0] == "*"
	}
}

func (r *attributeRules) add(pattern string) {
	last := strings.ToLower(pattern[strings.LastIndexByte(pattern, '/')+1:])
	switch {
	case last == "" || strings.Trim(last, "*") == "" || strings.ContainsAny(last, `?[\`):
		r.globs = append([]string{"*"}, r.globs...) // first, where join looks
	case !strings.Contains(last, "*"):
		r.names[last] = true
	case strings.HasPrefix(last, "*.") && !strings.Contains(last[1:], "*"):
		r.exts[last[1:]] = true
	default:
		r.globs = append(r.globs, last)
	}
}

func (m *matcher) match(p string) bool {
	if m.all || len(m.rules) == 0 {
		return m.all
	}
	base := strings.ToLower(path.Base(p))
	for i := range m.rules {
		if r := &m.rules[i]; strings.HasPrefix(p, r.dir) && r.match(base) {
			return true
		}
	}
	return false
}

func (r *attributeRules) match(base string) bool {
	if r.names[base] {
		return true
	}
	for i := strings.IndexByte(base, '.'); i >= 0; {
		if r.exts[base[i:]] {
			return true
		}
		next := strings.IndexByte(base[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for _, g := range r.globs {
		if ok, err := path.Match(g, base); ok || err != nil {
			return true
		}
	}
	return false
}
