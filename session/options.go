package session

import (
	"io"
	"os"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// OpenOptions says what session to open. The zero value of every field but Dir
// is a usable default.
type OpenOptions struct {
	Dir      string            // any folder inside the origin
	Mode     superqode.Mode    // "" and ModeAuto: worktree in a git repository, snapshot elsewhere
	From     string            // FromWorking (or "") or a revision
	Include  []string          // gitignore patterns of ignored files to bring along
	Name     string            // a name for people
	Agent    superqode.AgentID // who works in the session
	Case     string            // SUPERQODE_CASE_ID
	Keep     state.Keep        // "" is KeepFailure
	Exclude  []string          // snapshot mode: what is left out of the copy
	MaxBytes int64             // snapshot mode: a bigger copy is refused; 0: no limit
	Template string            // directory mode: a folder to start from; "": empty
	Owned    bool              // the opening process also runs and ends it (run): when it dies the session is dead
	NoRevert bool              // in place: leave the changes in the end; isolated: Run applies them to the origin

	IgnoredBudget int64    // git_snapshot: bytes of ignored files that are kept copies of; 0: DefaultIgnoredBudget
	LeaveOut      []string // git_snapshot: patterns of ignored paths that are not protected

	Setup    SetupOptions // what Run and Create bring about before the program runs
	Reports  []string     // report formats beside json, md and html: sarif, junit, summary
	NoRedact bool         // leave secrets in logs and reports
	Trial    bool         // verify-fix opens it

	Guard   GuardOptions
	Claims  string               // enforced: agents change only what they claimed; else claims are advice
	Watcher state.WatcherOptions // how changes are watched while a program runs
	KernelOptions

	Outputs  []string       // patterns of files that become artifacts at the end
	Defaults state.Defaults // for the programs that are run in the session
}

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

// EndOptions says how to end a session.
type EndOptions struct {
	Keep   state.Keep // "" is what the session was opened with
	Failed bool       // the program failed, for KeepFailure
	Locked bool       // remove the worktree even when it is locked (git worktree lock)
	EndApply
}

// DiffOptions selects what Diff prints.
type DiffOptions struct {
	Paths []string          // relative to the workspace's root; none: all
	Agent superqode.AgentID // only what this agent changed; zero: all
	Stat  bool              // a diffstat instead of the patch
	Color bool
}

// GuardOptions says how a session is guarded. The zero value is the default policy with
// all layers that this machine has.
type GuardOptions struct {
	Off   bool     // --allow-git-operations: nothing is denied
	Allow []string // guard.allow and guard.deny of the configuration
	Deny  []string
}

// KernelOptions say what is asked of the guard's kernel layer.
type KernelOptions struct {
	Enforce    kernel.Enforce // "" is kernel.EnforceAuto when a session is opened, and what it was opened with later
	AllowWrite []string       // absolute: what the program may write to beside the session's own folders
	NoNetwork  bool           // no TCP
}
