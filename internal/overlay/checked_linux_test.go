package overlay

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChecked holds that a yes is believed as long as nothing that it depends on has
// changed, that a no never is, and that Check itself believes nothing.
func TestChecked(t *testing.T) {
	t.Parallel()
	home, self := t.TempDir(), t.TempDir()+"/helper"
	exe, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(exe)
	must(t, err)
	must(t, os.WriteFile(self, data, 0o700))
	file := home + "/file" // of the same device, and whoever tries there fails
	write(t, file, "")
	asked := func(when string, want bool) {
		t.Helper()
		if err := Checked(t.Context(), self, file, home); errors.Is(err, unix.ENOTDIR) != want || err != nil != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	yes := func() {
		t.Helper()
		must(t, Checked(t.Context(), self, home, home))
		asked("after a yes", false)
	}
	asked("at first", true)
	asked("after a no", true)
	yes()
	if err := Check(t.Context(), self, file); err == nil {
		t.Error("Check believes what is written")
	}
	must(t, os.Chtimes(self, time.Time{}, time.Unix(1, 0))) // the change time follows
	asked("with another helper", true)
	yes()
	must(t, Forget(home))
	asked("when a mount failed", true)
	must(t, Forget(home))
	yes()
	note, err := os.ReadFile(checkNote(home))
	must(t, err)
	for _, damaged := range []string{"", "\n", string(note[1:]), string(note[:len(note)-2])} {
		must(t, os.WriteFile(checkNote(home), []byte(damaged), 0o600))
		asked("with a damaged note", true)
	}
	yes()
	must(t, os.Remove(self))
	if err := Checked(t.Context(), self, home, home); err == nil {
		t.Error("without a helper there is a yes")
	}
	if err := Checked(t.Context(), "", home, home); err == nil {
		t.Error("with no helper named there is a yes")
	}
}
