package life

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/state"
)

// keeper is a manager whose clock can be set on.
type keeper struct {
	*Manager
	f     *gittest.Fixture
	ahead time.Duration
}

func newKeeper(t *testing.T, f *gittest.Fixture) *keeper {
	t.Helper()
	return newKeeperIn(t, f, "")
}

// newKeeperIn is for sessions of one mode.
func newKeeperIn(t *testing.T, f *gittest.Fixture, as superqode.Mode) *keeper {
	t.Helper()
	k := &keeper{Manager: managerIn(f, as), f: f}
	k.Now = func() time.Time { return time.Now().Add(k.ahead) }
	return k
}

// runs runs a shell line in a session of its own and returns the session's id.
func (k *keeper) runs(t *testing.T, opt OpenOptions, line string) superqode.SessionID {
	t.Helper()
	opt.Dir = k.f.Dir
	res, err := k.Run(t.Context(), opt, program.ExecOptions{Args: []string{"sh", "-c", line}})
	if err != nil {
		t.Fatal(err)
	}
	return res.SessionID
}

// active opens a session, runs a shell line in it and leaves it.
func (k *keeper) active(t *testing.T, opt OpenOptions, line string) superqode.SessionID {
	t.Helper()
	opt.Dir = k.f.Dir
	s, err := k.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	id := s.Rec.ID
	if line != "" {
		k.exec(t, id, line)
	}
	return id
}

func (k *keeper) exec(t *testing.T, id superqode.SessionID, line string) {
	t.Helper()
	s, err := k.Attach(t.Context(), k.f.Dir, id.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if res, err := s.Exec(t.Context(), program.ExecOptions{Args: []string{"sh", "-c", line}}); err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
}

func (k *keeper) clean(t *testing.T, opt gc.CleanupOptions) *gc.CleanedUp {
	t.Helper()
	res, err := k.tryClean(opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range res.Spared {
		if s.Err != nil {
			t.Error(s.Err)
		}
	}
	return res
}

func (k *keeper) tryClean(opt gc.CleanupOptions) (*gc.CleanedUp, error) {
	opt.Dir = k.f.Dir
	if opt.OlderThan == 0 {
		opt.OlderThan = 24 * time.Hour
	}
	return k.Collector().Cleanup(context.Background(), opt)
}

// want holds what a cleanup must have removed, and spared with a reason that
// holds a word.
func want(t *testing.T, res *gc.CleanedUp, removed []superqode.SessionID, spared map[superqode.SessionID]string) {
	t.Helper()
	var got []string
	for _, r := range res.Removed {
		got = append(got, r.ID)
	}
	var ids []string
	for _, id := range removed {
		ids = append(ids, id.String())
	}
	slices.Sort(ids)
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		t.Errorf("removed %+v, want %q", res.Removed, ids)
	}
	if len(res.Spared) != len(spared) {
		t.Errorf("spared %+v, want %v", res.Spared, spared)
	}
	for _, s := range res.Spared {
		id, err := superqode.ParseSessionID(s.ID)
		if err != nil || spared[id] == "" || !strings.Contains(s.Why, spared[id]) {
			t.Errorf("spared %+v, want %v", s, spared)
		}
	}
}

func (k *keeper) record(t *testing.T, id superqode.SessionID) (state.Listed, bool) {
	t.Helper()
	l, err := k.Find(t.Context(), k.f.Dir, id.String())
	if errors.Is(err, superqode.ErrNotFound) {
		return state.Listed{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return *l, true
}

func TestCleanupTakesWhatIsOldAndKept(t *testing.T) {
	t.Parallel()
	for _, mode := range withOverlay(superqode.ModeWorktree, superqode.ModeSnapshot, superqode.ModeDirectory) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			k := newKeeperIn(t, f, mode)
			done := k.runs(t, OpenOptions{Mode: mode}, "echo x > done")
			kept := k.runs(t, OpenOptions{Mode: mode, Keep: superqode.KeepAlways}, "echo x > kept; mkdir -p build; echo o > build/kept.o; rm -f README.md")
			idle := k.active(t, OpenOptions{Mode: mode}, "")
			changed := k.active(t, OpenOptions{Mode: mode}, "echo new > only-here")
			pinned := k.runs(t, OpenOptions{Mode: mode}, "true")
			if _, err := registry.Pin(t.Context(), k.Host, f.Dir, pinned.String(), true); err != nil {
				t.Fatal(err)
			}
			const young = "last used"
			want(t, k.clean(t, gc.CleanupOptions{}), nil, map[superqode.SessionID]string{done: young, kept: young, idle: young, changed: young, pinned: "pinned"})
			k.ahead = 25 * time.Hour
			spared := map[superqode.SessionID]string{changed: "1 change that is kept nowhere else", pinned: "pinned"}
			dry := k.clean(t, gc.CleanupOptions{DryRun: true})
			want(t, dry, []superqode.SessionID{done, kept, idle}, spared)
			if _, ok := k.record(t, done); !ok {
				t.Fatal("a dry run removed something")
			}
			res := k.clean(t, gc.CleanupOptions{})
			want(t, res, []superqode.SessionID{done, kept, idle}, spared)
			if _, ok := k.record(t, done); ok {
				t.Error("the record of the session that was done stands")
			}
			if l, ok := k.record(t, kept); !ok || l.State != superqode.StateDone || atomicfile.Exists(string(l.Workspace)) {
				t.Errorf("the preserved session is %s, its workspace there: %v", l.State, atomicfile.Exists(string(l.Workspace)))
			}
			k.restores(t, res, kept, map[string]string{"kept": "x\n", "build/kept.o": "o\n"})
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
			// A day later the salvage goes, too; nothing of the others changed.
			k.ahead = 50 * time.Hour
			want(t, k.clean(t, gc.CleanupOptions{}), []superqode.SessionID{kept, idle}, spared)
			if list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false); err != nil || len(list) != 0 {
				t.Errorf("salvages left: %v, %v", list, err)
			}
		})
	}
}

// restores restores the salvage that a cleanup made of a session and looks for
// files in it.
func (k *keeper) restores(t *testing.T, res *gc.CleanedUp, id superqode.SessionID, files map[string]string) {
	t.Helper()
	i := slices.IndexFunc(res.Removed, func(r gc.Removal) bool { return r.ID == id.String() })
	if i < 0 || res.Removed[i].Salvage == "" {
		t.Errorf("no salvage of %s: %+v", id, res.Removed)
		return
	}
	r, err := gc.Restore(t.Context(), k.Host, k.f.Dir, res.Removed[i].Salvage, filepath.Join(k.f.Home, "back", id.String()))
	if err != nil {
		t.Error(err)
		return
	}
	for name, text := range files {
		if data, err := os.ReadFile(filepath.Join(r.Path, name)); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v; want %q", name, data, err, text)
		}
	}
}

func TestCleanupByForceSalvages(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	changed := k.active(t, OpenOptions{}, `echo new > only-here; echo log > x.log; chmod 000 only-here; mkdir closed; echo in > closed/in; chmod 500 closed;
		git init -q nested; echo n > nested/n; printf w > "$(printf 'odd\n\377')"; ln -s / root; mkfifo pipe`)
	later := k.runs(t, OpenOptions{Keep: superqode.KeepAlways}, "echo collected > README.md")
	k.exec(t, later, "echo after the end > README.md")
	pinned := k.active(t, OpenOptions{}, "echo pinned > p")
	if _, err := registry.Pin(t.Context(), k.Host, f.Dir, pinned.String(), true); err != nil {
		t.Fatal(err)
	}
	k.ahead = 25 * time.Hour
	want(t, k.clean(t, gc.CleanupOptions{}), nil, map[superqode.SessionID]string{changed: "kept nowhere else", later: "kept nowhere else", pinned: "pinned"})
	res := k.clean(t, gc.CleanupOptions{Force: true})
	want(t, res, []superqode.SessionID{changed, later, pinned}, nil)
	k.restores(t, res, changed, map[string]string{"x.log": "log\n", "closed/in": "in\n", "nested/n": "n\n", "nested/.git/HEAD": "ref: refs/heads/main\n", "odd\n\xff": "w"})
	k.restores(t, res, later, map[string]string{"README.md": "after the end\n"})
	k.restores(t, res, pinned, map[string]string{"p": "pinned\n"})
	back := filepath.Join(f.Home, "back", changed.String())
	if st, err := os.Lstat(filepath.Join(back, "only-here")); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("only-here is %v, %v", st, err)
	}
	if to, err := os.Readlink(filepath.Join(back, "root")); err != nil || to != "/" {
		t.Errorf("root leads to %q, %v", to, err)
	}
	if out := f.Git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 {
		t.Errorf("worktrees left: %s", out)
	}
	if list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false); err != nil || len(list) != 3 {
		t.Errorf("salvages %v, %v", list, err)
	}
}

func TestCleanupSparesWhatLives(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	id := k.active(t, OpenOptions{}, "")
	kept := k.runs(t, OpenOptions{Keep: superqode.KeepAlways}, "true")
	s, err := k.Attach(t.Context(), f.Dir, id.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := k.Attach(t.Context(), f.Dir, kept.String())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	k.ahead = 1000 * time.Hour
	for _, force := range []bool{false, true} {
		want(t, k.clean(t, gc.CleanupOptions{Force: force}), nil, map[superqode.SessionID]string{id: "in use", kept: "in use"})
	}
	for _, id := range []superqode.SessionID{id, kept} {
		if l, ok := k.record(t, id); !ok || !atomicfile.Exists(string(l.Workspace)) {
			t.Errorf("%s lost its workspace", id)
		}
	}
}

func TestCleanupsAtOnceBesideSessions(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	k.ahead = -25 * time.Hour
	for range 4 {
		k.runs(t, OpenOptions{}, "echo x > done")
		k.active(t, OpenOptions{}, "echo x > left")
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := newKeeper(t, f).tryClean(gc.CleanupOptions{Force: true}); err != nil {
				t.Error(err)
			}
		})
		if i%4 == 0 {
			wg.Go(func() {
				res, err := managerOf(f).Run(t.Context(), OpenOptions{Dir: f.Dir}, program.ExecOptions{Args: []string{"sh", "-c", "echo x > beside"}})
				if err != nil || res.ExitCode != 0 || len(res.Changes) != 1 {
					t.Errorf("a session beside cleanups: %+v, %v", res, err)
				}
			})
		}
	}
	wg.Wait()
	sessions, broken, err := registry.List(t.Context(), k.Host, f.Dir, false)
	if err != nil || len(broken) > 0 {
		t.Fatal(broken, err)
	}
	for _, l := range sessions {
		if l.State != superqode.StateDone {
			t.Errorf("%s is %s", l.ID, l.State)
		}
	}
	f.Git("--git-dir", filepath.Join(filepath.Dir(filepath.Dir(sessions[0].Dir)), "store.git"), "fsck", "--full")
	if list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false); err != nil || len(list) != 4 {
		t.Errorf("salvages %v, %v", list, err)
	}
}

func TestCleanupOfOrphans(t *testing.T) {
	t.Parallel()
	for _, mode := range withOverlay(superqode.ModeWorktree, superqode.ModeSnapshot) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			k := newKeeperIn(t, f, mode)
			id := k.active(t, OpenOptions{Mode: mode}, "echo mine > only-here; echo more >> README.md; truncate -s 101M large")
			gone := k.active(t, OpenOptions{Mode: mode}, "")
			other := k.active(t, OpenOptions{Mode: mode}, "")
			l, _ := k.record(t, gone)
			dir := filepath.Dir(l.Dir)
			for _, id := range []superqode.SessionID{id, gone} {
				remove(t, filepath.Join(dir, id.String()))
			}
			remove(t, string(l.Workspace))
			spared := map[superqode.SessionID]string{id: "it has no record", other: "last used"}
			if mode == superqode.ModeWorktree { // its admin folder stands
				spared[gone] = "it has no record"
			}
			want(t, k.clean(t, gc.CleanupOptions{}), nil, spared)
			k.ahead = 25 * time.Hour
			all := []superqode.SessionID{id, other}
			if mode == superqode.ModeWorktree {
				all = append(all, gone)
			}
			want(t, k.clean(t, gc.CleanupOptions{DryRun: true}), all, nil)
			res := k.clean(t, gc.CleanupOptions{})
			want(t, res, all, nil)
			k.restores(t, res, id, map[string]string{"only-here": "mine\n", "README.md": f.Read("README.md") + "more\n", "large": string(make([]byte, 101<<20))})
			if out := f.Git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 {
				t.Errorf("worktrees left: %s", out)
			}
			list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false)
			if err != nil || len(list) != 1 || list[0].Files > 4 {
				t.Errorf("salvages %+v, %v", list, err)
			}
			// The salvage is known by its ref alone, and goes when it is old.
			want(t, k.clean(t, gc.CleanupOptions{}), nil, map[superqode.SessionID]string{id: "only its refs", other: "last used"})
			k.ahead = 50 * time.Hour
			want(t, k.clean(t, gc.CleanupOptions{}), []superqode.SessionID{id, other}, nil)
			if list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false); err != nil || len(list) != 0 {
				t.Errorf("salvages %+v, %v", list, err)
			}
		})
	}
}

// What another home has in the same repository is not touched.
func TestCleanupSparesAnotherHome(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	k.runs(t, OpenOptions{}, "true")
	other := newKeeper(t, f)
	other.Home = filepath.Join(f.Home, "other-home")
	id := other.active(t, OpenOptions{}, "echo x > y")
	k.ahead = 1000 * time.Hour
	res := k.clean(t, gc.CleanupOptions{Force: true})
	if len(res.Spared) != 1 || res.Spared[0].ID != id.String() || !strings.Contains(res.Spared[0].Why, "another home") {
		t.Errorf("spared %+v", res.Spared)
	}
	other.exec(t, id, "git status && test -f y")
}

// A session whose files were damaged, or whose record was forged, loses nothing.
func TestCleanupOfDamagedSessions(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	torn := k.active(t, OpenOptions{}, "echo x > y")
	baseless := k.active(t, OpenOptions{}, "echo x > y")
	forged := k.active(t, OpenOptions{}, "echo x > y")
	locked := k.active(t, OpenOptions{}, "")
	dirOf := func(id superqode.SessionID) string { l, _ := k.record(t, id); return l.Dir }
	remove(t, filepath.Join(dirOf(baseless), "base.snap"))
	l, _ := k.record(t, forged)
	l.Workspace, l.Mode, l.State = state.HostPath(f.Dir), superqode.ModeSnapshot, superqode.StatePreserved
	if err := state.WriteRecord(l.Dir, &l.Record); err != nil {
		t.Fatal(err)
	}
	lk, _ := k.record(t, locked)
	f.Git("worktree", "lock", "--reason", "mine", string(lk.Workspace))
	put(t, state.RecordPath(dirOf(torn)), "{")
	put(t, filepath.Join(dirOf(torn), "session.copy"), "{")
	before := f.Fingerprint(".superqode", ".git/worktrees")
	k.ahead = 25 * time.Hour
	for _, force := range []bool{false, true} {
		res, err := k.tryClean(gc.CleanupOptions{Force: force})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Removed {
			if !force || r.ID != baseless.String() {
				t.Errorf("removed %+v", r)
			}
		}
		for _, id := range []superqode.SessionID{torn, forged, locked} {
			if !slices.ContainsFunc(res.Spared, func(s gc.Sparing) bool { return s.ID == id.String() }) {
				t.Errorf("%s was not spared: %+v", id, res.Spared)
			}
		}
		if force {
			k.restores(t, res, baseless, map[string]string{"y": "x\n"})
		}
	}
	gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
	if !atomicfile.Exists(filepath.Join(string(lk.Workspace), "README.md")) {
		t.Error("the locked worktree was removed")
	}
}

func TestCleanupRecoversTheDead(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	before := f.Fingerprint(".superqode", ".git/worktrees")
	k := newKeeper(t, f)
	died := func(keep superqode.Keep, line string) superqode.SessionID {
		s, err := k.Open(t.Context(), OpenOptions{Dir: f.Dir, Owned: true, Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.Exec(t.Context(), program.ExecOptions{Args: []string{"sh", "-c", line}}); err != nil {
			t.Fatal(res, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return s.Rec.ID
	}
	ended, failed := died(superqode.KeepNever, "echo x > y"), died(superqode.KeepFailure, "echo x > y; exit 3")
	spared := map[superqode.SessionID]string{failed: "workspace preserved"}
	want(t, k.clean(t, gc.CleanupOptions{DryRun: true}), []superqode.SessionID{ended}, spared)
	want(t, k.clean(t, gc.CleanupOptions{}), []superqode.SessionID{ended}, spared)
	for id, state := range map[superqode.SessionID]superqode.State{ended: superqode.StateDone, failed: superqode.StatePreserved} {
		if l, ok := k.record(t, id); !ok || l.State != state {
			t.Errorf("%s is %s, want %s", id, l.State, state)
		}
	}
	gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
}

// An origin that is gone keeps nobody from cleaning up.
func TestCleanupWithoutOrigin(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	done := k.runs(t, OpenOptions{}, "echo x > y")
	kept := k.runs(t, OpenOptions{Keep: superqode.KeepAlways}, "echo x > y")
	left := k.active(t, OpenOptions{}, "echo x > y")
	if err := os.RemoveAll(f.Dir); err != nil {
		t.Fatal(err)
	}
	k.ahead = 25 * time.Hour
	res, err := k.tryClean(gc.CleanupOptions{All: true, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, res, []superqode.SessionID{done, kept, left}, nil)
	r, err := gc.Restore(t.Context(), k.Host, f.Home, left.String(), filepath.Join(f.Home, "back"))
	if err != nil || r.Files == 0 {
		t.Fatal(r, err)
	}
	if data, err := os.ReadFile(filepath.Join(r.Path, "y")); err != nil || string(data) != "x\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// Files that git ignores are salvaged up to a limit, the biggest named instead.
func TestCleanupSalvagesIgnoredUpToALimit(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	id := k.active(t, OpenOptions{}, "mkdir build; echo small > build/small; truncate -s 257M build/huge; echo new > only-here")
	k.ahead = 25 * time.Hour
	res := k.clean(t, gc.CleanupOptions{Force: true})
	k.restores(t, res, id, map[string]string{"build/small": "small\n", "only-here": "new\n"})
	list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false)
	if err != nil || len(list) != 1 || len(list[0].LeftOut) != 1 || list[0].LeftOut[0].Path != "build/huge" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Files that are too big for the store are moved into the session's folder, and
// stay there as long as the salvage.
func TestCleanupMovesLargeFiles(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	k := newKeeper(t, f)
	const line = "echo start > huge; truncate -s 110M huge; mkdir build; cp --sparse=always huge build/huge; echo new > only-here"
	active := k.active(t, OpenOptions{}, line)
	kept := k.runs(t, OpenOptions{Keep: superqode.KeepAlways, Mode: superqode.ModeSnapshot}, "rm -rf build; "+line+"; chmod 000 huge; mkdir closed; mv huge closed; chmod 500 closed")
	k.ahead = 25 * time.Hour
	res := k.clean(t, gc.CleanupOptions{Force: true})
	k.restores(t, res, active, map[string]string{"only-here": "new\n"})
	k.restores(t, res, kept, map[string]string{"only-here": "new\n"})
	for id, names := range map[superqode.SessionID][]string{active: {"huge", "build/huge"}, kept: {"closed/huge", "build/huge"}} {
		l, ok := k.record(t, id)
		if !ok {
			t.Fatal("no record")
		}
		for _, name := range names {
			found, err := filepath.Glob(filepath.Join(l.Dir, "large", "*", name))
			if err != nil || len(found) != 1 {
				t.Errorf("%s: %s was moved to %q (%v)", id, name, found, err)
				continue
			}
			if st, err := os.Stat(found[0]); err != nil || st.Size() != 110<<20 {
				t.Errorf("%s: %v, %v", found[0], st, err)
			}
		}
	}
}

// A session that works in the origin itself is never a cleanup's, whatever its
// age and with force.
func TestCleanupSparesTheOrigin(t *testing.T) {
	t.Parallel()
	for _, mode := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeShared} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			k := newKeeper(t, f)
			id := k.active(t, OpenOptions{Mode: mode}, "")
			f.Write("by-the-session", "new\n")
			during := f.Fingerprint(".superqode", ".git/worktrees")
			k.ahead = 1000 * time.Hour
			for _, force := range []bool{false, true} {
				want(t, k.clean(t, gc.CleanupOptions{Force: force}), nil, map[superqode.SessionID]string{id: "in the origin itself"})
				gittest.Same(t, during, f.Fingerprint(".superqode", ".git/worktrees"))
			}
			s, err := k.Attach(t.Context(), f.Dir, id.String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.End(t.Context(), EndOptions{})
			if err = errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			if mode == superqode.ModeShared {
				f.Remove("by-the-session")
			}
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
			k.ahead = 2000 * time.Hour
			want(t, k.clean(t, gc.CleanupOptions{}), []superqode.SessionID{id}, nil)
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
		})
	}
}
