//go:build failpoint

package life

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/registry"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/state"
)

// wreck is the program of the sessions that are killed: it leaves nothing as it
// was, and then some.
const wreck = `echo changed >> README.md; rm -rf tool.sh src empty; mkdir -p new/dir; echo new > new/dir/file; rm link; mkdir link; ln -s / rooted
chmod 700 kept; git add -A; git commit -qm made; git branch -qD side; git stash clear; rm -rf .git/hooks .git/refs/tags; echo garbage > .git/config
mkdir -p "$SUPERQODE_ARTIFACT_DIR/evidence" && echo shot > "$SUPERQODE_ARTIFACT_DIR/evidence/note.txt"`

// smallOrigin is a repository with little of everything: there is one for each
// point.
func smallOrigin(t *testing.T) *gittest.Fixture {
	t.Helper()
	f := smallTemplate.Make(t)
	if err := os.Chmod(f.Path("kept"), 0o555); err != nil {
		t.Fatal(err)
	}
	return f
}

var smallTemplate = gittest.Template{Build: func(f *gittest.Fixture) {
	f.Git("init", "-q")
	f.Write("README.md", "hello\n")
	f.Write("src/a.go", "package a\n")
	f.WriteMode("tool.sh", "#!/bin/sh\n", 0o755)
	f.Write(".gitignore", "*.log\n")
	f.Symlink("README.md", "link")
	f.Commit("first")
	f.Git("branch", "side")
	f.Git("tag", "v1")
	f.Write("README.md", "stashed\n")
	f.Git("stash", "push", "-q")
	f.WriteMode(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
	f.Write("README.md", "hello\nunsaved\n")
	f.Write("untracked", "x")
	f.Write("debug.log", "ignored")
	f.Mkdir("empty")
	f.Write("kept/read-only", "y")
}}

// oftenAlike are the points that are reached for each file of a tree, for each
// artifact, and before each record or pack is in its place.
var oftenAlike = []string{"snapshot.", "artifacts.", "atomicfile.create", "atomicfile.written", "store.pack-written"}

func allButAlike(name string) int {
	if slices.ContainsFunc(oftenAlike, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return 2
	}
	return math.MaxInt
}

// pointsIn returns the failpoints of smallOrigin that one process writes into the
// file that variable names, all of them; of those in oftenAlike the first times.
func pointsIn(t *testing.T, variable, do string, mode superqode.Mode, prepare func(*gittest.Fixture)) []string {
	t.Helper()
	f := smallOrigin(t)
	if prepare != nil {
		prepare(f)
	}
	return reached(t, variable, allButAlike, func(log string) (int, string) { return child(t, f, do, mode, log, "SUPERQODE_TEST_SCRIPT="+wreck) })
}

// checkInPlace holds what must be true after a crash in the origin and a
// recovery: all of it as it was, times too, nothing of superqode's left, and
// artifacts whole or absent.
func checkInPlace(t *testing.T, f *gittest.Fixture, b before) {
	t.Helper()
	b.check(t, f)
	checkRecovered(t, f)
}

func checkRecovered(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	m := managerOf(f)
	sessions, broken, err := registry.List(t.Context(), m.Host, f.Dir, true)
	if err != nil || len(broken) > 0 {
		t.Fatalf("list: %v, broken: %+v", err, broken)
	}
	for _, l := range sessions {
		if l.State != superqode.StateDone {
			t.Errorf("session %s is %s after its recovery", l.ID, l.State)
		}
		if left, err := state.Names(l.Dir); err != nil || slices.Contains(left, "aside") || slices.Contains(left, "tmp") {
			t.Errorf("left in %s: %q (%v)", l.Dir, left, err)
		}
	}
	if left, err := state.Names(m.PointersPath()); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %q (%v)", m.PointersPath(), left, err)
	}
	store, err := artifacts.Open(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	check, err := store.Verify(t.Context())
	if err != nil || !check.OK() {
		t.Errorf("artifacts: %+v, %v", check, err)
	}
}

// Killed at any point, a git_snapshot session leaves an origin that the next
// command brings back.
func TestInPlaceKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	points := pointsIn(t, everyPoint, "run", superqode.ModeGitSnapshot, nil)
	mustReach(t, points, lifePoints...)
	mustReach(t, points, "inplace.pointed", "inplace.copied", "inplace.linked", "inplace.surveyed", "inplace.kept", "inplace.top", "inplace.neighbours", "salvage.contents", "salvage.committed",
		"salvage.recorded", "snapshot.erased", "revert.erased", "snapshot.replaced", "revert.written", "revert.adjusted", "revert.applied", "inplace.repository", "inplace.tree", "inplace.tree-done")
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := smallOrigin(t)
			b := remember(t, f)
			if code, out := child(t, f, "run", superqode.ModeGitSnapshot, "SUPERQODE_FAILPOINT="+point+"=kill", "SUPERQODE_TEST_SCRIPT="+wreck); code != -1 && code != 0 { // 0: a second less, and something is stored once instead of twice
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			if code, out := child(t, f, "recover", ""); code != 0 {
				t.Fatalf("recover: exit code %d\n%s", code, out)
			}
			checkInPlace(t, f, b)
		})
	}
}

// Killed again while the origin is brought back, at any point, it comes back the
// next time.
func TestInPlaceKilledWhileRecovering(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"collect.compared:1", "revert.erased:1", "revert.erased:2"} {
		was := map[string]before{}
		crashed := newStock(t, 2, func() *gittest.Fixture {
			f := smallOrigin(t)
			was[f.Dir] = remember(t, f)
			if code, out := child(t, f, "run", superqode.ModeGitSnapshot, "SUPERQODE_FAILPOINT="+first+"=kill", "SUPERQODE_TEST_SCRIPT="+wreck); code != -1 {
				t.Fatalf("%s: not killed: exit code %d\n%s", first, code, out)
			}
			return f
		})
		points := crashed.points(t, everyPoint, "recover", superqode.ModeWorktree, allButAlike)
		if first != "collect.compared:1" { // that one has the whole way down before it, and its end is theirs
			points = without(points, "atomicfile.", "store.", "artifacts.", "snapshot.", "end.")
		}
		for _, point := range points {
			t.Run(first+"/"+point, func(t *testing.T) {
				t.Parallel()
				f := crashed.take(t)
				b := was[f.Dir]
				if code, out := child(t, f, "recover", "", "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 && code != 0 {
					t.Fatalf("not killed: exit code %d\n%s", code, out)
				}
				if code, out := child(t, f, "recover", ""); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
				checkInPlace(t, f, b)
			})
		}
	}
}

// A full disk at any step ends in an error that says so, or not at all; once there
// is room the origin comes back.
func TestInPlaceFullDiskAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, point := range pointsIn(t, canFail, "run", superqode.ModeGitSnapshot, nil) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := smallOrigin(t)
			b := remember(t, f)
			code, out := child(t, f, "run", superqode.ModeGitSnapshot, "SUPERQODE_FAILPOINT="+point+"=enospc", "SUPERQODE_TEST_SCRIPT="+wreck)
			if code != 0 && code != 97 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			if code == 97 && !strings.Contains(out, "no space left") {
				t.Errorf("the error does not say why: %s", out)
			}
			if code, out := child(t, f, "recover", ""); code != 0 {
				t.Fatalf("recover: exit code %d\n%s", code, out)
			}
			endPreserved(t, f)
			checkInPlace(t, f, b)
		})
	}
}

// endPreserved ends what a failure preserved, as its error's hint says.
func endPreserved(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	m := managerOf(f)
	sessions, _, err := registry.List(t.Context(), m.Host, f.Dir, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range sessions {
		if l.State != superqode.StatePreserved {
			continue
		}
		s, err := m.Attach(t.Context(), f.Dir, l.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.End(t.Context(), EndOptions{}); err != nil || !res.Revert.Verified {
			t.Errorf("the second end: %v %+v", err, res)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		checkPatch(t, f, l.ID)
	}
}

// checkPatch looks for what the session had changed: a failure on the way must
// not lose it.
func checkPatch(t *testing.T, f *gittest.Fixture, id superqode.SessionID) {
	t.Helper()
	patch := f.Path(".superqode/qe-artifacts/" + artifacts.SessionPatch(id))
	if _, err := os.Stat(patch); err == nil {
		if out, err := exec.Command("git", "-C", f.Dir, "apply", "--check", patch).CombinedOutput(); err != nil {
			t.Errorf("the patch does not apply: %v\n%s", err, out)
		}
		return
	}
	list, err := gc.Salvages(t.Context(), managerOf(f).Host, f.Dir, false)
	if err != nil || len(list) == 0 {
		t.Errorf("neither patch nor salvage of what the session changed (%v)", err)
	}
}

// A shared session that was killed ends, and what its program did stays.
func TestSharedKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	points := pointsIn(t, everyPoint, "run", superqode.ModeShared, nil)
	for _, point := range without(points, "atomicfile.", "store.", "artifacts.", "snapshot.") { // as in every mode
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := smallOrigin(t)
			if code, out := child(t, f, "run", superqode.ModeShared, "SUPERQODE_FAILPOINT="+point+"=kill", "SUPERQODE_TEST_SCRIPT="+wreck); code != -1 && code != 0 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			left := f.Fingerprint(".superqode")
			if code, out := child(t, f, "recover", ""); code != 0 {
				t.Fatalf("recover: exit code %d\n%s", code, out)
			}
			gittest.Same(t, left, f.Fingerprint(".superqode"))
			checkRecovered(t, f)
		})
	}
}

// A revert that is killed, or finds the disk full, at any point is done by the
// next one; the session goes on.
func TestRevertFailingAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, in := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeWorktree} {
		was, opened := map[string]before{}, map[string]*Session{}
		wrecked := newStock(t, 4, func() *gittest.Fixture {
			f := smallOrigin(t)
			was[f.Dir] = remember(t, f)
			s := openSession(t, f, OpenOptions{Mode: in, Guard: GuardOptions{Off: true}})
			opened[f.Dir] = s
			cmd := exec.Command("sh", "-c", "SUPERQODE_ARTIFACT_DIR=.\n"+wreck)
			cmd.Dir, cmd.Env = string(s.Rec.Workspace), f.Env()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return f
		})
		for variable, how := range map[string]string{everyPoint: "kill", canFail: "enospc"} {
			points := wrecked.points(t, variable, "revert", superqode.ModeWorktree, allButAlike)
			if in == superqode.ModeWorktree { // records and stores are written as in place
				points = without(points, "atomicfile.", "store.", "artifacts.")
			}
			for _, point := range points {
				t.Run(string(in)+"/"+point+"/"+how, func(t *testing.T) {
					t.Parallel()
					f := wrecked.take(t)
					b, s := was[f.Dir], opened[f.Dir]
					if code, out := child(t, f, "revert", in, "SUPERQODE_FAILPOINT="+point+"="+how); code != -1 && code != 0 && (code != 97 || how == "kill") {
						t.Fatalf("exit code %d\n%s", code, out)
					}
					s, err := s.m.Attach(t.Context(), f.Dir, s.Rec.ID.String())
					if err != nil {
						t.Fatal(err)
					}
					res, err := s.Revert(t.Context(), mode.RevertOptions{How: revert.Full})
					if err != nil || !res.Verified {
						t.Fatalf("%v %+v", err, res)
					}
					end, err := s.End(t.Context(), EndOptions{})
					if err != nil || len(end.Changes) > 0 || !end.OriginCheck.Unchanged && in == superqode.ModeGitSnapshot {
						t.Errorf("%v %+v", err, end)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					if in == superqode.ModeGitSnapshot { // a worktree's program wrote objects and refs
						checkInPlace(t, f, b)
					} else {
						checkRecovered(t, f)
					}
				})
			}
		}
	}
}
