package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/overlay"
	"github.com/seed-2d964004/superqode/internal/program"
)

// The test binary stands in for superqode where a whole process is needed: one
// that is killed, or one that takes locks.
func TestMain(m *testing.M) {
	switch os.Getenv("SUPERQODE_TEST_DO") {
	case "":
		gittest.LeaveSession()
		os.Exit(withShim(m))
	case "run":
		os.Exit(childRun())
	case "recover":
		os.Exit(childRecover())
	case "revert":
		os.Exit(childRevert())
	case "cleanup", "restore", "fix":
		os.Exit(childKeep(os.Getenv("SUPERQODE_TEST_DO")))
	case "team":
		os.Exit(childTeam())
	case "agents":
		os.Exit(childAgents())
	case "edits":
		os.Exit(childEdits())
	case "apply":
		os.Exit(childApply())
	case "apply-commits":
		os.Exit(childApplyCommits())
	case "setup":
		os.Exit(childSetup())
	}
	os.Exit(99)
}

// shim is the binary that mounts overlays, "" where there can be none; only sessions of
// overlay mode get it.
var shim string

func withShim(m *testing.M) int {
	return gittest.WithShim(func(built string) int {
		if err := overlay.Check(context.Background(), built, os.TempDir()); err != nil {
			fmt.Fprintln(os.Stderr, "no overlay mode in these tests:", err)
			return m.Run()
		}
		if shim = built; os.Setenv(gittest.ShimVariable, shim) != nil {
			return 1
		}
		return m.Run()
	})
}

func childManager() *Manager {
	return NewManager(Config{Home: os.Getenv("SUPERQODE_HOME"), Env: os.Environ(), Shim: os.Getenv(gittest.ShimVariable), Log: zerolog.Nop(), Warn: func(s string) { fmt.Fprintln(os.Stderr, s) }})
}

// unruly is the program of every test session: it changes, makes and deletes,
// and leaves an artifact.
const unruly = `echo changed >> README.md && rm -f tool.sh && mkdir -p new/dir && echo new > new/dir/file && mkdir -p "$SUPERQODE_ARTIFACT_DIR/evidence" && echo shot > "$SUPERQODE_ARTIFACT_DIR/evidence/note.txt"`

func childRun() int {
	m := childManager()
	as, err := superqode.ParseMode(os.Getenv("SUPERQODE_TEST_MODE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	open, script := OpenOptions{Dir: os.Getenv("SUPERQODE_TEST_DIR"), Mode: as, Exclude: []string{".git/**"}}, unruly
	if mode.Of(as).InPlace {
		open.Guard.Off, open.Enforce = true, kernel.EnforceOff
	}
	if own := os.Getenv("SUPERQODE_TEST_SCRIPT"); own != "" {
		script = own
	}
	res, err := m.Run(context.Background(), open, program.ExecOptions{Args: []string{"sh", "-c", script}, Stdout: os.Stderr, Stderr: os.Stderr, Signals: childSignals()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return res.ExitCode
}

// childSignals are those that a test sends.
func childSignals() <-chan os.Signal {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return ch
}

// childRevert brings the only open session's workspace back.
func childRevert() int {
	s, err := childManager().Attach(context.Background(), os.Getenv("SUPERQODE_TEST_DIR"), "")
	if err == nil {
		_, err = s.Revert(context.Background(), mode.RevertOptions{})
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}

func childRecover() int {
	done, err := childManager().Recover(context.Background(), os.Getenv("SUPERQODE_TEST_DIR"), "")
	for _, r := range done {
		fmt.Fprintln(os.Stderr, r.ID, r.Action, r.Err)
		if err == nil {
			err = r.Err
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}

// childApplyCommits puts the session's commits on the origin's branch.
func childApplyCommits() int {
	if _, _, err := childManager().ApplyCommits(context.Background(), os.Getenv("SUPERQODE_TEST_DIR"), os.Getenv("SUPERQODE_TEST_SESSION"), false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
