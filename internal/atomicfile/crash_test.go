//go:build failpoint

package atomicfile_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// TestMain doubles as the process that is killed: with a target in the
// environment it writes there and exits.
func TestMain(m *testing.M) {
	if p := os.Getenv("ATOMICFILE_TEST_TARGET"); p != "" {
		if err := atomicfile.Write(p, []byte("new"), 0o600); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilledAtEveryPoint holds that the file is the old one or the new one after
// a kill at any step, and that an injected error leaves nothing behind.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ failpoint, want, stderr string }{
		{"atomicfile.create=kill", "old", ""},
		{"atomicfile.create=error", "old", "atomicfile.create: injected failure"},
		{"atomicfile.create=enospc", "old", "no space left on device"},
		{"atomicfile.written=kill", "old", ""},
		{"atomicfile.renamed=kill", "new", ""},
		{"atomicfile.renamed:2=kill", "new", "-"},
	} {
		t.Run(tt.failpoint, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, log := filepath.Join(dir, "f"), filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(p, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_TARGET="+p, "SUPERQODE_FAILPOINT="+tt.failpoint, "SUPERQODE_FAILPOINT_LOG="+log)
			cmd.Stderr = &stderr
			err := cmd.Run()
			exit, _ := errors.AsType[*exec.ExitError](err)
			switch {
			case tt.stderr == "-":
				if err != nil {
					t.Errorf("ended with %v", err)
				}
			case tt.stderr != "":
				if exit == nil || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), tt.stderr) {
					t.Errorf("ended with %v: %s", err, stderr.String())
				}
			default:
				if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Errorf("ended with %v, not killed", err)
				}
			}
			if got, err := os.ReadFile(p); err != nil || string(got) != tt.want {
				t.Errorf("read %q, %v, want %q", got, err, tt.want)
			}
			if got, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(got), "atomicfile.create\n") {
				t.Errorf("log is %q, %v", got, err)
			}
		})
	}
}
