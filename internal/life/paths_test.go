package life

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/state"
)

func TestPathspecs(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	origin, ws, link := filepath.Join(top, "origin"), filepath.Join(top, "ws"), filepath.Join(top, "link")
	for _, d := range []string{origin + "/src/deep", ws + "/src", top + "/elsewhere"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("origin", link); err != nil {
		t.Fatal(err)
	}
	rec := &state.Record{Origin: state.HostPath(origin), Workspace: state.HostPath(ws)}
	for _, tt := range []struct {
		dir  string
		args []string
		want []string // nil: all
		ok   bool
	}{
		{origin, nil, nil, true},
		{origin, []string{"a", "src/b"}, []string{"a", "src/b"}, true},
		{origin + "/src", []string{"b", "../a", "deep/"}, []string{"src/b", "a", "src/deep"}, true},
		{origin + "/src", []string{"."}, []string{"src"}, true},
		{origin + "/src", []string{"..", "b"}, nil, true},
		{origin, []string{"."}, nil, true},
		{link + "/src", []string{"b"}, []string{"src/b"}, true},
		{ws + "/src", []string{"b"}, []string{"src/b"}, true},
		{top + "/elsewhere", []string{"src/b"}, []string{"src/b"}, true},
		{top + "/elsewhere", []string{origin + "/a", ws + "/b", link + "/src/c"}, []string{"a", "b", "src/c"}, true},
		{origin, []string{"-dash", ":(top)x", "*", "new\nline", "\xff"}, []string{"-dash", ":(top)x", "*", "new\nline", "\xff"}, true},
		{origin, []string{"gone/at/all"}, []string{"gone/at/all"}, true},
		{origin, []string{"../x"}, nil, false},
		{origin + "/src", []string{"../../ws2"}, nil, false},
		{origin, []string{"/etc/passwd"}, nil, false},
		{origin, []string{""}, nil, false},
	} {
		got, err := rec.Pathspecs(tt.dir, tt.args)
		if (err == nil) != tt.ok || !slices.Equal(got, tt.want) || err != nil && !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%s %q: %q, %v", tt.dir, tt.args, got, err)
		}
	}
}
