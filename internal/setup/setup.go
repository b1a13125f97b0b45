// Package setup brings a workspace into the state that the configuration asks
// for: inputs first, then files, then commands, each in their order.
//
// # Use
//
//	steps, err := setup.Reconcile(ctx, host, setup.Spec{Inputs: cfg.Inputs, Entries: cfg.Setup}, setup.Options{})
//
// # Promises
//
// Reconcile skips what is already done: an input or a file whose target is as
// it should be, a command that has succeeded with the same fingerprint (see
// fingerprint.go) and whose marker and outputs are as it left them. It applies
// everything else again, and Step.Reason says why. It records each success at
// once in the state file, so that after a kill between two commands only the
// second runs.
//
// It writes nothing outside the workspace, and nothing into a folder named
// .git: it resolves each target's folder link by link before it uses it, and
// writes through an os.Root. A rename replaces a target that exists.
//
// The caller ensures that nobody else works in the workspace meanwhile, and
// that the session's program cannot write the state file.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Spec is what a workspace is to hold.
type Spec struct {
	Inputs  []config.Input
	Entries []config.SetupEntry
}

// Empty reports whether there is nothing to do.
func (s Spec) Empty() bool { return len(s.Inputs)+len(s.Entries) == 0 }

// Options say how to reconcile. The zero value applies what is needed.
type Options struct {
	Force  bool // apply everything again
	DryRun bool // only report what would be done
}

// Host is what the session provides to its setup.
type Host struct {
	Workspace string   // absolute
	Inside    string   // where the session's programs see it; "" is the same
	Origin    string   // a relative source may also be a path of the workspace, seen from this folder; "" for none
	State     string   // the file of State
	Home      string   // what ~/ stands for, "" for nothing
	Forbidden []string // absolute folders that no input may hold
	// Artifact returns the file of an artifact, and what it was. The error wraps
	// superqode.ErrNotFound if there is none.
	Artifact func(ctx context.Context, name string, version int) (file string, found artifacts.Named, err error)
	// Run runs one command in the workspace and returns when everything that it
	// started has ended. An error means that it could not run.
	Run func(ctx context.Context, c Command) (Outcome, error)
	// Keep saves what is at a path of the workspace before it is replaced,
	// unless it exists elsewhere. nil keeps nothing.
	Keep func(ctx context.Context, path superqode.RelPath) error
	// Protected says what keeps a program from writing through a link to a path
	// of this machine, and whether anything does.
	Protected func(path string) (how string, ok bool)
	Starting  func(s Step) // called before each step that is applied; may be nil
}

// Command is one command for Host.Run.
type Command struct {
	Args    []string
	Line    string // for people
	Dir     string // in the workspace, "" for its root
	Env     []string
	Timeout time.Duration
}

// An error of Host.Run that wraps ErrStop ends everything, even if the entry is
// optional: a person interrupted it.
var ErrStop = errors.New("stopped")

// Outcome is the result of a command. Output holds its last lines.
type Outcome struct {
	ExitCode int
	TimedOut bool
	Output   string
}

// The states of a step.
const (
	Applied        = "applied"
	Skipped        = "skipped"
	Failed         = "failed"
	OptionalFailed = "optional_failed"
	WouldApply     = "would_apply"
)

// The kinds of a step.
const (
	KindInput = "input"
	KindFile  = "file"
	KindRun   = "run"
)

// Step is one entry and its result.
type Step struct {
	Key      string // setup[0].run, inputs[1], or the flag
	Kind     string // input, file or run
	Name     string // the command line, or the target
	State    string
	Reason   string
	Started  time.Time
	Duration time.Duration
	ExitCode int
	Output   string
	Input    *artifacts.SetupInput // of an input
}

// Report returns the step in the form of reports.
func (s Step) Report() artifacts.SetupStep {
	return artifacts.SetupStep{
		Name: s.Name, Kind: s.Kind, State: s.State, Reason: s.Reason, StartedAt: artifacts.At(s.Started),
		DurationSeconds: float64(s.Duration.Milliseconds()) / 1000, ExitCode: s.ExitCode, Output: s.Output, Input: s.Input,
	}
}

// Error is a required entry that could not be applied. It wraps the reason.
type Error struct {
	Step Step
	Err  error
}

// Error names the entry and what happened.
func (e *Error) Error() string {
	name := ""
	if e.Step.Kind == KindRun {
		name = " (" + text.Printable(e.Step.Name) + ")"
	}
	return fmt.Sprintf("%s%s: %v", text.Printable(e.Step.Key), name, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// work is one Reconcile under way.
type work struct {
	Host
	opt   Options
	root  *os.Root
	state *State
	seen  map[string]int // how often an entry of the same definition occurred
	found []string       // the definitions of this run
	steps []Step
}

// entry is an input, a file or a command as Reconcile sees it.
type entry interface {
	step() Step
	optional() bool
	// decide reports whether it has to be applied, and why or why not.
	decide(ctx context.Context, w *work) (apply bool, why string, err error)
	// apply does it, and records the result in s.
	apply(ctx context.Context, w *work, s *Step) error
}

// Reconcile makes the workspace what spec says. It returns a step for every
// entry that it looked at, also together with an error; a required entry that
// fails ends it with an *Error.
func Reconcile(ctx context.Context, h Host, spec Spec, opt Options) (steps []Step, err error) {
	h.Inside = cmp.Or(h.Inside, h.Workspace)
	w := &work{Host: h, opt: opt, seen: map[string]int{}}
	if w.state, err = Load(h.State); err != nil {
		return nil, err
	}
	if w.root, err = atomicfile.OpenRoot(h.Workspace); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.root.Close()) }()
	for _, e := range entries(spec) {
		if err := ctx.Err(); err != nil {
			return w.steps, context.Cause(ctx)
		}
		if err := w.one(ctx, e); err != nil {
			return w.steps, err
		}
	}
	if !opt.DryRun {
		w.state.keepOnly(w.found)
		err = w.save()
	}
	return w.steps, err
}

// entries puts a spec into the order in which it is applied.
func entries(spec Spec) []entry {
	var list []entry
	for i := range spec.Inputs {
		list = append(list, &input{Input: spec.Inputs[i]})
	}
	for _, e := range spec.Entries {
		if e.File != nil {
			list = append(list, &file{key: e.Key, SetupFile: *e.File})
		}
	}
	for _, e := range spec.Entries {
		if e.Run != nil {
			list = append(list, &command{key: e.Key, SetupRun: *e.Run})
		}
	}
	return list
}

// one decides on one entry and applies it.
func (w *work) one(ctx context.Context, e entry) error {
	started := time.Now()
	apply, why, err := e.decide(ctx, w)
	s := e.step() // with what decide has found
	s.Started = started
	if err == nil && !apply && w.opt.Force {
		apply, why = true, "forced"
	}
	s.Reason = why
	switch {
	case err != nil:
	case !apply:
		s.State = Skipped
		w.steps = append(w.steps, s)
		return nil
	case w.opt.DryRun:
		s.State = WouldApply
		w.steps = append(w.steps, s)
		return nil
	default:
		if w.Starting != nil {
			w.Starting(s)
		}
		if err = e.apply(ctx, w, &s); err == nil {
			s.State = Applied
		}
		failpoint.Hit("setup.applied")
	}
	s.Duration = time.Since(s.Started)
	if err == nil {
		w.steps = append(w.steps, s)
		err = w.save()
		failpoint.Hit("setup.recorded")
		return err
	}
	return w.failed(ctx, e, s, err)
}

// failed records an entry that could not be applied. The end of ctx is not the
// entry's failure, and the failure of an optional entry is a warning.
func (w *work) failed(ctx context.Context, e entry, s Step, err error) error {
	s.State, s.Reason = Failed, err.Error()
	optional := e.optional() && ctx.Err() == nil && !errors.Is(err, superqode.ErrUsage) && !errors.Is(err, ErrStop)
	if optional {
		s.State = OptionalFailed
	}
	w.steps = append(w.steps, s)
	if !w.opt.DryRun {
		if serr := w.save(); serr != nil {
			return errors.Join(err, serr)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if optional {
		return nil
	}
	return &Error{s, err}
}

func (w *work) save() error {
	w.state.Steps = slices.Clone(w.steps)
	return w.state.save(w.Host.State)
}

// id numbers entries of the same definition, so that each has its own record.
func (w *work) id(definition string) string {
	w.seen[definition]++
	id := fmt.Sprintf("%s#%d", definition, w.seen[definition])
	w.found = append(w.found, id)
	return id
}
