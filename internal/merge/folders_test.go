package merge

import (
	"maps"
	"testing"
)

func TestFolderMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		renames map[string]string
		full    string // a folder that something is left in
		want    map[string]string
	}{
		"one":                {renames: map[string]string{"d/a": "e/a", "d/b": "e/c"}, want: map[string]string{"d": "e"}},
		"not empty":          {renames: map[string]string{"d/a": "e/a"}, full: "d"},
		"within a folder":    {renames: map[string]string{"d/a": "d/b"}},
		"most":               {renames: map[string]string{"d/a": "e/a", "d/b": "e/b", "d/c": "i/c"}, want: map[string]string{"d": "e"}},
		"as many":            {renames: map[string]string{"d/a": "e/a", "d/b": "i/b"}},
		"up":                 {renames: map[string]string{"d/a": "a"}, want: map[string]string{"d": ""}},
		"down":               {renames: map[string]string{"a": "d/a"}},
		"with those above":   {renames: map[string]string{"a/d/s/f": "b/d/s/f"}, want: map[string]string{"a": "b", "a/d": "b/d", "a/d/s": "b/d/s"}},
		"the last name only": {renames: map[string]string{"a/d/f": "a/e/f"}, want: map[string]string{"a/d": "a/e"}},
		"names above differ": {renames: map[string]string{"a/d/f": "b/e/f"}, want: map[string]string{"a/d": "b/e"}},
		"a name's beginning": {renames: map[string]string{"d/a": "dd/a"}, want: map[string]string{"d": "dd"}},
		"all of it up":       {renames: map[string]string{"a/d/f": "d/f"}, want: map[string]string{"a": "", "a/d": "d"}},
	} {
		got := FolderMoves(c.renames, func(dir string) bool { return dir != c.full })
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAlong(t *testing.T) {
	t.Parallel()
	moves := map[string]string{"d": "e", "d/s": "x/y", "up": ""}
	for p, want := range map[string]string{"d/f": "e/f", "d/s/f": "x/y/f", "d/t/f": "e/t/f", "up/f": "f", "up/g/f": "g/f", "dd/f": "", "d": "", "f": ""} {
		if got, ok := Along(moves, p); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", p, got, ok, want)
		}
	}
}
