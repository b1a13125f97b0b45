package session

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"github.com/seed-2d964004/superqode"
)

// The test binary stands in for superqode where a whole process is needed: one
// that is killed, or one that takes locks.
func TestMain(m *testing.M) {
	switch os.Getenv("SUPERQODE_TEST_DO") {
	case "":
		os.Exit(m.Run())
	case "run":
		os.Exit(childRun())
	case "recover":
		os.Exit(childRecover())
	case "cleanup", "restore", "fix":
		os.Exit(childKeep(os.Getenv("SUPERQODE_TEST_DO")))
	case "apply":
		os.Exit(childApply())
	}
	os.Exit(99)
}

func childManager() *Manager {
	return NewManager(Config{Home: os.Getenv("SUPERQODE_HOME"), Env: os.Environ(), Log: zerolog.Nop(), Warn: func(s string) { fmt.Fprintln(os.Stderr, s) }})
}

// unruly is the program of every test session: it changes, makes and deletes,
// and leaves an artifact.
const unruly = `echo changed >> README.md && rm -f tool.sh && mkdir -p new/dir && echo new > new/dir/file && mkdir -p "$SUPERQODE_ARTIFACT_DIR/evidence" && echo shot > "$SUPERQODE_ARTIFACT_DIR/evidence/note.txt"`

func childRun() int {
	m := childManager()
	mode, err := superqode.ParseMode(os.Getenv("SUPERQODE_TEST_MODE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	res, err := m.Run(context.Background(), OpenOptions{Dir: os.Getenv("SUPERQODE_TEST_DIR"), Mode: mode, Exclude: []string{".git/**"}},
		ExecOptions{Args: []string{"sh", "-c", unruly}, Stdout: os.Stderr, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return res.ExitCode
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
