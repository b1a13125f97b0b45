//go:build failpoint

package life

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/registry"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// A line of work each, that exists in one session's workspace only.
var keptLines = []string{"changed in an active session", "changed after the end", "in a workspace without a session", "ignored in an active session"}

// littered makes f one in whose home a cleanup has everything to do: sessions that
// are done, preserved and active, an orphan, trash, and a store full of what
// nobody needs. All of it is a day old.
func littered(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	k := newKeeper(t, f)
	k.ahead = -25 * time.Hour
	k.runs(t, OpenOptions{}, "echo one > done; mkdir -p deep/er; echo two > deep/er/x")
	k.runs(t, OpenOptions{Keep: superqode.KeepAlways}, "echo collected > kept")
	k.active(t, OpenOptions{}, "echo '"+keptLines[0]+"' > only-here; echo '"+keptLines[3]+"' > x.log")
	k.active(t, OpenOptions{Mode: superqode.ModeSnapshot}, "")
	later := k.runs(t, OpenOptions{Keep: superqode.KeepAlways}, "echo collected > kept")
	k.exec(t, later, "echo '"+keptLines[1]+"' > kept")
	orphan := k.active(t, OpenOptions{}, "echo '"+keptLines[2]+"' > only-here")
	l, _ := k.record(t, orphan)
	remove(t, l.Dir)
	project := state.Project{Dir: filepath.Dir(filepath.Dir(l.Dir))}
	then := time.Now().Add(-25 * time.Hour)
	for _, pattern := range []string{"qe/" + filepath.Base(string(l.Workspace)), "store.git/objects/pack/*"} {
		paths, err := filepath.Glob(filepath.Join(project.Dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(paths, string(l.AdminDir)) {
			if err := os.Chtimes(p, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(project.TrashPath(), "old/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(project.TrashPath(), "old/deep/f"), "rubbish")
}

// checkKept holds what must be true after a cleanup that was killed and repeated:
// every line of work can be had back, and there is nothing left to clean up.
func checkKept(t *testing.T, f *gittest.Fixture, before gittest.Print) {
	t.Helper()
	gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
	k := newKeeper(t, f)
	list, err := gc.Salvages(t.Context(), k.Host, f.Dir, false)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	look := func(dir string) {
		for _, name := range []string{"only-here", "kept", "x.log"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				found[strings.TrimSpace(string(data))] = true
			}
		}
	}
	for _, sv := range list {
		r, err := gc.Restore(t.Context(), k.Host, f.Dir, sv.ID, filepath.Join(f.Home, "back", sv.ID))
		if err != nil {
			t.Fatal(err)
		}
		look(r.Path)
	}
	preserved := 0 // one that was killed in the middle of its end
	for _, l := range must(registry.List(t.Context(), k.Host, f.Dir, false)) {
		switch l.State {
		case superqode.StateDone:
		case superqode.StatePreserved:
			preserved++
			look(string(l.Workspace))
		default:
			t.Errorf("%s is %s", l.ID, l.State)
		}
	}
	for _, line := range keptLines {
		if !found[line] {
			t.Errorf("lost: %q", line)
		}
	}
	if out := f.Git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") > 1+preserved {
		t.Errorf("worktrees left: %s", out)
	}
	projects, err := registry.Projects(t.Context(), k.Host, f.Dir, false)
	if err != nil {
		t.Fatal(err)
	}
	f.Git("--git-dir", projects[0].StorePath(), "fsck", "--full", "--strict")
	for dir, most := range map[string]int{"qe": preserved, "trash": 0} {
		if names, err := state.Names(filepath.Join(projects[0].Dir, dir)); err != nil || len(names) > most {
			t.Errorf("left in %s: %q, %v", dir, names, err)
		}
	}
	names, err := state.Names(projects[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, mode.OrphanPrefix) {
			t.Errorf("left: %s", name)
		}
	}
}

func must(list []state.Listed, broken []state.Broken, err error) []state.Listed {
	if err != nil || len(broken) > 0 {
		panic(err)
	}
	return list
}

// Killed at any point, a cleanup has lost nothing, and the next one finishes.
func TestCleanupKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	homes := dirtyStock(t, 4, func(f *gittest.Fixture) { littered(t, f) })
	points := homes.points(t, everyPoint, "cleanup", superqode.ModeWorktree, once)
	for _, name := range []string{"salvage.contents", "salvage.listed", "salvage.committed", "salvage.recorded", "cleanup.session", "cleanup.salvaged", "end.removed",
		"end.finished", "cleanup.disposed", "cleanup.orphan-salvaged", "cleanup.forgotten", "cleanup.refs", "cleanup.pack", "cleanup.packed", "cleanup.pack-dropped", "cleanup.sweep"} {
		if !strings.Contains(strings.Join(points, " "), name+":1") {
			t.Errorf("%s was not reached", name)
		}
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := homes.take(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "cleanup", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			for range 2 { // what died in its end is recovered by the first and may be preserved
				if code, out := child(t, f, "cleanup", superqode.ModeWorktree); code != 0 {
					t.Fatalf("cleanup: exit code %d\n%s", code, out)
				}
			}
			checkKept(t, f, before)
		})
	}
}

// A full disk at any step of a cleanup is an error of that session, and nothing
// is removed that was not kept.
func TestCleanupFullDiskAtEveryPoint(t *testing.T) {
	t.Parallel()
	homes := dirtyStock(t, 2, func(f *gittest.Fixture) { littered(t, f) })
	for _, point := range homes.points(t, canFail, "cleanup", superqode.ModeWorktree, once) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := homes.take(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "cleanup", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=enospc"); code != 0 && code != 97 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			for range 2 {
				if code, out := child(t, f, "cleanup", superqode.ModeWorktree); code != 0 {
					t.Fatalf("cleanup: exit code %d\n%s", code, out)
				}
			}
			checkKept(t, f, before)
		})
	}
}

func TestRestoreKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	prepare := func(f *gittest.Fixture) {
		k := newKeeper(t, f)
		k.ahead = -25 * time.Hour
		k.active(t, OpenOptions{}, "echo x > only-here; mkdir -p a/b; echo y > a/b/c")
		k.ahead = 0
		k.clean(t, gc.CleanupOptions{Force: true})
	}
	for _, point := range pointsOf(t, "restore", superqode.ModeWorktree, 2, prepare) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			prepare(f)
			if code, out := child(t, f, "restore", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			back := filepath.Join(f.Home, "back")
			if !atomicfile.Exists(back) {
				if code, out := child(t, f, "restore", superqode.ModeWorktree); code != 0 {
					t.Fatalf("restore: exit code %d\n%s", code, out)
				}
			}
			for name, text := range map[string]string{"only-here": "x\n", "a/b/c": "y\n"} {
				if data, err := os.ReadFile(filepath.Join(back, name)); err != nil || string(data) != text {
					t.Errorf("%s: %q, %v", name, data, err)
				}
			}
			names, err := state.Names(f.Home)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if strings.HasPrefix(name, gc.PartPrefix) {
					t.Errorf("left: %s", name)
				}
			}
		})
	}
}

// doctor --fix, killed at any point, is finished by the next one.
func TestFixKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	homes := dirtyStock(t, 4, func(f *gittest.Fixture) {
		littered(t, f)
		if code, out := child(t, f, "run", superqode.ModeWorktree, "SUPERQODE_FAILPOINT=open.active:1=kill"); code != -1 {
			t.Fatalf("not killed: exit code %d\n%s", code, out)
		}
	})
	for _, point := range homes.points(t, everyPoint, "fix", superqode.ModeWorktree, once) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := homes.take(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "fix", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			if code, out := child(t, f, "fix", superqode.ModeWorktree); code != 0 {
				t.Fatalf("fix: exit code %d\n%s", code, out)
			}
			if list, err := managerOf(f).Collector().Fix(t.Context(), true); err != nil || len(list) > 0 {
				t.Errorf("left to fix: %+v, %v", list, err)
			}
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
		})
	}
}

// A session that died in the origin itself is recovered by a cleanup, whatever
// its age; the origin is as it was.
func TestCleanupRecoversTheDeadInPlace(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"open.active:1", "end.collecting:1", "end.reverting:1", "end.finished:1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "run", superqode.ModeGitSnapshot, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			if code, out := child(t, f, "cleanup", superqode.ModeGitSnapshot); code != 0 {
				t.Fatalf("cleanup: exit code %d\n%s", code, out)
			}
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
			for _, l := range must(registry.List(t.Context(), managerOf(f).Host, f.Dir, false)) {
				if l.State != superqode.StateDone {
					t.Errorf("%s is %s", l.ID, l.State)
				}
			}
		})
	}
}
