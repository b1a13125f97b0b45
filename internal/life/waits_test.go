//go:build failpoint

package life

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// waits runs a session and returns the names of what it waited for the disk with: a
// file that is being written by the name that it gets.
func waits(t *testing.T, f *gittest.Fixture, mode superqode.Mode, env ...string) (names []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "waits")
	if code, out := child(t, f, "run", mode, append(env, "SUPERQODE_FAILPOINT_WAITS="+log)...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	temp := regexp.MustCompile(`^\.(.*)\.tmp-\d+$`)
	for line := range strings.Lines(string(data)) {
		names = append(names, temp.ReplaceAllString(filepath.Base(strings.TrimSpace(line)), "$1"))
	}
	return names
}

// TestWaits holds how often a session waits for the disk, and that it does for what
// must be there after a power cut, see package atomicfile.
func TestWaits(t *testing.T) {
	t.Parallel()
	f := gittest.Many(t, 20)
	quiet := "SUPERQODE_TEST_SCRIPT=exit 0"
	for _, most := range []int{14, 12} { // the first makes the project
		if names := waits(t, f, superqode.ModeWorktree, quiet); len(names) > most {
			t.Errorf("a session that changes nothing waits %d times, not %d: %q", len(names), most, names)
		}
	}
	list := []string{"session.json", "the session's folder", "changes.json", "pack", "final", "."} // the last is a folder of artifacts
	for mode, list := range map[superqode.Mode][]string{
		superqode.ModeWorktree:    list,
		superqode.ModeGitSnapshot: append(list, "base.snap", "git.snap", "ignored", "inplace"),
	} {
		names := waits(t, gittest.Dirty(t), mode)
		for i, name := range names {
			if _, err := superqode.ParseSessionID(name); err == nil {
				names[i] = "the session's folder"
			}
		}
		for _, name := range list {
			if !slices.Contains(names, name) {
				t.Errorf("%s: nobody waits for %s: %q", mode, name, names)
			}
		}
	}
}
