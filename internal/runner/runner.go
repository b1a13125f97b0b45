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
// The program's bytes arrive unchanged and uncut, its terminal stays a terminal,
// its signals and its exit code are passed through. When Run returns, no process
// of the program's tree is alive, or Result.Survivors names those that could not
// be ended (Alive). What of this the platform cannot give is told by Abilities.
//
// # The tree
//
// Every program is the leader of a session of its own. On Linux this process is
// the reaper of all its descendants (PR_SET_CHILD_SUBREAPER), so whatever a
// program forks, detaches or double-forks stays below us, and since a process can
// never enter a foreign session, a child of ours in another session than ours is
// always the work of a program and never a git that another goroutine started.
// Children that other code starts in a session of their own must be named by
// Spec.Spare. A cgroup (version 2) is used in addition where one can be made.
//
// # When this process is killed
//
// The program itself dies with us (PR_SET_PDEATHSIG), so that "kill -9 $PPID"
// frees nobody from the session. The signal is bound to the creating thread,
// which is therefore kept for as long as the program lives. What the program had
// started is not reached by it: the next superqode command ends these by their
// environment with EndMarked.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// TTY says when the program gets a pseudo-terminal.
type TTY int

const (
	// TTYAuto gives a stream that is a terminal a terminal. With stdin and stdout
	// both on a terminal the program gets a controlling one, and ours is raw
	// while it runs. With only one of them the keyboard is left as it is, because
	// other programs of the same pipeline may be using it: a terminal on stdin is
	// inherited (by a background job it is not), one on stdout or stderr is
	// replaced by a pseudo-terminal that can only be written to.
	TTYAuto TTY = iota
	// TTYAlways puts all three streams on one controlling terminal, whatever ours
	// are.
	TTYAlways
	// TTYNever uses pipes for stdout and stderr even on a terminal.
	TTYNever
)

// Spec describes one run. The zero value of every field but Args is usable.
type Spec struct {
	// Args is the program and its arguments. A name without a slash is looked up
	// in the PATH of Env, a relative path starts at Dir.
	Args []string
	// Dir is the program's working directory, absolute; "" is the caller's.
	Dir string
	// Env is the whole environment. PWD is set to Dir; of a key that stands there
	// twice the last one counts.
	Env []string
	// Stdin: nil is the null device, an *os.File is inherited, anything else is
	// copied through a pipe (its last Read may outlive Run).
	Stdin io.Reader
	// Stdout and Stderr may be nil. Where both lead to the same file they share
	// one pipe, so the order of what the program wrote is kept exactly.
	Stdout, Stderr io.Writer
	// TTY is the terminal policy.
	TTY TTY
	// Timeout ends the run with exit code 124; 0 is none.
	Timeout time.Duration
	// Grace lies between TERM and KILL; 0 is 5 seconds.
	Grace time.Duration
	// Limits bound the whole tree. What passes one is killed, with exit code 137.
	// A limit that cannot be had is a *LimitError, and nothing is started.
	Limits Limits
	// Kill ends the whole tree: TERM at once, KILL after the time that is sent. nil
	// is none.
	Kill <-chan time.Duration
	// Log is a file that gets all output too; "" is none. It is created with mode
	// 0600, or appended to.
	Log string
	// LogIndex is a file that tells which parts of Log are stderr's, see ReadLog;
	// "" is none.
	LogIndex string
	// MaxOutput is the number of bytes of each stream that Log holds; then one
	// line says that it was cut. 0 is no limit.
	MaxOutput int64
	// MaxPassed is the number of bytes of each stream that are passed on to
	// Stdout and Stderr. 0 is no limit.
	MaxPassed int64
	// Marker is an environment entry (KEY=VALUE) that is unique to this run. It
	// is added to Env when it is not there. It tells whose a detached process is
	// when several runs are under way without cgroups, and finds the processes of
	// a dead superqode (EndMarked).
	Marker string
	// Signals are passed on to the program's process group. INT, TERM and HUP
	// also begin the way down: KILL follows after Grace; a second one leaves a
	// second, a third one nothing. nil is none.
	Signals <-chan os.Signal
	// Started is called once the program runs; nil is none.
	Started func(pid int)
	// Spare reports children of this process that are not the program's although
	// they run in a session of their own; nil is none.
	Spare func(pid int) bool
	// Confine is called on the thread that starts the program, just before it
	// does. Whatever it does to that thread (a Landlock domain, mounts of its own)
	// the program inherits, and nobody else: the thread does nothing more, and ends
	// with the program. An error ends the run before it begins. nil is none; only
	// Linux has threads of this kind.
	Confine func() error
	// Wrap changes what is executed, and how: path and argv are the program's, and
	// its result takes their place; attr is complete and may be added to. nil is
	// none; Linux only, and not together with Confine.
	Wrap func(path string, argv []string, attr *os.ProcAttr) (string, []string)

	noCgroup bool // for tests: what there is without one must do as well
}

// Stream tells how many bytes the program wrote to one of its output streams.
// With a terminal, or with both streams in one file, all counts as stdout.
type Stream struct {
	Bytes     int64 // written by the program
	Logged    int64 // held by the log
	Passed    int64 // passed on
	Truncated bool  // the log, or what was passed on, does not hold all
}

// Process is one process that outlived the program.
type Process struct {
	PID  int
	Args []string // its command line, or "[name]" where it has none
	// Alive means that it could not be ended: it belongs to another user, or it
	// hangs in the kernel.
	Alive bool
}

// Result tells how a run ended.
type Result struct {
	// ExitCode is the program's own, 128+n when signal n ended it, 124 after a
	// time-out, 126 and 127 when it could not be started, 125 when it is unknown.
	ExitCode int
	// Signal is the name of the signal that ended the program ("SIGKILL"), or "".
	Signal string
	// TimedOut means that Spec.Timeout ended the run.
	TimedOut bool
	// Limit is the limit that ended the run (memory, pids, cpu_time or disk), or "".
	// pids stands here, too, for a program that failed after it was refused a
	// process; its exit code is its own then.
	Limit string
	// Hits are the limits that refused the program something without ending it.
	Hits []string
	// Holdings tell how each limit was held.
	Holdings []Holding
	// Killed means that Spec.Kill ended the run.
	Killed bool
	// Interrupted is the first of INT, TERM and HUP that came from Spec.Signals
	// while the program ran, or nil.
	Interrupted os.Signal
	// Started and Ended enclose the program's life and the ending of its tree.
	// Started is zero when the program was never started.
	Started, Ended time.Time
	// PID is the program's process id, also the id of its session and group.
	PID int
	// Stdout and Stderr count the output, Truncated tells whether any was cut.
	Stdout, Stderr Stream
	Truncated      bool
	// Survivors are the processes that were still there shortly after the program
	// had ended, in the order of their descent. All were ended, unless Alive.
	Survivors []Process
	// LogErr is the error that ended the log early (a full disk); the program ran
	// on.
	LogErr error
}

// StartError tells why a program could not be started. Code is 127 when it, or
// its interpreter, was not found, else 126.
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
	// hurried is the grace that a second signal leaves.
	hurried = time.Second
	// giveUp is how long KILL is repeated.
	giveUp = 10 * time.Second
)

// Run runs the program and returns when it, and everything that it started, has
// ended. The error is a *StartError when the program could not be started, the
// cause of ctx's end when that ended the run, or tells what went wrong around
// the program; a program that fails is no error. The Result is valid in every
// case. Run may be called several times at once.
func Run(ctx context.Context, spec Spec) (res Result, err error) {
	res.ExitCode = exitInternal
	if len(spec.Args) == 0 {
		return res, errors.New("run: no program given")
	}
	if spec.Grace <= 0 {
		spec.Grace = defaultGrace
	}
	if spec.Dir != "" {
		if st, err := os.Stat(spec.Dir); err != nil {
			return res, fmt.Errorf("run in workspace: %w", err)
		} else if !st.IsDir() {
			return res, fmt.Errorf("run in workspace: %w", &os.PathError{Op: "chdir", Path: spec.Dir, Err: syscall.ENOTDIR})
		}
	}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	spec.Env = childEnv(spec)
	path, serr := lookPath(spec.Args[0], spec.Dir, spec.Env)
	if serr != nil {
		res.ExitCode = serr.Code
		return res, serr
	}
	r := &run{spec: spec, path: path, res: &res}
	return res, r.run(ctx, &res)
}
