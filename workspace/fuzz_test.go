package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

// kind is one of the errors that two implementations must agree on.
func kind(err error) string {
	for _, known := range []error{workspace.ErrPathTraversal, workspace.ErrAccessDenied, superqode.ErrNotFound, superqode.ErrUsage} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return "other"
	}
	return ""
}

// FuzzPaths holds that no path leaves a Dir, that a tree on disk and one in memory do the
// same, and that what was written is what is read.
func FuzzPaths(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/../b", "/x", "..foo", "a//b/", "link/x", "link", "up/x", "in/x", "a\x00", "./.", "a/b/c/d", "up", "-", "dangling", "dangling/x"} {
		f.Add(s)
	}
	top := f.TempDir()
	away := filepath.Join(top, "away")
	must(f, os.Mkdir(away, 0o755))
	must(f, os.WriteFile(filepath.Join(away, "x"), []byte(secret), 0o600))
	f.Fuzz(func(t *testing.T, name string) {
		ctx := context.Background()
		dir, err := workspace.Open(filepath.Join(top, "in"))
		must(t, err)
		for link, target := range map[string]string{"link": away, "up": "..", "in": filepath.Join(dir.Root(), "."), "dangling": "../away/new"} {
			must(t, os.Symlink(target, filepath.Join(dir.Root(), link)))
		}
		for _, view := range []workspace.FS{dir, workspace.Scoped(dir, workspace.WithAllowWrite("**"))} {
			data, _ := view.Read(ctx, name)
			if string(data) == secret {
				t.Errorf("%q leaves", name)
			}
			err := view.Write(ctx, name, []byte(name))
			if data, rerr := view.Read(ctx, name); err == nil && (rerr != nil || string(data) != name) {
				t.Errorf("%q: %q %v", name, data, rerr)
			}
			_ = view.Append(ctx, name, nil)
			_ = view.Rename(ctx, name, name+"2")
			_ = view.RemoveAll(ctx, name)
			_ = workspace.AtomicWrite(ctx, view, name, nil)
		}
		left, err := os.ReadDir(away)
		if data, rerr := os.ReadFile(filepath.Join(away, "x")); err != nil || len(left) != 1 || rerr != nil || string(data) != secret {
			t.Errorf("%q changed what lies outside: %v", name, left)
		}
		must(t, dir.Close())
		must(t, os.RemoveAll(dir.Root()))
		plain, err := workspace.Open(filepath.Join(top, "in"))
		must(t, err)
		mem := workspace.NewMem()
		if len(name) < 200 && filepath.IsLocal("x"+name) {
			for i, op := range []func(workspace.FS) error{
				func(f workspace.FS) error { return f.Write(ctx, name, nil) },
				func(f workspace.FS) error { return second(f.Stat(ctx, name)) },
				func(f workspace.FS) error { return second(f.List(ctx, name)) },
				func(f workspace.FS) error { return f.Rename(ctx, name, "b/c") },
				func(f workspace.FS) error { return f.Delete(ctx, name) },
				func(f workspace.FS) error { return f.RemoveAll(ctx, name) },
			} {
				if on, in := op(plain), op(mem); kind(on) != kind(in) {
					t.Errorf("%q, call %d: on disk %v, in memory %v", name, i, on, in)
				}
			}
		}
		must(t, plain.Close())
		must(t, os.RemoveAll(plain.Root()))
	})
}

// FuzzGlob holds that Glob gives exactly the files that its pattern matches, and a rule
// with the same pattern hides them all.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"**", "a/*", "{a,b}/**", "[a-c]/?", "a", "a/", "\\", "../x", "**/*.go", "a/**/c", "{a/b,x}/*", "**/b/**"} {
		f.Add(s)
	}
	ctx, mem := context.Background(), workspace.NewMem()
	files := []string{"a/b/c", "a/c", "a.go", "b/x.go", "x/*", "c/d/e/f/g.go", "{a}", "a/b/.h"}
	for _, name := range files {
		must(f, mem.Write(ctx, name, nil))
	}
	f.Fuzz(func(t *testing.T, glob string) {
		got, err := workspace.Glob(ctx, mem, glob)
		if err != nil {
			if !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("%q: %v", glob, err)
			}
			return
		}
		for _, name := range files {
			matched, _ := doublestar.Match(glob, name)
			if matched && !slices.Contains(got, name) {
				t.Errorf("%q leaves out %q", glob, name)
			}
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%q: %q", glob, got)
		}
		scoped := workspace.Scoped(mem, workspace.WithDenyRead(glob))
		must(t, workspace.Walk(ctx, scoped, "", func(name string, _ fs.DirEntry) error {
			if slices.Contains(got, name) {
				t.Errorf("%q shows %q", glob, name)
			}
			return nil
		}))
		for _, name := range got {
			if !strings.HasPrefix(glob, ".git") {
				is(t, second(scoped.Read(ctx, name)), workspace.ErrAccessDenied)
			}
		}
	})
}
