package life

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Preview says what opening a session would do. The limits were tried here; of the
// guard's layers it is what is to be expected, as trying them would leave traces.
type Preview struct {
	SchemaVersion int              `json:"schema_version"`
	DryRun        bool             `json:"dry_run"`
	Mode          superqode.Mode   `json:"mode"`
	Origin        state.HostPath   `json:"origin"`
	Workspace     state.HostPath   `json:"workspace"` // with <session> for the id that it would get
	From          string           `json:"from"`      // working, or a commit
	Head          string           `json:"head"`      // the commit that HEAD would be at
	Include       []string         `json:"include"`
	Exclude       []string         `json:"exclude"` // of a snapshot copy
	Template      state.HostPath   `json:"template"`
	Keep          superqode.Keep   `json:"keep"`
	Setup         []string         `json:"setup"` // one line an entry, in their order
	Outputs       []string         `json:"outputs"`
	Env           []string         `json:"env"` // names of the variables that would be set
	Cwd           state.HostPath   `json:"cwd"`
	TimeoutMS     int64            `json:"timeout_ms"`
	MaxOutput     int64            `json:"max_output"`
	Limits        []runner.Holding `json:"limits"`
	Shim          string           `json:"shim"`
	Hooks         string           `json:"hooks"`
	Kernel        string           `json:"kernel"`
	Command       []string         `json:"command"`
	Warnings      []string         `json:"warnings"`
}

// Preview finds out what Open would do with opt, and what would be run in it. It
// writes nothing anywhere. The errors are those of Open, as far as they can be
// known before.
func (m *Manager) Preview(ctx context.Context, opt OpenOptions, exec program.ExecOptions) (*Preview, error) {
	o, err := m.Resolve(ctx, opt.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkHome(m.Host, o); err != nil {
		return nil, err
	}
	pl, err := m.plan(ctx, o, opt)
	if err != nil {
		return nil, err
	}
	p := m.ProjectOf(o)
	if _, err := layers.NewRecord(layers.Options(pl.Guard), pl.make.Mode, pl.Enforce, p); err != nil {
		return nil, err
	}
	if p.Exists() {
		if err := mode.ClaimOrigin(p, pl.make.Mode, pl.Name); err != nil {
			return nil, err
		}
	}
	spec, err := opt.Setup.Full()
	if err != nil {
		return nil, err
	}
	if err := prepare.Check(ctx, o, pl.make.Mode, opt.Setup); err != nil {
		return nil, err
	}
	held, err := program.CheckLimits(opt.Defaults)
	if err != nil {
		return nil, err
	}
	d := opt.Defaults
	v := &Preview{
		SchemaVersion: state.SchemaVersion, DryRun: true, Mode: pl.make.Mode, Origin: state.HostPath(o.Top), Workspace: state.HostPath(filepath.Join(p.Dir, "qe", "<name>")), From: pl.make.From, Head: pl.make.Commit,
		Include: notNull(pl.make.Include), Exclude: notNull(pl.make.Exclude), Template: state.HostPath(opt.Template), Keep: pl.Keep, Setup: prepare.Lines(spec), Outputs: notNull(opt.Outputs), Env: []string{}, Cwd: d.Cwd,
		TimeoutMS: d.Timeout.Milliseconds(), MaxOutput: d.MaxOutput, Limits: append([]runner.Holding{}, held...), Command: notNull(exec.Args), Warnings: []string{},
	}
	if mode.Of(pl.make.Mode).InPlace {
		v.Workspace = v.Origin
	}
	for _, kv := range d.Env {
		name, _, _ := strings.Cut(kv, "=")
		v.Env = append(v.Env, name)
	}
	return v, v.guard(layers.MachineOf(m.Host), pl)
}

// guard says which layers there would be.
func (v *Preview) guard(machine *layers.Machine, pl plan) error {
	v.Shim, v.Hooks, v.Kernel = kernel.Off, kernel.Off, kernel.Off
	if !pl.Guard.Off {
		v.Shim, v.Hooks = kernel.Active, kernel.Active
		if _, err := machine.Helper(); err != nil {
			v.Shim, v.Hooks = "unavailable: "+err.Error(), "unavailable: "+err.Error()
		}
	}
	if pl.Enforce == kernel.EnforceOff {
		return nil
	}
	v.Kernel = kernel.Expect()
	if pl.Enforce == kernel.EnforceRequired && v.Kernel != kernel.Active {
		return superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "the kernel layer is required and %s", v.Kernel), "superqode doctor")
	}
	return nil
}

func notNull(list []string) []string { return append([]string{}, list...) }
