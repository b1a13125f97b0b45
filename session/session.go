// Package session runs programs on a repository, or on any directory, and brings
// it back: a program in a session may edit, break and delete what it likes, and
// when the session has ended, the files are what they were.
//
//	m := session.NewManager(session.Config{Home: home, Env: os.Environ()})
//	res, err := m.Run(ctx, session.OpenOptions{Dir: "."}, session.ExecOptions{Args: []string{"make", "test"}})
//	if err != nil {
//		return err
//	}
//	// res.Changes is what the program changed; its patch lies in .superqode/qe-artifacts
//
// Open, Session.Exec and Session.End are the three parts of Run. A session lives as
// long as a process holds its lock; one whose process died is brought to its end by
// Manager.Recover, and by every superqode command that looks at the same origin. What
// a session is and how far it came lies in SUPERQODE_HOME, so that another process
// can Attach to it.
package session

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	machine "github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/revert"
)

// Config is what a Manager works with.
type Config struct {
	Home    string         // $SUPERQODE_HOME, absolute
	Env     []string       // the caller's whole environment
	Log     zerolog.Logger // ids, counts and durations only
	Warn    func(string)   // gets what a person should see, one line each; nil drops it
	Version string         // for reports
	Program string         // the superqode binary: the superqode that a session's programs call, and what supervises detached runs; "": none
	Shim    string         // the helper binary that guards, superqode-shim; "" finds it beside the running program, else Warn is told
}

// HomeDir returns where superqode keeps its state: flag, or SUPERQODE_HOME of the
// environment, or .superqode in its HOME. The result is absolute.
func HomeDir(flag string, env []string) (string, error) { return life.HomeDir(flag, env) }

// OpenOptions says what session to open. The zero value of every field but Dir is a
// usable default. docs/formats.md has what each means on the command line.
type OpenOptions struct {
	Dir      string            // any folder inside the origin
	Mode     superqode.Mode    // "" chooses: worktree in a git repository, snapshot elsewhere
	From     string            // "" is what the user sees now; else a revision
	Name     string            // a name for people
	Agent    superqode.AgentID // who works in the session
	Keep     superqode.Keep    // "" is superqode.KeepFailure
	Include  []string          // gitignore patterns of ignored files to bring along
	Exclude  []string          // snapshot mode: what is left out of the copy
	Template string            // directory mode: a folder to start from; "": empty
	Outputs  []string          // patterns of files that become artifacts at the end
	Reports  []string          // report formats beside json, md and html: sarif, junit, summary
	NoRedact bool              // leave secrets in logs and reports

	Unguarded  bool     // no git operation is denied
	Policy     string   // what the guard denies: "qe" (or "") or "contained"
	Allow      []string // git operations that the guard allows
	Deny       []string // and those that it denies, beside its own
	AllowWrite []string // absolute paths that the program may write to beside the session's own
	NoNetwork  bool     // no network but one of its own; by Landlock, no TCP
}

// ExecOptions says what to run in a session, and with which streams. A stream that
// is an *os.File on a terminal stays a terminal for the program.
type ExecOptions struct {
	Args     []string
	Cwd      string // relative to the workspace; "" is the folder that the session was opened from
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Env      []string           // KEY=VALUE, added to the session's environment
	CleanEnv bool               // start from PATH, HOME, TERM, LANG, USER and the session's own variables only
	Timeout  time.Duration      // 0: none
	TTY      bool               // a terminal for the program, whatever the streams are
	Signals  <-chan os.Signal   // passed to the program while it runs; while the session ends the first shows what is done, the next hurries it
	Started  func(run int)      // called once the program runs, with the run's number
	Kill     chan time.Duration // ends the program and all that it started: TERM at once, KILL after the time received
}

// Ran is how a program ended.
type Ran struct {
	ExitCode int  // the program's own; 128+n when signal n ended it, 124 after a time-out, 126 and 127 when it could not be started
	TimedOut bool // ExecOptions.Timeout ended it
}

// Run is one program that ran, or runs, in a session. Its ExitCode is -1 while it runs,
// and where nobody knows.
type Run struct {
	Ran
	Number  int // from 1
	Args    []string
	Running bool
}

// EndOptions says how to end a session.
type EndOptions struct {
	Keep   superqode.Keep // "" is what the session was opened with
	Failed bool           // the program failed, for superqode.KeepFailure
	Apply  bool           // bring the changes into the origin; whatever keeps them back preserves the session
}

// Info is one session of an origin.
type Info struct {
	ID        superqode.SessionID
	Name      string
	Mode      superqode.Mode
	State     superqode.State
	Workspace string
	CreatedAt time.Time
	Alive     bool // a process holds it
	Dead      bool // its process died before it ended; Recover ends it
}

// Recovered is what Recover did with one session.
type Recovered struct {
	ID     superqode.SessionID
	Action string // "rolled back", "ended", "preserved" or, with Err set, "failed"
	Err    error
}

// Manager opens, finds and ends the sessions of one SUPERQODE_HOME.
type Manager struct{ m *life.Manager }

// NewManager prepares a Manager and touches nothing.
func NewManager(cfg Config) *Manager {
	return &Manager{life.NewManager(life.Config{Home: cfg.Home, Env: cfg.Env, Log: cfg.Log, Warn: cfg.Warn, Version: cfg.Version, Program: cfg.Program, Shim: cfg.Shim})}
}

func (opt OpenOptions) options() life.OpenOptions {
	return life.OpenOptions{
		Dir: opt.Dir, Mode: opt.Mode, From: opt.From, Name: opt.Name, Agent: opt.Agent, Keep: opt.Keep,
		Include: opt.Include, Exclude: opt.Exclude, Template: opt.Template,
		Outputs: opt.Outputs, Reports: opt.Reports, NoRedact: opt.NoRedact,
		Guard:         life.GuardOptions{Off: opt.Unguarded, Policy: guard.PolicyName(opt.Policy), Allow: opt.Allow, Deny: opt.Deny},
		KernelOptions: program.KernelOptions{AllowWrite: opt.AllowWrite, NoNetwork: opt.NoNetwork},
	}
}

func (opt ExecOptions) options() program.ExecOptions {
	return program.ExecOptions{
		Args: opt.Args, Cwd: opt.Cwd, Stdin: opt.Stdin, Stdout: opt.Stdout, Stderr: opt.Stderr,
		Env: opt.Env, CleanEnv: opt.CleanEnv, Timeout: opt.Timeout, TTY: opt.TTY, Signals: opt.Signals, Started: opt.Started, Kill: opt.Kill,
	}
}

// Run opens a session, runs one program in it and ends it. The result is not nil as
// soon as the session was collected; its ExitCode is the program's. The error says
// what superqode itself could not do.
func (m *Manager) Run(ctx context.Context, open OpenOptions, exec ExecOptions) (*artifacts.Result, error) {
	res, err := m.m.Run(ctx, open.options(), exec.options())
	return res, errors.Join(err, m.m.Tidy(context.WithoutCancel(ctx)))
}

// Open makes a session and its workspace. On an error nothing half-made stays; the
// error wraps superqode.ErrUsage for options that do not fit the origin, and
// superqode.ErrNotFound for an unknown revision.
func (m *Manager) Open(ctx context.Context, opt OpenOptions) (*Session, error) {
	s, err := m.m.Open(ctx, opt.options())
	return m.wrap(s, err)
}

// Attach opens a session that exists. ref is its id, a unique beginning or end of it,
// or its name. Several processes may be attached to one session; End needs it alone.
func (m *Manager) Attach(ctx context.Context, dir, ref string) (*Session, error) {
	s, err := m.m.Attach(ctx, dir, ref)
	return m.wrap(s, err)
}

// List returns the sessions of the origin around dir, newest first.
func (m *Manager) List(ctx context.Context, dir string) ([]Info, error) {
	list, _, err := m.m.List(ctx, dir, false)
	infos := make([]Info, len(list))
	for i, l := range list {
		infos[i] = Info{l.ID, l.Name, l.Mode, l.State, string(l.Workspace), l.CreatedAt, l.Alive, l.Dead}
	}
	return infos, err
}

// Recover ends, or undoes, the sessions of the origin around dir whose process died.
// ref names one of them, "" means all.
func (m *Manager) Recover(ctx context.Context, dir, ref string) ([]Recovered, error) {
	list, err := m.m.Recover(ctx, dir, ref)
	done := make([]Recovered, len(list))
	for i, r := range list {
		done[i] = Recovered(r)
	}
	return done, err
}

// Apply brings the changes of a session into the work tree of its origin: all or,
// with an error that wraps superqode.ErrConflict, none. With check it is only
// decided. Index, HEAD and refs are not touched.
func (m *Manager) Apply(ctx context.Context, dir, ref string, check bool) (*artifacts.Applied, error) {
	res, _, err := m.m.Apply(ctx, dir, ref, apply.Options{Check: check})
	return res, err
}

// Session is one open, attached or ended session. Methods are not safe for
// concurrent use.
type Session struct {
	s *life.Session
	m *life.Manager
}

func (m *Manager) wrap(s *life.Session, err error) (*Session, error) {
	if err != nil {
		return nil, err
	}
	return &Session{s, m.m}, nil
}

// ID returns the session's id.
func (s *Session) ID() superqode.SessionID { return s.s.Rec.ID }

// State returns how far the session is.
func (s *Session) State() superqode.State { return s.s.Rec.State }

// Workspace returns the directory that the session's programs work in.
func (s *Session) Workspace() string { return string(s.s.Rec.Workspace) }

// Folder returns the directory of the session's own files, in which its programs do not write.
func (s *Session) Folder() string { return s.s.Folder }

// Kernel says what the kernel layer holds the session's programs to, as it was tried when the
// session was opened.
func (s *Session) Kernel() artifacts.Kernel { return s.s.Rec.KernelLayer() }

// Exec runs one program in the workspace and returns when it, and everything that it
// started, has ended.
func (s *Session) Exec(ctx context.Context, opt ExecOptions) (Ran, error) {
	res, err := s.s.Exec(ctx, opt.options())
	return Ran{res.ExitCode, res.TimedOut}, err
}

// Detach starts a program and returns while it runs: the run's number. Of opt's streams
// there are none: superqode workspace logs prints what it writes. It needs Config.Program.
func (s *Session) Detach(ctx context.Context, opt ExecOptions) (run int, err error) {
	exec := opt.options()
	exec.Stdin, exec.Stdout, exec.Stderr, exec.Signals = nil, nil, nil, nil
	if err := s.s.Close(); err != nil { // who opened it has it alone, and the supervisor needs it, too
		return 0, err
	}
	beside, err := s.m.Attach(ctx, string(s.s.Rec.Origin), s.s.Rec.ID.String())
	if err != nil {
		return 0, err
	}
	s.s = beside
	return s.s.Detach(ctx, exec, "")
}

// Runs returns what ran and runs in the session, in the order of their numbers.
func (s *Session) Runs() ([]Run, error) {
	list, err := program.Runs(&state.Listed{Record: s.s.Rec, Dir: s.s.Folder})
	var runs []Run
	for _, r := range list {
		run := Run{Number: r.Run, Args: r.Command, Running: r.State == program.RunRunning, Ran: Ran{ExitCode: -1, TimedOut: r.TimedOut}}
		if r.ExitCode != nil {
			run.ExitCode = *r.ExitCode
		}
		runs = append(runs, run)
	}
	return runs, err
}

// Changes compares the workspace with what it was when the session began.
func (s *Session) Changes(ctx context.Context) ([]superqode.Change, error) { return s.s.Changes(ctx) }

// Diff writes the changes as a patch in git's format; of no paths, all of them.
func (s *Session) Diff(ctx context.Context, w io.Writer, paths ...string) error {
	return s.s.Diff(ctx, w, attach.DiffOptions{Paths: paths})
}

// Revert brings the workspace, in git_snapshot mode the origin, back to what it was
// when the session began, and proves it; of no paths, all of it. What it overwrites
// is salvaged. The error wraps superqode.ErrVerification when something is not as it was.
func (s *Session) Revert(ctx context.Context, how revert.Method, paths ...superqode.RelPath) (*revert.Restored, error) {
	r, err := s.s.Revert(ctx, mode.RevertOptions{Paths: paths, How: machine.Method(how)})
	if r == nil {
		return nil, err
	}
	return (*revert.Restored)(&r.Restored), err
}

// Verify is what Revert proves, and changes nothing.
func (s *Session) Verify(ctx context.Context, how revert.Method, paths ...superqode.RelPath) (*revert.Verified, error) {
	return s.s.Verify(ctx, how, paths)
}

// End collects what the session changed and made, removes its workspace, or preserves
// it, checks the origin and writes the report. The result is not nil as soon as the
// workspace was looked at. An error that wraps superqode.ErrVerification means that
// something is not as it was; any other, that superqode could not do its work and
// preserved the workspace.
func (s *Session) End(ctx context.Context, opt EndOptions) (*artifacts.Result, error) {
	res, err := s.s.End(ctx, life.EndOptions{Keep: opt.Keep, Failed: opt.Failed, EndApply: life.EndApply{Apply: opt.Apply}})
	return res, errors.Join(err, s.m.Tidy(context.WithoutCancel(ctx)))
}

// Close releases what the session holds and ends nothing.
func (s *Session) Close() error { return s.s.Close() }
