package install_test

import (
	"os"
	"testing"

	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestMain is also the helper that the installed hooks call, and an installer that
// is killed.
func TestMain(m *testing.M) {
	if exe, err := os.Executable(); err == nil && len(os.Args) > 1 && os.Args[1] == hooks.InstalledCommand {
		os.Exit(answerInstalled(exe))
	}
	if how := os.Getenv("SUPERQODE_TEST_INSTALLER"); how != "" {
		os.Exit(installerProcess(how))
	}
	gittest.LeaveSession()
	os.Exit(m.Run())
}
