package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// SetupOptions say what must be there before a session's program runs. The
// commands run as programs of the session do, with its guard, its environment
// and what Env, EnvAllow and CleanEnv add to or take from that.
type SetupOptions struct {
	Spec     setup.Spec       // of the configuration
	Given    state.GivenSetup // on the command line; a session remembers what it was opened with
	Force    bool             // apply everything again
	DryRun   bool             // only say what would be done
	Env      []string
	EnvAllow []string
	CleanEnv bool
	Signals  <-chan os.Signal
	Starting func(setup.Step) // told of each entry that is applied; nil for nobody
	program.KernelOptions
}

// full adds what was given on the command line to the configured setup.
func (opt SetupOptions) full() (setup.Spec, error) {
	spec := setup.Spec{Inputs: slices.Clip(opt.Spec.Inputs), Entries: slices.Clip(opt.Spec.Entries)}
	for _, text := range opt.Given.Inputs {
		in, err := config.ParseInput(text, string(opt.Given.Dir))
		if err != nil {
			return spec, err
		}
		spec.Inputs = append(spec.Inputs, in)
	}
	for i, line := range opt.Given.Bootstrap {
		e, err := config.Bootstrap(line, i)
		if err != nil {
			return spec, err
		}
		spec.Entries = append(spec.Entries, e)
	}
	return spec, nil
}

// fitting is what a Session value knows of the session's setup.
type fitting struct {
	setupError error // why no program ran
	opening    bool  // this process made the session, and nobody was told of it yet
}

// setupWait is how long a setup waits for other processes to leave the session.
const setupWait = 3 * time.Second

// Setup brings the workspace into the state that opt.Spec asks for. What it
// makes and changes is no change of the session's, see setupbase.go. It needs the
// session for itself: the error wraps ErrLocked while a program runs there. A
// required entry that fails is a *setup.Error.
func (s *Session) Setup(ctx context.Context, opt SetupOptions) (steps []setup.Step, err error) {
	if s.Rec.State == superqode.StateDone {
		return nil, mode.Ended(s.Site)
	}
	if !s.opening {
		opt.Given = s.Rec.Given
	}
	spec, err := opt.full()
	if err != nil {
		return nil, err
	}
	if opt.DryRun {
		return setup.Reconcile(ctx, s.setupHost(opt), spec, setup.Options{Force: opt.Force, DryRun: true})
	}
	unlock, err := s.ownForSetup(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if spec.Empty() && !atomicfile.Exists(filepath.Join(s.Folder, state.SetupStateFile)) {
		return nil, nil
	}
	if err := s.endAbandoned(); err != nil {
		return nil, err
	}
	unfinished := atomicfile.Exists(mode.StartFile(s.Site)) // an earlier one was killed
	before, err := mode.BeforeSetup(ctx, s.Site, s.opening)
	if err != nil {
		return nil, err
	}
	steps, err = setup.Reconcile(ctx, s.setupHost(opt), spec, setup.Options{Force: opt.Force})
	for _, st := range steps {
		if st.State == setup.OptionalFailed {
			s.Warn(fmt.Sprintf("%s (%s) is optional and failed: %s", st.Key, text.Printable(st.Name), st.Reason))
		}
	}
	if slices.ContainsFunc(steps, func(st setup.Step) bool { return st.State != setup.Skipped }) || unfinished || err != nil {
		err = errors.Join(err, mode.FoldSetup(context.WithoutCancel(ctx), s.Site, before))
	}
	return steps, errors.Join(err, mode.AfterSetup(s.Site), s.WriteWorkspaceInfo())
}

// ownForSetup makes sure that one setup at a time is under way, and nothing else.
func (s *Session) ownForSetup(ctx context.Context) (unlock func() error, err error) {
	if s.opening {
		return lockfile.Lock(ctx, filepath.Join(s.Folder, "setup.lock"))
	}
	if s.unlock == nil && s.Rec.Owned {
		return nil, s.inUse()
	}
	if err := s.Close(); err != nil { // else several that wait would keep one another out
		return nil, err
	}
	release, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "setup.lock"))
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, setupWait)
	defer cancel()
	s.unlock, err = lockfile.Lock(wait, state.LockPath(s.Folder))
	if err != nil {
		s.unlock = nil
		if ctx.Err() == nil && wait.Err() != nil {
			err = s.inUse()
		}
		return nil, errors.Join(err, release())
	}
	if err := s.Reload(); err != nil {
		return nil, errors.Join(err, release())
	}
	if s.Rec.State == superqode.StateDone {
		return nil, errors.Join(mode.Ended(s.Site), release())
	}
	return func() error { return errors.Join(s.Close(), release()) }, nil
}

// setupHost is what the session lends to its setup.
func (s *Session) setupHost(opt SetupOptions) setup.Host {
	return setup.Host{
		Workspace: string(s.Rec.Workspace), Origin: string(s.Rec.Origin), State: filepath.Join(s.Folder, state.SetupStateFile),
		Home: superqode.Getenv(s.Env, "HOME"), Forbidden: []string{superqode.RealPrefix(s.Home)}, Artifact: s.inputArtifact,
		Run:       func(ctx context.Context, c setup.Command) (setup.Outcome, error) { return s.runSetup(ctx, opt, c) },
		Keep:      s.keepForSetup,
		Protected: s.protectsLink,
		Starting:  opt.Starting,
	}
}

// runSetup runs one command of the setup as a program of the session.
func (s *Session) runSetup(ctx context.Context, opt SetupOptions, c setup.Command) (setup.Outcome, error) {
	log := filepath.Join(s.Folder, "log", "setup.log")
	if err := appendLine(log, "$ "+text.Printable(c.Line)); err != nil {
		return setup.Outcome{}, err
	}
	out := &lastLines{}
	dir := c.Dir
	if dir == "" {
		dir = "."
	}
	res, err := s.Exec(ctx, program.ExecOptions{
		Args: c.Args, Cwd: dir, Env: append(slices.Clip(opt.Env), c.Env...), EnvAllow: opt.EnvAllow, CleanEnv: opt.CleanEnv,
		Stdout: out, Stderr: out, Timeout: c.Timeout, Signals: opt.Signals, KernelOptions: opt.KernelOptions, Setup: true,
	})
	end := fmt.Sprintf("# exit code %d", res.ExitCode)
	if res.TimedOut {
		end = fmt.Sprintf("# ended after %s", c.Timeout)
	}
	if err == nil && res.Interrupted != nil {
		err = stopped{&InterruptError{res.Interrupted}}
	}
	if err != nil {
		end = "# " + text.Printable(err.Error())
	}
	err = errors.Join(err, appendLine(log, end))
	return setup.Outcome{ExitCode: res.ExitCode, TimedOut: res.TimedOut, Output: out.String()}, err
}

// stopped is an interruption as package setup knows it.
type stopped struct{ error }

func (e stopped) Unwrap() error        { return e.error }
func (e stopped) Is(target error) bool { return target == setup.ErrStop }

// keepForSetup salvages what an entry is about to replace, unless it is but a
// copy of what the origin holds, or is kept to be brought back.
func (s *Session) keepForSetup(ctx context.Context, path string) error {
	if s.Rec.Runs == 0 && mode.Of(s.Rec.Mode).Restores {
		return nil
	}
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return err
	}
	ws := string(s.Rec.Workspace)
	skip := func(p string, _ snapshot.Kind) bool {
		return !superqode.Within(p, path) && !superqode.Within(path, p)
	}
	sn, problems, err := snapshot.Scan(ctx, ws, snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly, Skip: skip})
	if err != nil {
		return err
	}
	sv, err := s.Salvage(ctx, "setup", salvage.Part{Dir: ws, Entries: sn.Entries, LeftOut: mode.LeftOutOf(problems)})
	if err == nil && sv != nil {
		s.Tell(fmt.Sprintf("what stood at %s is kept: superqode workspace restore %s", text.Printable(path), sv.ID))
	}
	return err
}

// protectsLink says what keeps the session's programs from writing through a
// link to a path of this machine.
func (s *Session) protectsLink(path string) (how string, ok bool) {
	if st, err := os.Lstat(path); err == nil && st.Mode().Perm()&0o222 == 0 && os.Geteuid() != 0 {
		how = "its own permission bits protect it"
	} else {
		how = "nothing protects it from what the session's programs write"
	}
	k, err := s.guard().OpenKernel(layers.KernelOptions{}, s.Env)
	if err != nil {
		return how, false
	}
	defer k.Close()
	if k.Layer.State != kernel.Active {
		return how + " (kernel layer: " + k.Layer.State + ")", false
	}
	for _, w := range k.Plan.Writable {
		if superqode.Within(path, w.Path) || superqode.Within(w.Path, path) {
			return how + ", since the session may write to " + text.Printable(w.Path), false
		}
	}
	return "the kernel layer keeps the session's programs from writing there", true
}

// inputArtifact finds the file of an artifact of the origin.
func (s *Session) inputArtifact(ctx context.Context, name string, version int) (string, error) {
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return "", err
	}
	ref := name
	if version > 0 {
		ref = fmt.Sprintf("%s@%d", name, version)
	}
	a, err := store.Resolve(ctx, ref)
	if err != nil {
		return "", superqode.WithHint(err, "superqode artifacts list")
	}
	f, err := store.OpenArtifact(a.Artifact) // it must be there, and no link
	if err != nil {
		return "", err
	}
	return filepath.Join(store.Dir(), a.Path.String()), f.Close()
}

// lastLines keeps the end of what is written to it.
type lastLines struct {
	mu   sync.Mutex
	tail []byte
}

// The end of a command's output that reports show.
const (
	tailBytes = 8 << 10
	tailLines = 20
)

// Write keeps the last bytes.
func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - 2*tailBytes; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return len(b), nil
}

// String returns the last whole lines, made printable.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.tail
	if over := len(text) - tailBytes; over > 0 {
		text = text[over:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), string(utf8.RuneError)), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.Join(lines, "\n"))
}

// appendLine adds a line to a log in the session's folder.
func appendLine(path, line string) error {
	f, err := atomicfile.Append(path, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
