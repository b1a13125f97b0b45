package life

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// Who is no root is kept out by permission bits, also where they are wrong.
func TestGitSnapshotUnprivileged(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	scripts := map[string]string{}
	for name, script := range hostile() {
		for _, word := range []string{"closed", "unreadable", "modes", "everything", "no .git", "all of it", "objects", "kinds", "gc", "fifos"} {
			if strings.Contains(name, word) {
				scripts[name] = script
			}
		}
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			f.WriteMode("read-only/deep/file", "x", 0o444)
			f.WriteMode("build/none", "ignored, for nobody", 0o200)
			for path, mode := range map[string]os.FileMode{"read-only/deep": 0o555, "read-only": 0o500, "build/none": 0o400, "build/secret": 0o400} {
				if err := os.Chmod(f.Path(path), mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { openUp(f.Dir); openUp(f.Home) })
			b := remember(t, f)
			script = "chmod -R u+w read-only 2>/dev/null || true\n" + script
			res, out, err := runInPlace(t, f, OpenOptions{}, script)
			if err != nil || !res.Revert.Verified {
				t.Fatalf("%v\n%s", err, out)
			}
			b.check(t, f)
		})
	}
}

// What cannot be read when the session begins cannot be protected. It is named,
// left alone, and the rest comes back.
func TestGitSnapshotUnreadable(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	f := gittest.Dirty(t)
	f.Write("build/none", "for nobody")
	f.Write("build/dark/file", "in the dark")
	f.Mkdir("build/empty")
	for _, path := range []string{"build/none", "build/dark", "build/empty"} {
		if err := os.Chmod(f.Path(path), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { openUp(f.Dir); openUp(f.Home) })
	res, out, err := runInPlace(t, f, OpenOptions{}, "echo x >> README.md; rm -rf src")
	if err != nil || !res.Revert.Verified {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"build/none", "build/dark", "build/empty"} {
		if !strings.Contains(out, name+" is not protected") {
			t.Errorf("%s is not named:\n%s", name, out)
		}
		if st, err := os.Lstat(f.Path(name)); err != nil || st.Mode().Perm() != 0 {
			t.Errorf("%s: %v %v", name, st, err)
		}
	}
	if f.Read("src/deep/er/lib.go") == "" {
		t.Error("the rest did not come back")
	}
}

// openUp gives the owner all rights to what is below dir. It follows no link, not
// even one at dir: chmod -R would.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if info, err := os.Lstat(path); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			_ = os.Chmod(path, info.Mode().Perm()|0o700)
		}
		return nil // what cannot be opened fails its test
	})
}

// What the program closed can be read for a salvage all the same: nothing is
// deleted that was not kept.
func TestGitSnapshotSalvagesClosedFiles(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	f := gittest.Dirty(t)
	b := remember(t, f)
	res, out, err := runInPlace(t, f, OpenOptions{}, "mkdir -p made/deep; echo precious > made/deep/file; echo x > README.md; chmod 000 README.md made/deep/file made/deep made; echo y > .git/made; chmod 000 .git/made")
	if err != nil || !res.Revert.Verified {
		t.Fatalf("%v\n%s", err, out)
	}
	b.check(t, f)
	m := managerOf(f)
	list, err := gc.Salvages(t.Context(), m.Host, f.Dir, false)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, sv := range list {
		ids = append([]string{sv.ID}, ids...)
		if len(sv.LeftOut) > 0 {
			t.Errorf("%s lacks %+v", sv.ID, sv.LeftOut)
		}
	}
	all := restored(t, m, f, ids)
	for name, want := range map[string]string{"made/deep/file": "precious\n", "README.md": "x\n", "git-dir/made": "y\n"} {
		if got, err := os.ReadFile(filepath.Join(all, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q in the salvage (%v)", name, got, err)
		}
	}
}
