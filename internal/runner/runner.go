// Package runner runs one program in a workspace and ends everything that the
// program started, however it was started and however it ends.
//
// # Use
//
//	res, err := runner.Run(ctx, runner.Spec{
//		Args: []string{"make", "test"}, Dir: workspace, Env: env,
//		Stdin: in, Stdout: out, Stderr: errOut,
//		Timeout: time.Hour, Log: log, MaxOutput: 64 << 20, Signals: signals,
//	})
//
// # Promises
//
// The program's bytes arrive unchanged and complete, its terminal stays a
// terminal, its signals and its exit code pass through. When Run returns, no
// process of the program's tree is alive, or Result.Survivors names those that
// could not be ended (Alive).
//
// # The tree
//
// Every program is the leader of a session of its own. On Linux this process is
// the reaper of all its descendants (PR_SET_CHILD_SUBREAPER), so whatever a
// program forks, detaches or double-forks stays below us, and since a process can
// never enter a foreign session, a child of ours in our session is never the work of
// a program. One in another session is, unless this process has started it itself: by
// StartApart, before the first program, or on another thread than the first, which is
// the one that adopts. Who embeds this and starts sessions of its own while a program
// runs keeps the first thread out of it (runtime.LockOSThread in an init does).
// A cgroup (version 2) is used in addition where one can be made.
//
// # When this process is killed
//
// The program itself dies with us (PR_SET_PDEATHSIG), so that "kill -9 $PPID"
// frees nobody from the session. The signal is bound to the creating thread,
// which Run therefore keeps for as long as the program lives. It does not reach
// what the program had started: the next superqode command finds these
// processes by their environment and ends them with EndMarked.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Spec describes one run. The zero value of every field but Args is usable.
type Spec struct {
	// Args is the program and its arguments. A name without a slash is looked up
	// in the PATH of Env, a relative path starts at Dir.
	Args []string
	// Dir is the program's working directory, absolute; "" is the caller's.
	Dir string
	// Outside returns by what path this process reaches a path of the program's, where
	// Confine gives the program a folder in another one's place; nil: by the same.
	Outside func(path string) string
	// Env is the whole environment. PWD is set to Dir; of duplicate keys the
	// last one counts.
	Env []string
	// Stdin: nil is the null device, an *os.File is inherited, anything else is
	// copied through a pipe (its last Read may outlive Run). A *Feed is the pipe.
	Stdin io.Reader
	// Stdout and Stderr may be nil. If both lead to the same file they share
	// one pipe, which keeps the exact order of what the program wrote.
	Stdout, Stderr io.Writer
	// TTY connects all three streams to one controlling terminal, whatever ours
	// are. Otherwise a terminal replaces a terminal: if stdin and stdout are both
	// terminals, the program gets a controlling one, and ours is raw while it
	// runs. If only one is, the keyboard stays as it is, because other programs
	// of the same pipeline may be using it: the program inherits a terminal on
	// stdin (except in a background job), and gets a write-only pseudo-terminal
	// in place of one on stdout or stderr.
	TTY bool
	// Timeout ends the run with exit code 124; 0 is none.
	Timeout time.Duration
	// Grace lies between TERM and KILL; 0 is 5 seconds.
	Grace time.Duration
	// Limits bound the whole tree. A tree that exceeds one is killed, with exit
	// code 137. A limit that cannot be enforced is a *LimitError, and nothing
	// starts.
	Limits Limits
	// Kill ends the whole tree: TERM at once, KILL after the time received. nil
	// is none.
	Kill <-chan time.Duration
	// Log is a file that gets all output too; "" is none. Run creates it with
	// mode 0600, or appends to it.
	Log string
	// LogIndex is a file that records which parts of Log are stderr's, see
	// OpenLog; "" is none.
	LogIndex string
	// MaxOutput is the number of bytes of each stream that Log holds; then one
	// line says that it was cut. 0 is no limit.
	MaxOutput int64
	// MaxPassed is the number of bytes of each stream that Run passes on to
	// Stdout and Stderr. 0 is no limit.
	MaxPassed int64
	// Marker is an environment entry (KEY=VALUE) that is unique to this run;
	// Run adds it to Env if it is missing. It shows which run a detached
	// process belongs to when several are under way without cgroups, and finds
	// the processes of a dead superqode (EndMarked).
	Marker string
	// Run passes Signals on to the program's process group. INT, TERM and HUP
	// also end the tree: KILL follows after Grace; a second signal leaves it
	// one second, a third one none. nil is none.
	Signals <-chan os.Signal
	// Job makes the program part of this process's job: they stop and go on together,
	// and the program follows the size of the window. Run listens to TSTP, CONT and
	// WINCH for it.
	Job bool
	// Started is called once the program runs; nil is none.
	Started func(pid int)
	// Run calls Confine on the thread that starts the program, just before it
	// does. The program, and nobody else, inherits what Confine does to that
	// thread (a Landlock domain, mounts of its own): the thread does nothing
	// more, and ends with the program. An error ends the run before it begins.
	// nil is none; only Linux has threads of this kind.
	Confine func() error
	// Wrap changes what is executed, and how: path and argv are the program's, and
	// its result takes their place; attr is complete and may be added to. nil is
	// none; Linux only, on the same thread as Confine, after it.
	Wrap func(path string, argv []string, attr *os.ProcAttr) (string, []string, error)

	noCgroup bool // for tests: use the means that need no cgroup
}

// Stream counts the bytes that the program wrote to one of its output streams.
// With a terminal, or with both streams in one file, everything counts as
// stdout.
type Stream struct {
	Bytes     int64 // written by the program
	Logged    int64 // held by the log
	Passed    int64 // passed on
	Truncated bool  // the log, or what was passed on, is incomplete
}

// Process is one process that outlived the program.
type Process struct {
	PID  int
	Args []string // its command line, or "[name]" if it has none
	// Alive means that it could not be ended: it belongs to another user, or it
	// hangs in the kernel.
	Alive bool
}

// Result says how a run ended.
type Result struct {
	// ExitCode is the program's own, 128+n when signal n ended it, 124 after a
	// time-out, 126 and 127 when it could not be started, 125 when it is unknown.
	ExitCode int
	// Signal is the name of the signal that ended the program ("SIGKILL"), or "".
	Signal string
	// TimedOut means that Spec.Timeout ended the run.
	TimedOut bool
	// Limit is the limit that ended the run (memory, pids, cpu_time or disk),
	// or "". It is pids also for a program that failed after the limit refused
	// it a process; the exit code is then its own.
	Limit string
	// Hits are the limits that refused the program something without ending it.
	Hits []string
	// Holdings say how each limit was enforced.
	Holdings []Holding
	// Killed means that Spec.Kill ended the run.
	Killed bool
	// Interrupted is the first of INT, TERM and HUP that came from Spec.Signals
	// while the program ran, or nil.
	Interrupted os.Signal
	// Started and Ended enclose the program's life and the end of its tree.
	// Started is zero if the program was never started.
	Started, Ended time.Time
	// PID is the program's process id, also the id of its session and group.
	PID int
	// Stdout and Stderr count the output; Truncated says whether any was cut.
	Stdout, Stderr Stream
	Truncated      bool
	// Survivors are the processes that still existed shortly after the program
	// had ended, parents first. Run ended all of them, except those that are
	// Alive.
	Survivors []Process
	// LogErr is the error that ended the log early (a full disk); the program ran
	// on.
	LogErr error
}

// StartError says why a program could not be started. Code is 127 if it, or its
// interpreter, was not found, otherwise 126.
type StartError struct {
	Name string
	Code int
	Err  error
}

// Error returns one sentence.
func (e *StartError) Error() string { return fmt.Sprintf("cannot run %q: %v", e.Name, e.Err) }

// Unwrap returns the reason, mostly an errno.
func (e *StartError) Unwrap() error { return e.Err }

// ConfineError is what Spec.Confine returned: the program was not started.
type ConfineError struct{ Err error }

// Error returns the reason alone.
func (e *ConfineError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ConfineError) Unwrap() error { return e.Err }

// ErrLeftOver is wrapped by Run's error when processes of the tree could not be
// ended; Result.Survivors names them.
var ErrLeftOver = errors.New("processes could not be ended")

const (
	exitTimeout  = 124
	exitInternal = 125
	exitNoExec   = 126
	exitNotFound = 127

	defaultGrace = 5 * time.Second
	// settle is how long a process may outlive the program before it counts as
	// left behind: the tee of bash's >(tee log) ends by itself when its pipe does.
	settle = 100 * time.Millisecond
	// leftGrace is the grace of what is left behind after a normal end.
	leftGrace = time.Second
	// hurried is the grace after a second signal.
	hurried = time.Second
	// giveUp is how long KILL is repeated.
	giveUp = 10 * time.Second
)

// Run runs the program and returns when it, and everything that it started, has
// ended. The error is a *StartError if the program could not be started, the
// cause of ctx's end if that ended the run, or says what went wrong around the
// program; a program that fails is not an error. The Result is valid in every
// case. Run may be called several times at once.
func Run(ctx context.Context, spec Spec) (res Result, err error) {
	res.ExitCode = exitInternal
	if len(spec.Args) == 0 {
		return res, errors.New("run: no program given")
	}
	if spec.Grace <= 0 {
		spec.Grace = defaultGrace
	}
	if spec.Outside == nil {
		spec.Outside = func(path string) string { return path }
	}
	if spec.Dir != "" {
		if st, err := os.Stat(spec.Outside(spec.Dir)); errors.Is(err, fs.ErrNotExist) {
			return res, fmt.Errorf("run in workspace: %w", &os.PathError{Op: "chdir", Path: spec.Dir, Err: syscall.ENOENT})
		} else if err != nil {
			return res, fmt.Errorf("run in workspace: %w", err)
		} else if !st.IsDir() {
			return res, fmt.Errorf("run in workspace: %w",
				&os.PathError{Op: "chdir", Path: spec.Dir, Err: syscall.ENOTDIR})
		}
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	spec.Env = childEnv(spec)
	path, serr := lookPath(spec)
	if serr != nil {
		res.ExitCode = serr.Code
		return res, serr
	}
	r := &run{spec: spec, path: path, res: &res}
	return res, r.run(ctx, &res)
}
