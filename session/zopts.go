package session

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
)

// ExecOptions says what to run in a session, and with which streams. A stream
// that is an *os.File on a terminal stays a terminal for the program.
type ExecOptions struct {
	Args      []string
	Cwd       string // relative to the workspace; "" is the folder that the session was opened from
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Env       []string         // KEY=VALUE, added to the session's environment
	EnvAllow  []string         // patterns of names taken over from the caller's environment; any means CleanEnv
	CleanEnv  bool             // start from PATH, HOME, TERM, LANG, USER and the session's own variables only
	Timeout   time.Duration    // 0: none
	MaxOutput int64            // bytes passed on, per stream; 0: all of them
	Limits    runner.Limits    // of the whole tree; DiskFolders are the session's own
	TTY       bool             // a terminal for the program, whatever the streams are
	Code      *Code            // a program given as text; Args are its arguments
	Blocks    []Block          // programs to run one after the other instead; see ExecAll
	Started   func(run int)    // called once the program runs, with the run's number
	StdoutToo bool             // the program's stdout goes to Stderr (run --json)
	Signals   <-chan os.Signal // passed to the program while it runs, ignored on the way down
	KernelOptions

	BlockEnded func(BlockResult) // called after each of Blocks

	detached bool
	setup    bool   // a command of the session's setup, not its program
	log      string // the file in the session's log folder that gets the output; "": command.log
}

// KernelOptions say what is asked of the guard's kernel layer.
type KernelOptions struct {
	Enforce    kernel.Enforce // "" is kernel.EnforceAuto when a session is opened, and what it was opened with later
	AllowWrite []string       // absolute: what the program may write to beside the session's own folders
	NoNetwork  bool           // no TCP
}

// marker is the environment entry that only the processes of one run carry.
func marker(runDir string) string { return "SUPERQODE_RUN_DIR=" + runDir }

// maxSetupOutput is how much of each output stream of a setup command the log
// keeps.
const maxSetupOutput = 16 << 20

// setupReport is SetupSteps as reports hold it.
func (s *Program) setupReport() []artifacts.SetupStep {
	list := []artifacts.SetupStep{}
	steps, err := SetupSteps(s.Folder)
	if err != nil {
		s.Note([]string{"what came of the setup can not be read: " + err.Error()})
	}
	for _, st := range steps {
		list = append(list, st.Report())
	}
	return list
}

// setupMasked is setupReport without secrets, for what people other than the
// session's user may see.
func (s *Program) setupMasked() []artifacts.SetupStep {
	list := s.setupReport()
	if r := s.redactor(); r != nil {
		for i := range list {
			for _, text := range []*string{&list[i].Name, &list[i].Reason, &list[i].Output} {
				*text = r.Text(*text)
			}
		}
	}
	return list
}

// SetupSteps returns what came of each entry the last time that the setup of the
// session in a folder was reconciled.
func SetupSteps(sessionDir string) ([]setup.Step, error) {
	st, err := setup.Load(filepath.Join(sessionDir, state.SetupStateFile))
	if err != nil {
		return nil, err
	}
	return st.Steps, nil
}
