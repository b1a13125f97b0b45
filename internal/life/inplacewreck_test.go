//go:build failpoint

package life

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
)

// A wrecked is an origin whose session was killed, with a copy of both, so that it
// can be had again and again.
type wrecked struct {
	*gittest.Fixture
	home, folder, kept string
	before             before
}

// destroyed is what the session's program takes from the origin.
var destroyed = []string{"README.md", "untracked", "debug.log", ".git/hooks/pre-commit", ".git/refs/heads/side", ".git/config"}

func newWreck(t *testing.T, as superqode.Mode) *wrecked {
	t.Helper()
	f := smallOrigin(t)
	removable(t, f)
	w := &wrecked{Fixture: f, before: remember(t, f), home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), kept: t.TempDir()}
	script := "echo work > work; rm " + strings.Join(destroyed, " ") + "; echo changed > README.md; echo garbage > .git/config; kill -9 $PPID"
	if !mode.Of(as).InPlace {
		script = "echo work > work" // the kernel keeps it from killing anybody
	}
	if code, out := child(t, f, "run", as, "SUPERQODE_TEST_SCRIPT="+script, "SUPERQODE_FAILPOINT=end.collecting=kill"); code != -1 {
		t.Fatalf("not killed: exit code %d\n%s", code, out)
	}
	sessions, _, err := registry.List(t.Context(), managerOf(f).Host, f.Dir, true)
	if err != nil || len(sessions) != 1 || !sessions[0].Dead {
		t.Fatalf("%+v %v", sessions, err)
	}
	w.folder = sessions[0].Dir
	for i, dir := range w.folders() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		copyTree(t, dir, filepath.Join(w.kept, fmt.Sprint(i)))
	}
	return w
}

// folders are all that a recovery may read or write.
func (w *wrecked) folders() []string {
	return []string{w.Dir, filepath.Join(w.home, "working"), filepath.Join(w.home, "inplace")}
}

// removable opens the folder that a user who is not root could not empty.
func removable(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	if err := os.Chmod(f.Path("kept"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// again puts the wreck back as the kill had left it.
func (w *wrecked) again(t *testing.T) {
	t.Helper()
	for i, dir := range w.folders() {
		if out, err := exec.Command("rm", "-rf", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		copyTree(t, filepath.Join(w.kept, fmt.Sprint(i)), dir)
	}
}

// files lists what may be damaged: of what is kept and was not destroyed in the
// origin, of files that are empty, and of logs one of each kind.
func (w *wrecked) files(t *testing.T) (list []string) {
	t.Helper()
	alike := map[string]bool{}
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.home, path)
		switch {
		case err != nil:
			return err
		case rel == "cache", d.Name() == "bin", d.Name() == "exec":
			return filepath.SkipDir
		}
		class := rel
		info, err := d.Info()
		switch kept, below, aside := strings.Cut(rel, "/aside/"); {
		case err != nil:
			return err
		case aside && strings.Contains(below, "/") && !slices.Contains(destroyed, strings.TrimPrefix(strings.Replace(below, "git/", ".git/", 1), "tree/")):
			class, _, _ = strings.Cut(below, "/")
		case info.Size() == 0, strings.HasPrefix(d.Name(), "run-"):
			class = filepath.Dir(kept)
		}
		if !d.IsDir() && d.Type().IsRegular() && !alike[class] {
			alike[class] = true
			list = append(list, path)
		}
		return nil
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	return list
}

func blobID(data []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
	return hex.EncodeToString(sum[:])
}

// contents returns the blob ids of the regular files below the folders.
func contents(t *testing.T, into map[string]string, dirs ...string) map[string]string {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrPermission) {
				err = os.Chmod(path, 0o600)
				data, _ = os.ReadFile(path)
			}
			into[blobID(data)] = path
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return into
}

// notLost fails where a content is neither in the origin, nor in the home, nor in
// its store.
func (w *wrecked) notLost(t *testing.T, had map[string]string) {
	t.Helper()
	have := contents(t, map[string]string{}, w.folders()...)
	stores, _ := filepath.Glob(filepath.Join(w.home, "working/*/store.git"))
	for _, store := range stores {
		out, _ := w.Try(w.Home, "--git-dir", store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)") // one that is damaged has none
		for id := range strings.Lines(out) {
			have[strings.TrimSpace(id)] = store
		}
	}
	for id, path := range had {
		if _, ok := have[id]; !ok {
			t.Errorf("what %s held is lost", path)
		}
	}
}

var damages = map[string]func(path string, data []byte) error{
	"removed": func(path string, _ []byte) error { return os.Remove(path) },
	"emptied": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	"halved":  func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
	"garbled": func(path string, data []byte) error {
		copy(data[len(data)/2:], "XYZ")
		return os.WriteFile(path, data, 0o600)
	},
	"a folder":   func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	"unreadable": func(path string, _ []byte) error { return os.Chmod(path, 0) },
}

// Whatever file of a killed session's state is lost or damaged, its origin comes
// back all the same, or it is said that it does not: never neither. Nothing that
// the session kept, and nothing that was found in the origin, is lost.
func TestDamagedStateIsHealedOrTold(t *testing.T) {
	t.Parallel()
	w := newWreck(t, superqode.ModeGitSnapshot)
	healed, told := 0, 0
	for _, path := range w.files(t) {
		for name, damage := range damages {
			if name == "unreadable" && os.Geteuid() == 0 || name == "a folder" && !strings.HasPrefix(filepath.Base(path), "session.") {
				continue
			}
			rel, _ := filepath.Rel(w.home, path)
			t.Run(name+" "+strings.ReplaceAll(rel, "/", "|"), func(t *testing.T) {
				w.again(t)
				had := contents(t, map[string]string{}, w.Dir, filepath.Join(w.folder, "aside/tree"), filepath.Join(w.folder, "aside/git"))
				data, err := os.ReadFile(path)
				if name != "unreadable" {
					delete(had, blobID(data))
				}
				if err = errors.Join(err, os.Chmod(path, 0o600), damage(path, data)); err != nil {
					t.Fatal(err)
				}
				switch err := w.recover(t); {
				case err == nil:
					healed++
					gittest.Same(t, w.before.print, w.Fingerprint(".superqode"))
					gittest.Same(t, w.before.times, gittest.Times(t, w.Dir, ".superqode"))
				case superqode.Hint(err) == "":
					t.Errorf("no hint: %v", err)
				default:
					told++
				}
				w.notLost(t, had)
			})
		}
	}
	t.Logf("%d healed, %d told", healed, told)
}

// recover returns the first error of a recovery.
func (w *wrecked) recover(t *testing.T) error {
	t.Helper()
	done, err := managerOf(w.Fixture).Recover(t.Context(), w.Dir, "")
	for _, r := range done {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

// Where both copies of a record are lost nothing can be brought back. That is said,
// nothing begins there, and nothing of superqode's takes away what was kept.
func TestNothingRemovesWhatALostSessionKept(t *testing.T) {
	t.Parallel()
	for _, as := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeWorktree} {
		t.Run(string(as), func(t *testing.T) {
			t.Parallel()
			w := newWreck(t, as)
			m := managerOf(w.Fixture)
			remove(t, state.RecordPath(w.folder))
			remove(t, filepath.Join(w.folder, "session.copy"))
			p := state.Project{Dir: filepath.Dir(filepath.Dir(w.folder))}
			had := contents(t, map[string]string{}, w.Dir, filepath.Join(w.folder, "aside"), p.WorkspacePath(filepath.Base(w.folder)))
			for _, force := range []bool{false, true} {
				if err := w.recover(t); !errors.Is(err, state.ErrBroken) || !strings.Contains(superqode.Hint(err), w.folder) {
					t.Errorf("recover: %v, hint %q", err, superqode.Hint(err))
				}
				if _, err := m.Collector().Cleanup(t.Context(), gc.CleanupOptions{Dir: w.Dir, Force: force}); err != nil {
					t.Error(err)
				}
				if _, err := m.Collector().Fix(t.Context(), false); err != nil {
					t.Error(err)
				}
				if err := m.Tidy(t.Context()); err != nil {
					t.Error(err)
				}
			}
			w.notLost(t, had)
			if as == superqode.ModeWorktree {
				return
			}
			for _, begin := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeWorktree} {
				if s, err := m.Open(t.Context(), OpenOptions{Dir: w.Dir, Mode: begin}); !errors.Is(err, state.ErrBroken) || !strings.Contains(superqode.Hint(err), w.folder) {
					t.Errorf("%s session on the wreck: %v %v, hint %q", begin, s, err, superqode.Hint(err))
				}
			}
			if err := os.RemoveAll(m.PointersPath()); err != nil {
				t.Fatal(err)
			}
			if s, err := m.Open(t.Context(), OpenOptions{Dir: w.Dir, Mode: superqode.ModeGitSnapshot}); !errors.Is(err, state.ErrBroken) {
				t.Errorf("a session in place on the wreck, without its pointer: %v %v", s, err)
			}
			w.notLost(t, had)
		})
	}
}

// A session whose folder is gone is told of until a person has looked at the origin.
func TestTellsOfASessionWhoseFolderIsGone(t *testing.T) {
	t.Parallel()
	w := newWreck(t, superqode.ModeGitSnapshot)
	m := managerOf(w.Fixture)
	for _, gone := range []string{w.folder, filepath.Dir(w.folder), filepath.Dir(filepath.Dir(w.folder))} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		hint, err := "", w.recover(t)
		if hint = superqode.Hint(err); !errors.Is(err, state.ErrGone) || !strings.Contains(hint, m.PointersPath()) {
			t.Errorf("%s: %v, hint %q", gone, err, hint)
		}
		if _, err := m.Open(t.Context(), OpenOptions{Dir: w.Dir, Mode: superqode.ModeGitSnapshot}); !errors.Is(err, state.ErrGone) {
			t.Errorf("%s: a session in place on the wreck: %v", gone, err)
		}
	}
	names, err := state.Names(m.PointersPath())
	if err != nil || len(names) != 1 {
		t.Fatalf("%q %v", names, err)
	}
	remove(t, filepath.Join(m.PointersPath(), names[0]))
	if err := w.recover(t); err != nil && !slices.Contains([]error{superqode.ErrNotFound}, err) {
		t.Error(err)
	}
}

// What is left of a session whose maker was killed at once is removed; anything
// else in the folder keeps it.
func TestOnlyAFolderWithNothingInItIsUnborn(t *testing.T) {
	t.Parallel()
	f := smallOrigin(t)
	removable(t, f)
	s := openSession(t, f, OpenOptions{Mode: superqode.ModeWorktree})
	p := s.Project
	if _, err := s.End(t.Context(), EndOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, extra := range []string{"", "aside/tree/.env", "large/1/big", "tmp/t/note", "session.copy", "salvage/1.json"} {
		dir := p.SessionPath(fmt.Sprintf("qe-20260101-00000%d-aaaaaa", i))
		for _, name := range state.SessionFolders() {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(dir, "lock"), "")
		put(t, filepath.Join(dir, ".session.json.tmp-1"), "{")
		if extra != "" {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, extra)), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, extra), "mine")
		}
		if err := gc.RemoveUnborn(p); err != nil {
			t.Fatal(err)
		}
		if atomicfile.Exists(dir) != (extra != "") {
			t.Errorf("%q: there: %v", extra, atomicfile.Exists(dir))
		}
	}
}
