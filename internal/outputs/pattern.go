package outputs

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// pattern is one of the patterns.
type pattern struct {
	text string // as it was given
	root string // name of the folder that it counts from
	glob string // slash-separated, relative to the folder
	all  bool   // what is below a folder that it names counts, too
	only bool   // and nothing else does
	seen bool   // something matched
}

// rootNames maps the names that a pattern may begin with to the folders.
func rootNames() map[string]string {
	return map[string]string{"WORKSPACE": RootWorkspace, "OUTPUT_DIR": RootOutput, "ARTIFACT_DIR": RootArtifacts}
}

// parsePattern checks a pattern. The error wraps superqode.ErrUsage.
func parsePattern(written string, roots Roots) (*pattern, error) {
	p := &pattern{text: written, root: RootWorkspace}
	fail := func(why string) (*pattern, error) {
		return nil, superqode.Errorf(superqode.ErrUsage, "output pattern %s %s", text.Printable(written), why)
	}
	glob := written
	if strings.HasPrefix(glob, "$") {
		name, rest, ok := variable(glob)
		root, known := rootNames()[strings.TrimPrefix(name, "SUPERQODE_")]
		if !ok || !known {
			return fail("begins with a variable that is none of $WORKSPACE, $OUTPUT_DIR and $ARTIFACT_DIR")
		}
		p.root, glob = root, strings.TrimLeft(rest, "/")
		if glob == "" {
			glob = "."
		}
	}
	if filepath.IsAbs(glob) {
		if p.root, glob = roots.relative(glob); glob == "" {
			return fail("is absolute and in none of the session's folders")
		}
	}
	switch {
	case glob == "" || strings.ContainsRune(glob, 0):
		return fail("is empty or holds a NUL byte")
	case !doublestar.ValidatePattern(glob):
		return fail("is not a pattern")
	}
	slash := strings.HasSuffix(glob, "/")
	glob = strings.TrimRight(glob, "/")
	if slices.Contains(strings.Split(glob, "/"), "..") {
		return fail("leads out of its folder")
	}
	p.glob = path.Clean(glob)
	p.only = slash && p.glob != "."
	p.all = slash || !strings.ContainsAny(p.glob, `*?[{\`)
	return p, nil
}

// variable splits $NAME/rest and ${NAME}/rest.
func variable(s string) (name, rest string, ok bool) {
	s = s[1:]
	if strings.HasPrefix(s, "{") {
		name, rest, ok = strings.Cut(s[1:], "}")
		return name, rest, ok && (rest == "" || rest[0] == '/')
	}
	name, rest, cut := strings.Cut(s, "/")
	if cut {
		rest = "/" + rest
	}
	return name, rest, name != ""
}

// match reports whether a file at rel is asked for.
func (p *pattern) match(rel string) bool {
	if !p.only && doublestar.MatchUnvalidated(p.glob, rel) {
		return true
	}
	if !p.all {
		return false
	}
	if p.glob == "." {
		return true
	}
	for d := path.Dir(rel); d != "."; d = path.Dir(d) {
		if doublestar.MatchUnvalidated(p.glob, d) {
			return true
		}
	}
	return false
}

// base is the folder that contains all matches.
func (p *pattern) base() string {
	if p.all && !strings.ContainsAny(p.glob, `*?[{\`) {
		return p.glob
	}
	base, _ := doublestar.SplitPattern(p.glob)
	return base
}

// names reports whether the pattern itself names a folder called name.
func (p *pattern) names(name string) bool {
	return slices.Contains(strings.Split(p.glob, "/"), name)
}
