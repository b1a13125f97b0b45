//go:build failpoint

package life

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Killed at any point, a session of several agents leaves the origin as it was,
// a recovery brings every part of it to an end, and what an agent had written is
// in a patch or in a workspace that is kept.
func TestAgentsKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	twice := func(name string) int {
		if strings.HasPrefix(name, "agents.") {
			return 2
		}
		return 1
	}
	points := reached(t, everyPoint, twice, func(log string) (int, string) { return child(t, f, "team", superqode.ModeWorktree, log) })
	mustReach(t, points, lifePoints...)
	mustReach(t, points, "agents.recorded", "agents.opened", "agents.looked", "agents.merged", "agents.stored", "agents.settled", "agents.gathered", "agents.taken", "agents.forgotten")
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "team", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: exit code %d\n%s", code, out)
			}
			for range 2 { // the second finds nothing to do, or finishes what the first cleared the way for
				if code, out := child(t, f, "recover", superqode.ModeWorktree); code != 0 {
					t.Fatalf("recover: exit code %d\n%s", code, out)
				}
			}
			checkAgentsAfterCrash(t, f, before)
		})
	}
}

// A full disk at any step ends in an error, and nothing is lost either.
func TestAgentsFullDiskAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, point := range pointsThatFail(t, "team", superqode.ModeWorktree) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "team", superqode.ModeWorktree, "SUPERQODE_FAILPOINT="+point+"=enospc"); code != 0 && code != 97 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			if code, out := child(t, f, "recover", superqode.ModeWorktree); code != 0 {
				t.Fatalf("recover: exit code %d\n%s", code, out)
			}
			checkAgentsAfterCrash(t, f, before)
		})
	}
}

func checkAgentsAfterCrash(t *testing.T, f *gittest.Fixture, before gittest.Print) {
	t.Helper()
	gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
	own := superqode.Getenv(f.Env(), "SUPERQODE_HOME")
	dirs, err := filepath.Glob(filepath.Join(own, "working", "*", "sessions", "*"))
	if err != nil {
		t.Fatal(err)
	}
	sessions, broken := state.LoadAll(dirs)
	if len(broken) > 0 {
		t.Errorf("broken: %+v", broken)
	}
	var kept []string
	for _, l := range sessions {
		if !l.State.Ended() {
			t.Errorf("session %s of agent %q is %s after its recovery", l.ID, l.Agent, l.State)
		}
		if l.State == superqode.StatePreserved {
			kept = append(kept, l.ID.String())
		}
	}
	admin, err := state.Names(filepath.Join(f.Dir, ".git", "worktrees"))
	for _, id := range admin {
		if !slices.Contains(kept, id) {
			t.Errorf("git keeps a worktree of %s, which is none of the preserved %q (%v)", id, kept, err)
		}
	}
	store, err := artifacts.Open(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if check, err := store.Verify(t.Context()); err != nil || !check.OK() {
		t.Errorf("artifacts: %+v, %v", check, err)
	}
	checkTokens(t, f, own)
}

// checkTokens looks for what the agents wrote, if they came to it: each leaves a
// note outside of the session when it has.
func checkTokens(t *testing.T, f *gittest.Fixture, home string) {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{
		filepath.Join(f.Dir, ".superqode", "qe-artifacts", "patches", "*.patch"),
		filepath.Join(home, "working", "*", "qe", "*", "README.md"),
	} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
	}
	for _, token := range []string{"ALICE", "BOB"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(f.Dir), token)); err == nil && !strings.Contains(all.String(), token) {
			t.Errorf("what wrote %s is in no patch and in no workspace", token)
		}
	}
}
