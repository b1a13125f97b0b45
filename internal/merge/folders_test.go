package merge

import (
	"maps"
	"testing"

	"github.com/seed-2d964004/superqode"
)

func TestFolderMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		renames map[superqode.RelPath]superqode.RelPath
		full    superqode.RelPath // a folder that something is left in
		want    map[superqode.RelPath]string
	}{
		"one":                {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "e/a", "d/b": "e/c"}, want: map[superqode.RelPath]string{"d": "e"}},
		"not empty":          {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "e/a"}, full: "d"},
		"within a folder":    {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "d/b"}},
		"most":               {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "e/a", "d/b": "e/b", "d/c": "i/c"}, want: map[superqode.RelPath]string{"d": "e"}},
		"as many":            {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "e/a", "d/b": "i/b"}},
		"up":                 {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "a"}, want: map[superqode.RelPath]string{"d": ""}},
		"down":               {renames: map[superqode.RelPath]superqode.RelPath{"a": "d/a"}},
		"with those above":   {renames: map[superqode.RelPath]superqode.RelPath{"a/d/s/f": "b/d/s/f"}, want: map[superqode.RelPath]string{"a": "b", "a/d": "b/d", "a/d/s": "b/d/s"}},
		"the last name only": {renames: map[superqode.RelPath]superqode.RelPath{"a/d/f": "a/e/f"}, want: map[superqode.RelPath]string{"a/d": "a/e"}},
		"names above differ": {renames: map[superqode.RelPath]superqode.RelPath{"a/d/f": "b/e/f"}, want: map[superqode.RelPath]string{"a/d": "b/e"}},
		"a name's beginning": {renames: map[superqode.RelPath]superqode.RelPath{"d/a": "dd/a"}, want: map[superqode.RelPath]string{"d": "dd"}},
		"all of it up":       {renames: map[superqode.RelPath]superqode.RelPath{"a/d/f": "d/f"}, want: map[superqode.RelPath]string{"a": "", "a/d": "d"}},
	} {
		got := FolderMoves(c.renames, func(dir superqode.RelPath) bool { return dir != c.full })
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAlong(t *testing.T) {
	t.Parallel()
	moves := map[superqode.RelPath]string{"d": "e", "d/s": "x/y", "up": ""}
	for p, want := range map[superqode.RelPath]superqode.RelPath{"d/f": "e/f", "d/s/f": "x/y/f", "d/t/f": "e/t/f", "up/f": "f", "up/g/f": "g/f", "dd/f": "", "d": "", "f": ""} {
		if got, ok := Along(moves, p); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", p, got, ok, want)
		}
	}
}
