//go:build failpoint

package life

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/registry"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/state"
)

// child runs one superqode process on the fixture.
func child(t *testing.T, f *gittest.Fixture, do string, mode superqode.Mode, env ...string) (code int, output string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = f.Env(append(env, "SUPERQODE_TEST_DO="+do, "SUPERQODE_TEST_DIR="+f.Dir, "SUPERQODE_TEST_MODE="+string(mode), shimFor(mode))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the exit code is looked at below
	return cmd.ProcessState.ExitCode(), out.String()
}

// shimFor is the part of the environment in which a child process finds it.
func shimFor(as superqode.Mode) string {
	if !mode.Of(as).Mounted {
		return gittest.ShimVariable + "="
	}
	return gittest.ShimVariable + "=" + shim
}

// The variables that name the file for the points that a process reaches: all of
// them, or those that can fail. A full disk changes nothing at the others.
const (
	everyPoint = "SUPERQODE_FAILPOINT_LOG"
	canFail    = "SUPERQODE_FAILPOINT_ERRORS"
)

// pointsOf returns the failpoints that one process reaches, the n-th time of one
// as "name:n", up to the given number of times: the later ones of a loop are alike.
func pointsOf(t *testing.T, do string, mode superqode.Mode, times int, prepare func(*gittest.Fixture), env ...string) []string {
	t.Helper()
	f := gittest.Dirty(t)
	if prepare != nil {
		prepare(f)
	}
	return reached(t, everyPoint, func(string) int { return times }, func(log string) (int, string) { return child(t, f, do, mode, append(env, log)...) })
}

// pointsThatFail are those of pointsOf that can fail.
func pointsThatFail(t *testing.T, do string, mode superqode.Mode) []string {
	t.Helper()
	f := gittest.Dirty(t)
	return reached(t, canFail, once, func(log string) (int, string) { return child(t, f, do, mode, log) })
}

// stock is a few fixtures that take longer to prepare than the test of one point does
// otherwise. Each is handed out again and again, as it was when it was prepared.
type stock chan prepared

type prepared struct {
	f    *gittest.Fixture
	copy string // of the folders that hold its directory and its home
}

func newStock(t *testing.T, n int, prepare func() *gittest.Fixture) stock {
	t.Helper()
	s := make(stock, n)
	for range n {
		p := prepared{prepare(), t.TempDir()}
		shell(t, `cp -a "$1" "$2" "$3"`, filepath.Dir(p.f.Dir), p.f.Home, p.copy)
		s <- p
	}
	return s
}

// restore returns the fixture as it was prepared, at the place that its sessions wrote
// down, with its times and hard links; only the inodes are new.
func (p prepared) restore(t *testing.T) *gittest.Fixture {
	t.Helper()
	shell(t, `chmod -R u+rwx "$1" "$2" && rm -rf "$1" "$2" && cp -a "$3"/. "$4"`, filepath.Dir(p.f.Dir), p.f.Home, p.copy, filepath.Dir(p.f.Home))
	return p.f.For(t)
}

// dirtyStock prepares dirty fixtures whose origin is not changed by that.
func dirtyStock(t *testing.T, n int, prepare func(*gittest.Fixture)) stock {
	t.Helper()
	return newStock(t, n, func() *gittest.Fixture {
		f := gittest.Dirty(t)
		before := f.Fingerprint(".superqode", ".git/worktrees")
		prepare(f)
		gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
		return f
	})
}

// take waits for a fixture, which is the test's until it ends.
func (s stock) take(t *testing.T) *gittest.Fixture {
	t.Helper()
	p := <-s
	t.Cleanup(func() { s <- p })
	return p.restore(t)
}

// points returns the points that variable is about and that a process reaches, each up
// to as many times as times says.
func (s stock) points(t *testing.T, variable, do string, mode superqode.Mode, times func(name string) int) []string {
	t.Helper()
	p := <-s
	defer func() { s <- p }()
	f := p.restore(t)
	return reached(t, variable, times, func(log string) (int, string) { return child(t, f, do, mode, log) })
}

func once(string) int { return 1 }

// reached runs a process to its end and returns the points that it writes into the
// file that variable names, each up to as many times as times says.
func reached(t *testing.T, variable string, times func(name string) int, run func(env string) (int, string)) []string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "points")
	if code, out := run(variable + "=" + log); code != 0 {
		t.Fatalf("without a fault: exit code %d\n%s", code, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	var points []string
	for name := range strings.FieldsSeq(string(data)) {
		if seen[name]++; seen[name] <= times(name) {
			points = append(points, fmt.Sprintf("%s:%d", name, seen[name]))
		}
	}
	return points
}

// without leaves out the points of a package whose writes have been cut short at
// each of them elsewhere.
func without(points []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(p string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p, prefix) })
	})
}

// lifePoints are the steps of every session's life.
var lifePoints = []string{"atomicfile.renamed", "open.folders", "store.filled", "store.pack-renamed", "open.stored", "open.active", "end.collecting", "collect.compared",
	"artifacts.placed", "artifacts.manifest.renamed", "collect.stored", "end.reverting", "end.checked", "end.reported", "end.finished", "end.unpointed", "end.trashed"}

// mustReach holds that a process came by the steps that a test is about: with fewer
// points it would test less and pass.
func mustReach(t *testing.T, points []string, names ...string) {
	t.Helper()
	for _, name := range names {
		if !slices.Contains(points, name+":1") {
			t.Errorf("point %s is not reached; those that are: %q", name, points)
		}
	}
}

// checkOrigin holds what must be true after a crash and a recovery: the origin as
// it was, no worktree, no session that is neither ended nor preserved, and an
// artifact store without half files.
func checkAfterCrash(t *testing.T, f *gittest.Fixture, before gittest.Print) {
	t.Helper()
	gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
	m := NewManager(Config{Home: f.Home + "/.superqode", Env: f.Env()})
	m.Home = superqode.Getenv(f.Env(), "SUPERQODE_HOME")
	sessions, broken, err := registry.List(t.Context(), m.Host, f.Dir, false)
	if err != nil || len(broken) > 0 {
		t.Fatalf("list: %v, broken: %+v", err, broken)
	}
	var kept []string
	for _, l := range sessions {
		if !l.State.Ended() {
			t.Errorf("session %s is %s after its recovery", l.ID, l.State)
		}
		if l.State == superqode.StatePreserved {
			kept = append(kept, l.ID.String())
		}
	}
	admin, err := state.Names(filepath.Join(f.Dir, ".git", "worktrees"))
	if err != nil || len(admin) > len(kept) || len(admin) > 0 && !slices.Equal(admin, kept) {
		t.Errorf("worktrees left: %q, preserved sessions: %q (%v)", admin, kept, err)
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

// isolated are the modes whose sessions leave the origin alone, and how often one point
// counts in each.
func isolated() map[superqode.Mode]int {
	modes := map[superqode.Mode]int{superqode.ModeWorktree: 3, superqode.ModeSnapshot: 1, superqode.ModeDirectory: 1}
	if shim != "" {
		modes[superqode.ModeOverlay] = 1
	}
	return modes
}

// Killed at any point, a session leaves the origin as it was, and the next
// command brings order.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for mode, times := range isolated() {
		points := pointsOf(t, "run", mode, times, nil)
		mustReach(t, points, lifePoints...)
		mustReach(t, points, map[superqode.Mode][]string{
			superqode.ModeWorktree: {"worktree.add", "worktree.added", "worktree.copied", "worktree.indexed", "worktree.renamed", "worktree.admin", "worktree.removed"},
			superqode.ModeOverlay:  {"frozen.made", "overlay.made"},
		}[mode]...)
		if mode != superqode.ModeWorktree {
			points = without(points, "atomicfile.", "store.", "artifacts.") // the records, stores and artifacts of all modes are written alike
		}
		for _, point := range points {
			t.Run(string(mode)+"/"+point, func(t *testing.T) {
				t.Parallel()
				f := gittest.Dirty(t)
				before := f.Fingerprint(".superqode", ".git/worktrees")
				if code, out := child(t, f, "run", mode, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
					t.Fatalf("not killed: exit code %d\n%s", code, out)
				}
				if code, out := child(t, f, "recover", mode); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
				checkAfterCrash(t, f, before)
				if mode != superqode.ModeOverlay {
					return
				}
				if code, out := child(t, f, "run", mode); code != 0 { // on no state that is half made
					t.Fatalf("the next session: exit code %d\n%s", code, out)
				}
				checkAfterCrash(t, f, before)
			})
		}
	}
}

// Killed again while it recovers, at any point, it recovers the next time.
func TestKilledWhileRecovering(t *testing.T) {
	t.Parallel()
	firsts := map[superqode.Mode][]string{superqode.ModeWorktree: {"open.active:1", "end.collecting:1", "end.reverting:1", "end.removed:1", "worktree.copied:1"}}
	if shim != "" {
		firsts[superqode.ModeOverlay] = []string{"open.active:1", "end.collecting:1", "end.reverting:1", "overlay.made:1"}
	}
	for mode, list := range firsts {
		for _, first := range list {
			crashed := dirtyStock(t, 2, func(f *gittest.Fixture) {
				if code, out := child(t, f, "run", mode, "SUPERQODE_FAILPOINT="+first+"=kill"); code != -1 {
					t.Fatalf("%s: not killed: exit code %d\n%s", first, code, out)
				}
			})
			points := crashed.points(t, everyPoint, "recover", mode, once)
			if first != "open.active:1" || mode != superqode.ModeWorktree { // that one has the whole way down before it
				points = without(points, "atomicfile.", "store.", "artifacts.")
			}
			for _, point := range points {
				t.Run(string(mode)+"/"+first+"/"+point, func(t *testing.T) {
					t.Parallel()
					f := crashed.take(t)
					before := f.Fingerprint(".superqode", ".git/worktrees")
					if code, out := child(t, f, "recover", mode, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 && code != 0 { // 0: what was stored in the same second is not stored again
						t.Fatalf("not killed: exit code %d\n%s", code, out)
					}
					if code, out := child(t, f, "recover", mode); code != 0 {
						t.Fatalf("recover: exit code %d\n%s", code, out)
					}
					checkAfterCrash(t, f, before)
				})
			}
		}
	}
}

// A full disk at any step ends in an error, with the origin as it was.
func TestFullDiskAtEveryPoint(t *testing.T) {
	t.Parallel()
	for mode := range isolated() {
		points := pointsThatFail(t, "run", mode)
		if mode != superqode.ModeWorktree {
			points = without(points, "store.", "artifacts.")
		}
		for _, point := range points {
			t.Run(string(mode)+"/"+point, func(t *testing.T) {
				t.Parallel()
				f := gittest.Dirty(t)
				before := f.Fingerprint(".superqode", ".git/worktrees")
				code, out := child(t, f, "run", mode, "SUPERQODE_FAILPOINT="+point+"=enospc")
				if code != 0 && code != 97 {
					t.Fatalf("exit code %d\n%s", code, out)
				}
				if code == 97 && !strings.Contains(out, "no space left") {
					t.Errorf("the error does not say why: %s", out)
				}
				if code, out := child(t, f, "recover", mode); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
				checkAfterCrash(t, f, before)
			})
		}
	}
}
