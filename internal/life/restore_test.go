package life

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// salvaged makes a session with one salvage of the whole origin, git's own files
// included, and tells what it should be restored to.
func salvaged(t *testing.T, f *gittest.Fixture) (*Session, *salvage.Record, *snapshot.Snapshot) {
	t.Helper()
	s := openSession(t, f, OpenOptions{})
	if err := os.RemoveAll(f.Path(".superqode")); err != nil {
		t.Fatal(err)
	}
	f.WriteMode("build/closed", "nobody reads this\n", 0o000)
	f.WriteMode("closed-folder/inner", "hidden\n", 0o400)
	if err := os.Chmod(f.Path("closed-folder"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.Path("closed-folder"), 0o700) })
	part := partOf(t, f.Dir, "")
	sv, err := s.Salvage(t.Context(), "test", part)
	if err != nil {
		t.Fatal(err)
	}
	if len(sv.LeftOut) > 0 && os.Geteuid() == 0 {
		t.Fatalf("left out: %v", sv.LeftOut)
	}
	want, err := snapshot.Load(sv.ListPath(salvage.Dir(s.Folder)))
	if err != nil {
		t.Fatal(err)
	}
	return s, sv, want
}

func TestRestore(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, s *Session, sv *salvage.Record){
		"as it was": func(*testing.T, *Session, *salvage.Record) {},
		"list gone": func(t *testing.T, s *Session, sv *salvage.Record) { remove(t, sv.ListPath(salvage.Dir(s.Folder))) },
		"list torn": func(t *testing.T, s *Session, sv *salvage.Record) {
			put(t, sv.ListPath(salvage.Dir(s.Folder)), "superqode")
		},
		"record gone": func(t *testing.T, s *Session, sv *salvage.Record) {
			remove(t, sv.RecordPath(salvage.Dir(s.Folder)))
		},
		"record torn": func(t *testing.T, s *Session, sv *salvage.Record) {
			put(t, sv.RecordPath(salvage.Dir(s.Folder)), "{")
		},
		"session gone": func(t *testing.T, s *Session, _ *salvage.Record) { remove(t, s.Folder) },
		"ref gone":     func(t *testing.T, s *Session, sv *salvage.Record) { remove(t, filepath.Join(s.Store.Dir(), sv.Ref)) },
		"refs packed":  func(t *testing.T, s *Session, _ *salvage.Record) { packRefs(t, s) },
		"a planted one": func(t *testing.T, s *Session, sv *salvage.Record) {
			put(t, filepath.Join(salvage.Dir(s.Folder), "2.json"), "{}")
		},
		"rest of a kill": func(t *testing.T, s *Session, _ *salvage.Record) {
			rest(t, filepath.Join(string(s.Rec.Origin), ".superqode/salvage"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			s, sv, want := salvaged(t, f)
			damage(t, s, sv)
			m := managerOf(f)
			r, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.Session.String(), "")
			if err != nil {
				t.Fatal(err)
			}
			if r.Path != f.Path(fmt.Sprintf(".superqode/salvage/%s-1", sv.Session)) || r.Files != sv.Files {
				t.Errorf("restored %+v", r)
			}
			if digest, err := want.Digest(); err != nil || digest != r.Digest {
				t.Errorf("digest %s, want %s (%v)", r.Digest, digest, err)
			}
			if out := f.Git("status", "--porcelain", "--", ".superqode"); out != "" {
				t.Errorf("git status shows %q", out)
			}
			if names, err := os.ReadDir(filepath.Dir(r.Path)); err != nil || len(names) != 1 {
				t.Errorf("beside it lies %v (%v)", names, err)
			}
			if _, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, ""); !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("restored over what is there: %v", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func packRefs(t *testing.T, s *Session) {
	t.Helper()
	g, err := s.Git(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Output(t.Context(), git.Cmd{Dir: s.Store.Dir(), Args: []string{"pack-refs", "--all", "--prune"}}); err != nil {
		t.Fatal(err)
	}
}

func rest(t *testing.T, parent string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(parent, gc.PartPrefix+"1234", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// What the store has lost is named; the rest is restored all the same.
func TestRestoreOfADamagedStore(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s, sv, _ := salvaged(t, f)
	m := managerOf(f)
	packs, err := filepath.Glob(filepath.Join(s.Store.Dir(), "objects/pack/*"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	for _, p := range packs {
		remove(t, p)
	}
	to := filepath.Join(f.Home, "back")
	r, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, to)
	if !errors.Is(err, superqode.ErrVerification) || r == nil || len(r.Lost) == 0 || r.Files == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "src/main.go")); err != nil || string(data) != f.Read("src/main.go") {
		t.Errorf("what the origin has was not restored: %q, %v", data, err)
	}
	remove(t, s.Store.Dir())
	if _, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, to+"2"); !errors.Is(err, superqode.ErrVerification) {
		t.Errorf("without a store: %v", err)
	}
}

func TestRestoreRefusesPlaces(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	_, sv, _ := salvaged(t, f)
	m := managerOf(f)
	dir := filepath.Join(f.Home, "places")
	for _, d := range []string{"full/x", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "file"), "")
	for link, to := range map[string]string{"to-full": "full", "to-nowhere": "nowhere", "to-empty": "empty", "to-root": "/"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"full", "file", "to-full", "to-nowhere", "to-root"} {
		if _, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, filepath.Join(dir, to)); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"to-empty", "new\n\xff/deep"} {
		r, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, filepath.Join(dir, to))
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(r.Path, "README.md")); err != nil {
			t.Error(err)
		}
	}
	// A program may have put a link where the default place is.
	if err := os.MkdirAll(f.Path(".superqode"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.Symlink(dir, ".superqode/salvage")
	if r, err := gc.Restore(t.Context(), m.Host, f.Dir, sv.ID, ""); err == nil {
		t.Errorf("restored through a link into %s", r.Path)
	}
}

func TestRestoresAtOnce(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	_, sv, _ := salvaged(t, f)
	parent := filepath.Join(f.Home, "back")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 12 {
		wg.Go(func() {
			_, err := gc.Restore(t.Context(), managerOf(f).Host, f.Dir, sv.ID, filepath.Join(parent, fmt.Sprint(i%6)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, superqode.ErrUsage) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	names, err := state.Names(parent)
	if err != nil || len(names) != 6 || won != 6 {
		t.Errorf("%d won, left %q (%v)", won, names, err)
	}
}
