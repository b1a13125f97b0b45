package outputs

import (
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/glob"
	"github.com/seed-2d964004/superqode/internal/text"
)

// pattern is one of the patterns.
type pattern struct {
	glob.Pattern        // relative to the folder
	text         string // as it was given
	root         string // name of the folder that it counts from
	seen         bool   // something matched
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
	rel := written
	if strings.HasPrefix(rel, "$") {
		name, rest, ok := variable(rel)
		root, known := rootNames()[strings.TrimPrefix(name, "SUPERQODE_")]
		if !ok || !known {
			return fail("begins with a variable that is none of $WORKSPACE, $OUTPUT_DIR and $ARTIFACT_DIR")
		}
		p.root, rel = root, strings.TrimLeft(rest, "/")
		if rel == "" {
			rel = "."
		}
	}
	if filepath.IsAbs(rel) {
		if p.root, rel = roots.relative(rel); rel == "" {
			return fail("is absolute and in none of the session's folders")
		}
	}
	var err error
	if p.Pattern, err = glob.Parse(rel); err != nil {
		return fail(err.Error())
	}
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
