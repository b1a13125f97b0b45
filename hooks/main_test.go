package hooks_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// helperName is this test binary in the folder of a session.
const helperName = "session-helper"

// TestMain is also the helper of every session that a test makes: git starts this
// binary under the name of a hook from the session's folder.
func TestMain(m *testing.M) {
	exe, err := os.Executable()
	if name := filepath.Base(exe); err == nil && (name == helperName || name == "reference-transaction") {
		dir, err := os.Getwd()
		if err != nil {
			dir = ""
		}
		os.Exit(hooks.Answer(context.Background(), hooks.Call{
			Exe: exe, Name: filepath.Base(os.Args[0]), Args: os.Args[1:], Env: os.Environ(), Dir: dir, In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		}))
	}
	gittest.LeaveSession()
	os.Exit(m.Run())
}
