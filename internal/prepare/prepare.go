// Package prepare brings a session's workspace into the state that the
// configuration asks for before its program runs: inputs, files and commands of the
// setup, which run as programs of the session do.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Options say what must be there before a session's program runs. The
// commands run as programs of the session do, with its guard, its environment
// and what Env, EnvAllow and CleanEnv add to or take from that.
type Options struct {
	Spec     setup.Spec       // of the configuration
	Given    state.GivenSetup // on the command line; a session remembers what it was opened with
	Force    bool             // apply everything again
	DryRun   bool             // only say what would be done
	Env      []string
	EnvAllow []string
	CleanEnv bool
	Signals  <-chan os.Signal
	Made     attach.Alone     // the session, where this process made it and nobody knows of it yet
	Starting func(setup.Step) // told of each entry that is applied; nil for nobody
	program.KernelOptions
}

// Full adds what was given on the command line to the configured setup.
func (opt Options) Full() (setup.Spec, error) {
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

// With returns the options for a setup before the program that exec runs: its
// commands get the same additions to the environment.
func (opt Options) With(exec program.ExecOptions) Options {
	opt.Env = append(slices.Clip(exec.Env), opt.Env...)
	opt.EnvAllow, opt.CleanEnv, opt.Signals, opt.KernelOptions = exec.EnvAllow, exec.CleanEnv, exec.Signals, exec.KernelOptions
	return opt
}

// Check finds out before anything is made whether the mode can have a setup, and
// whether the inputs are there. A relative path may also mean one that only the
// workspace will have.
func Check(ctx context.Context, o *site.Origin, m superqode.Mode, opt Options) error {
	spec, err := opt.Full()
	if err == nil {
		err = undone(m, spec)
	}
	if err != nil {
		return err
	}
	for _, in := range spec.Inputs {
		if in.Optional {
			continue
		}
		var err error
		switch {
		case in.Artifact != "":
			_, _, err = inputArtifact(ctx, o.Top, in.Artifact, in.Version)
		case in.Path != "" && in.Path[0] == '/' && !strings.HasPrefix(in.Path, o.Top+"/"):
			_, serr := os.Stat(in.Path)
			if errors.Is(serr, fs.ErrNotExist) {
				err = superqode.Errorf(superqode.ErrNotFound, "from %s does not exist", text.Printable(in.Path))
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(in.Key), err)
		}
	}
	return nil
}

// undone refuses a setup that nothing would undo: it is no change of the session's,
// and would stay in the origin without a word.
func undone(m superqode.Mode, spec setup.Spec) error {
	if spec.Empty() || mode.Of(m).Restores {
		return nil
	}
	err := superqode.Errorf(superqode.ErrUsage, "no setup in %s mode: it would stay in the origin", m)
	return superqode.WithHint(err, "superqode run --git-snapshot undoes it at the end, --no-setup leaves out the configured one")
}

// patience is how long a setup waits for other processes to leave the session.
const patience = 3 * time.Second

// Setup brings the workspace into the state that opt.Spec asks for. What it
// makes and changes is no change of the session's, see setupbase.go. It needs the
// session for itself: the error wraps ErrLocked while a program runs there. A
// required entry that fails is a *setup.Error.
func Setup(ctx context.Context, s *attach.Attached, opt Options) (steps []setup.Step, err error) {
	if s.Rec.State == superqode.StateDone {
		return nil, mode.Ended(s.Site)
	}
	if opt.Made.Attached == nil {
		opt.Given = s.Rec.Given
	}
	spec, err := opt.Full()
	if err != nil {
		return nil, err
	}
	if err := undone(s.Rec.Mode, spec); err != nil {
		return nil, err
	}
	if opt.DryRun {
		return setup.Reconcile(ctx, host(s, opt), spec, setup.Options{Force: opt.Force, DryRun: true})
	}
	alone, unlock, err := own(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if spec.Empty() && !atomicfile.Exists(filepath.Join(s.Folder, state.SetupStateFile)) {
		return nil, nil
	}
	if err := alone.EndAbandoned(); err != nil {
		return nil, err
	}
	unfinished := atomicfile.Exists(mode.StartFile(s.Site)) // an earlier one was killed
	before, err := mode.BeforeSetup(ctx, s.Site, opt.Made.Attached != nil)
	if err != nil {
		return nil, err
	}
	steps, err = setup.Reconcile(ctx, host(s, opt), spec, setup.Options{Force: opt.Force})
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

// own makes sure that one setup at a time is under way, and nothing else.
func own(ctx context.Context, s *attach.Attached, opt Options) (alone attach.Alone, unlock func() error, err error) {
	lock := filepath.Join(s.Folder, "setup.lock")
	if opt.Made.Attached != nil {
		unlock, err = lockfile.Lock(ctx, lock)
		return opt.Made, unlock, err
	}
	if !s.Held() && s.Rec.Owned {
		return alone, nil, s.InUse()
	}
	if err := s.Close(); err != nil { // else several that wait would keep one another out
		return alone, nil, err
	}
	release, err := lockfile.Lock(ctx, lock)
	if err != nil {
		return alone, nil, err
	}
	alone, err = s.Await(ctx, patience)
	if err == nil && s.Rec.State == superqode.StateDone {
		err = mode.Ended(s.Site)
	}
	if err != nil {
		return alone, nil, errors.Join(err, s.Close(), release())
	}
	return alone, func() error { return errors.Join(s.Close(), release()) }, nil
}

// host is what the session lends to its setup.
func host(s *attach.Attached, opt Options) setup.Host {
	return setup.Host{
		Workspace: s.WorkDir(), Inside: string(s.Rec.Inside()), Origin: string(s.Rec.Origin), State: filepath.Join(s.Folder, state.SetupStateFile),
		Home: superqode.Getenv(s.Env, "HOME"), Forbidden: []string{superqode.RealPrefix(s.Home)}, Artifact: func(ctx context.Context, name string, version int) (string, artifacts.Named, error) {
			return inputArtifact(ctx, string(s.Rec.Origin), name, version)
		},
		Run:       func(ctx context.Context, c setup.Command) (setup.Outcome, error) { return run(ctx, s, opt, c) },
		Keep:      func(ctx context.Context, path superqode.RelPath) error { return keep(ctx, s.Site, path) },
		Protected: func(path string) (string, bool) { return protectsLink(s, path) },
		Starting:  opt.Starting,
	}
}

// run runs one command of the setup as a program of the session.
func run(ctx context.Context, s *attach.Attached, opt Options, c setup.Command) (setup.Outcome, error) {
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
		err = stopped{&program.InterruptError{Signal: res.Interrupted}}
	}
	if err != nil {
		end = "# " + text.Printable(err.Error())
	}
	err = errors.Join(err, appendLine(log, end))
	return setup.Outcome{ExitCode: res.ExitCode, TimedOut: res.TimedOut, Output: out.String()}, err
}

// stopped is an interruption as package setup knows it.
type stopped struct{ error }

func (e stopped) Unwrap() error { return e.error }

func (e stopped) Is(target error) bool { return target == setup.ErrStop }

// keep salvages what an entry is about to replace, unless it is but a
// copy of what the origin holds, or is kept to be brought back.
func keep(ctx context.Context, s *site.Site, path superqode.RelPath) error {
	if s.Rec.Runs == 0 && mode.Of(s.Rec.Mode).Restores {
		return nil
	}
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return err
	}
	ws := s.WorkDir()
	skip := func(p superqode.RelPath, _ snapshot.Kind) bool {
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
func protectsLink(s *attach.Attached, path string) (how string, ok bool) {
	if st, err := os.Lstat(path); err == nil && st.Mode().Perm()&0o222 == 0 && os.Geteuid() != 0 {
		how = "its own permission bits protect it"
	} else {
		how = "nothing protects it from what the session's programs write"
	}
	k, err := s.Guard().OpenKernel(context.Background(), layers.KernelOptions{}, s.Env)
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
func inputArtifact(ctx context.Context, origin, name string, version int) (file string, found artifacts.Named, err error) {
	store, err := artifacts.Open(origin)
	if err != nil {
		return "", found, err
	}
	ref := name
	if version > 0 {
		ref = fmt.Sprintf("%s@%d", name, version)
	}
	found, err = store.Resolve(ctx, ref)
	if err != nil {
		return "", found, superqode.WithHint(err, "superqode artifacts list")
	}
	f, err := store.OpenArtifact(found.Artifact) // it must be there, and no link
	if err != nil {
		return "", found, err
	}
	return found.Path.In(store.Dir()), found, f.Close()
}

// Lines says what a setup would see to: inputs, files, commands.
func Lines(spec setup.Spec) []string {
	lines, commands := []string{}, []string{}
	for _, in := range spec.Inputs {
		lines = append(lines, "input "+in.From+" → "+in.To.String())
	}
	for _, e := range spec.Entries {
		switch {
		case e.File != nil:
			lines = append(lines, "file "+e.File.Target.String())
		case e.Run != nil:
			words := make([]string, 0, 1+len(e.Run.Args))
			for _, w := range append([]string{e.Run.Command}, e.Run.Args...) {
				words = append(words, text.QuotePOSIX(w))
			}
			commands = append(commands, "run "+strings.Join(words, " "))
		}
	}
	return append(lines, commands...)
}
