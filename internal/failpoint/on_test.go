//go:build failpoint

package failpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

func TestActions(t *testing.T) {
	for _, tt := range []struct { // a name each: hits are counted for the life of the process
		name, spec string
		want       error
	}{
		{"none", "", nil},
		{"other", "elsewhere=error", nil},
		{"fails", "fails=error", failpoint.ErrInjected},
		{"full", "full=enospc", syscall.ENOSPC},
		{"paused", "paused=pause:1ns", nil},
		{"later", "later:2=error", nil},
	} {
		t.Setenv("SUPERQODE_FAILPOINT", tt.spec)
		if err := failpoint.Err(tt.name); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.spec, err, tt.want)
		}
	}
}

func TestCountsFromOne(t *testing.T) {
	t.Setenv("SUPERQODE_FAILPOINT", "counted:3=error")
	for i := 1; i <= 4; i++ {
		if err := failpoint.Err("counted"); (err != nil) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestTypingErrorPanics holds that a test with a misspelt action does not pass
// for one that ran.
func TestTypingErrorPanics(t *testing.T) {
	for _, spec := range []string{"typo=kil", "typo=pause:soon", "typo:x=error", "typo:0=error"} {
		t.Run(spec, func(t *testing.T) {
			t.Setenv("SUPERQODE_FAILPOINT", spec)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			failpoint.Hit("typo")
		})
	}
}

func TestLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("SUPERQODE_FAILPOINT_LOG", log)
	failpoint.Hit("one")
	failpoint.Hit("two")
	if got, err := os.ReadFile(log); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("log is %q, %v", got, err)
	}
	t.Setenv("SUPERQODE_FAILPOINT_ERRORS", log)
	t.Setenv("SUPERQODE_FAILPOINT_LOG", "")
	failpoint.Hit("three")
	if err := failpoint.Err("four"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(log); err != nil || string(got) != "one\ntwo\nfour\n" {
		t.Errorf("log is %q, %v", got, err)
	}
}
