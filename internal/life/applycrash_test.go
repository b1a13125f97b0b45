//go:build failpoint

package life

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// crashChange is small, and has one of every kind of step in it.
func crashChange(ws *gittest.Fixture) {
	ws.Write("README.md", "# fixture\n\nOne.\nTwo changed.\nThree.\n")
	ws.WriteMode("tool.sh", "#!/bin/sh\necho tool\n", 0o644)
	text := ws.Read("src/deep/er/lib.go")
	ws.Remove("src/deep")
	ws.Write("moved/lib.go", text)
	both := ws.Read("both.txt")
	ws.Remove("both.txt")
	ws.Write("both.txt/inner", both)
	ws.Remove("new-folder")
	ws.Write("new-folder", "a file in a folder's place\n")
	ws.Remove("link")
	ws.Symlink("src", "link")
}

// crashTest opens a session with crashChange on a small repository, with an edit
// of the origin's that has to be merged.
func crashTest(t *testing.T) *applyTest {
	t.Helper()
	f := gittest.Repo(t)
	f.Write("README.md", "# fixture\n\nOne.\nTwo.\nThree.\n")
	f.WriteMode("tool.sh", "#!/bin/sh\necho tool\n", 0o755)
	f.Write("src/deep/er/lib.go", "package er\n\n// Lib is here.\nvar Lib = 1\n")
	f.Write("both.txt", "becomes a folder\n")
	f.Symlink("README.md", "link")
	f.Commit("first")
	f.Write("new-folder/inner/untracked.go", "package inner\n")
	f.WriteMode("new-folder/run.sh", "#!/bin/sh\n", 0o755)
	a := openApply(t, f, superqode.ModeWorktree, crashChange)
	a.Write("README.md", "# fixture, edited\n\nOne.\nTwo.\nThree.\n")
	return a
}

// child runs superqode's test binary on the session.
func (a *applyTest) child(do string, env ...string) (int, string) {
	a.t.Helper()
	return child(a.t, a.Fixture, do, superqode.ModeWorktree, append(env, "SUPERQODE_TEST_SESSION="+a.id)...)
}

// tree is everything in the origin but what sessions keep there.
func (a *applyTest) tree() gittest.Print {
	return a.Fingerprint(".superqode", ".git/worktrees")
}

// applyPoints returns the failpoints that a child reaches after prepare: those of
// the apply itself up to the given number of times, others once.
func applyPoints(t *testing.T, do string, times int, prepare func(*applyTest)) []string {
	t.Helper()
	a := crashTest(t)
	if prepare != nil {
		prepare(a)
	}
	limit := func(name string) int {
		if strings.HasPrefix(name, "apply.") {
			return times
		}
		return 1
	}
	return reached(t, everyPoint, limit, func(log string) (int, string) { return a.child(do, log) })
}

// applied is what the origin is like when all of it was applied.
func applied(t *testing.T) gittest.Print {
	t.Helper()
	a := crashTest(t)
	a.mustApply(apply.Options{})
	return noGit(a.tree())
}

// noGit leaves git's own files out, for comparisons between two origins.
func noGit(p gittest.Print) gittest.Print {
	out := gittest.Print{}
	for path, facts := range p {
		if path != ".git" && !strings.HasPrefix(path, ".git/") {
			out[path] = facts
		}
	}
	return out
}

// checkWhole holds what must be true after a crash and the next command: all of
// it or none of it, git's own files untouched, nothing left over, and an apply
// that works.
func (a *applyTest) checkWhole(before, after gittest.Print, name string) {
	a.t.Helper()
	a.checkClean()
	now := a.tree()
	for path, facts := range before {
		if strings.HasPrefix(path, ".git/") && now[path] != facts {
			a.t.Errorf("%s: %s of git's own changed", name, path)
		}
	}
	old, done := noGit(before).Diff(noGit(now)), after.Diff(noGit(now))
	if len(old) > 0 && len(done) > 0 {
		a.t.Errorf("%s: half. Not as before:\n%s\nnot as after:\n%s", name, strings.Join(old, "\n"), strings.Join(done, "\n"))
	}
	if code, out := a.child("apply"); code != 0 {
		a.t.Errorf("%s: apply afterwards: exit code %d\n%s", name, code, out)
	}
	if d := after.Diff(noGit(a.tree())); len(d) > 0 {
		a.t.Errorf("%s: apply afterwards:\n%s", name, strings.Join(d, "\n"))
	}
	a.checkClean()
}

// Killed at any point, an apply is whole after the next command: recover, or
// just another apply.
func TestApplyKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	points := applyPoints(t, "apply", 2, nil)
	for _, want := range []string{"apply.stage:1", "apply.exchanged:1", "apply.parked:1", "apply.put:1", "apply.remove:1", "apply.rmdir:1", "apply.mkdir:1", "apply.chmod:1", "apply.cleaned:1", "salvage.recorded:1"} {
		if !slices.Contains(points, want) {
			t.Fatalf("%s is not reached: %q", want, points)
		}
	}
	after := applied(t)
	for i, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := crashTest(t)
			before := a.tree()
			if code, out := a.child("apply", "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			if i%2 == 0 {
				if code, out := a.child("recover"); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
			} else if _, err := a.m.Attach(t.Context(), a.Dir, a.id); err != nil { // any command that looks at the session
				t.Fatal(err)
			}
			a.sweep()
			a.checkWhole(before, after, point)
		})
	}
}

// sweep removes the scratch folder of an apply that was killed before it began:
// the next apply does that, and these tests look before it.
func (a *applyTest) sweep() {
	l, err := a.m.Find(a.t.Context(), a.Dir, a.id)
	if err != nil {
		a.t.Fatal(err)
	}
	apply.Sweep(l.Dir)
}

// A full disk, or any other failure, at any step leaves the origin as it was.
func TestApplyFailsAtEveryPoint(t *testing.T) {
	t.Parallel()
	after := applied(t)
	for _, point := range []string{ // those that can fail
		"apply.stage:1", "apply.stage:3", "apply.put:1", "apply.put:4", "apply.remove:1", "apply.remove:3", "apply.rmdir:1", "apply.mkdir:2", "apply.chmod:1",
		"atomicfile.create:1", "atomicfile.create:2", "atomicfile.create:3", "atomicfile.create:4", "atomicfile.create:5", "atomicfile.create:6", "atomicfile.create:7",
		"atomicfile.create:8",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := crashTest(t)
			before := a.tree()
			code, out := a.child("apply", "SUPERQODE_FAILPOINT="+point+"=enospc")
			if code != 97 || !strings.Contains(out, "no space left") {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			if d := before.Diff(a.tree()); len(d) > 0 {
				t.Errorf("the origin was changed:\n%s", strings.Join(d, "\n"))
			}
			a.checkWhole(before, after, point)
		})
	}
}

// Killed again while it is finished, at any point, it is finished the next time.
func TestApplyKilledWhileFinishing(t *testing.T) {
	t.Parallel()
	after := applied(t)
	for _, first := range []string{"apply.begun:1", "apply.parked:1", "apply.cleaning:1"} {
		crash := func(a *applyTest) {
			if code, out := a.child("apply", "SUPERQODE_FAILPOINT="+first+"=kill"); code != -1 {
				t.Fatalf("%s: not killed: exit code %d\n%s", first, code, out)
			}
		}
		for _, point := range applyPoints(t, "recover", 1, crash) {
			t.Run(first+"/"+point, func(t *testing.T) {
				t.Parallel()
				a := crashTest(t)
				before := a.tree()
				crash(a)
				if code, out := a.child("recover", "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
					t.Fatalf("not killed: exit code %d\n%s", code, out)
				}
				if code, out := a.child("recover"); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
				a.checkWhole(before, after, point)
			})
		}
	}
}

// When somebody changed a path after the crash, it cannot go forward: everything
// else is taken back, also when that is killed at any point, and their change
// stays.
func TestApplyKilledWhileTakenBack(t *testing.T) {
	t.Parallel()
	const first = "apply.exchanged:1"
	crash := func(a *applyTest) {
		if code, out := a.child("apply", "SUPERQODE_FAILPOINT="+first+"=kill"); code != -1 {
			t.Fatalf("not killed: exit code %d\n%s", code, out)
		}
		a.WriteMode("tool.sh", "edited after the crash\n", 0o755) // its bits come last
	}
	points := applyPoints(t, "recover", 1, crash)
	if !slices.Contains(points, "apply.undo.put:1") || !slices.Contains(points, "apply.undone:1") {
		t.Fatalf("it was not taken back: %q", points)
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := crashTest(t)
			before := a.tree()
			crash(a)
			if code, out := a.child("recover", "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			if code, out := a.child("recover"); code != 0 {
				t.Fatalf("recover: exit code %d\n%s", code, out)
			}
			a.checkClean()
			if got := a.Read("tool.sh"); got != "edited after the crash\n" {
				t.Errorf("the edit is gone: %q", got)
			}
			a.WriteMode("tool.sh", "#!/bin/sh\necho tool\n", 0o755)
			if d := before.Diff(a.tree()); len(d) > 0 {
				t.Errorf("not taken back:\n%s", strings.Join(d, "\n"))
			}
		})
	}
}
