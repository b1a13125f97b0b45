//go:build failpoint

package life

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestSetupKilledAtEveryPoint holds that a setup that is killed is finished by
// the next one, repeats no command whose success was recorded, and leaves
// nothing that would count as the session's change.
func TestSetupKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	var points []string
	for _, p := range pointsOfSetup(t) {
		if strings.HasPrefix(p, "setup.") {
			points = append(points, p)
		}
	}
	mustReach(t, points, "setup.applied", "setup.recorded", "setup.effect", "setup.base")
	for _, nth := range []string{"setup.applied:3", "setup.recorded:3"} { // three entries
		if !slices.Contains(points, nth) {
			t.Fatalf("%s is not reached; those that are: %q", nth, points)
		}
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f, count := gittest.Dirty(t), t.TempDir()
			before := f.Fingerprint(".superqode", ".git/worktrees")
			if code, out := child(t, f, "setup", superqode.ModeWorktree, "SUPERQODE_TEST_COUNT="+count, "SUPERQODE_FAILPOINT="+point+"=kill"); code != -1 {
				t.Fatalf("not killed: %d\n%s", code, out)
			}
			if code, out := child(t, f, "setup", superqode.ModeWorktree, "SUPERQODE_TEST_COUNT="+count); code != 0 {
				t.Fatalf("not finished: %d\n%s", code, out)
			}
			for n := 1; n <= 2; n++ {
				want := 1
				if point == "setup.applied:"+string(rune('0'+n+1)) { // it had run, and nobody knows
					want = 2
				}
				if got := countRuns(t, count, n); got != want {
					t.Errorf("command %d ran %d times, want %d", n, got, want)
				}
			}
			s, err := setupManager(f).Attach(t.Context(), f.Dir, "")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{}, changedPaths(t, s)); d != "" {
				t.Error(d)
			}
			if _, err := s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil {
				t.Fatal(err)
			}
			checkAfterCrash(t, f, before)
		})
	}
}

func pointsOfSetup(t *testing.T) []string {
	count := t.TempDir()
	t.Helper()
	return pointsOf(t, "setup", superqode.ModeWorktree, 3, nil, "SUPERQODE_TEST_COUNT="+count)
}
