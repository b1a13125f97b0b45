package session

import (
	"context"
	"os"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/home"
)

// GuardLayers are the guard's layers as a session would have them here: active, or
// "unavailable: " with the reason.
type GuardLayers struct {
	Shim          string `json:"shim"`
	Hooks         string `json:"hooks"`
	Kernel        string `json:"kernel"`          // for a workspace of its own
	KernelInPlace string `json:"kernel_in_place"` // for a session in the origin itself
}

// GuardLayers tries each layer in a scratch repository with the user's git. The
// trial of shim and hooks is kept for as long as git, helper and kernel stay the
// same.
func (m *Manager) GuardLayers(ctx context.Context) (GuardLayers, error) {
	var l GuardLayers
	g, err := m.checkedGit(ctx)
	if err != nil {
		return l, err
	}
	if err := os.MkdirAll(m.cachePath(), 0o700); err != nil {
		return l, home.Unwritable(err, m.cachePath())
	}
	f, err := m.gitFacts(ctx, g)
	if err == nil {
		st := &guard.SessionState{ID: superqode.NewSessionID(m.now()), Mode: superqode.ModeWorktree, Git: guard.RealGit{Bin: HostPath(g.Bin), ExecPath: f.ExecPath, Version: g.Version.String()}}
		l.Shim, l.Hooks, err = m.probe(ctx, st)
	}
	if err != nil {
		l.Shim, l.Hooks = unavailable(err), unavailable(err)
	}
	helper, _ := m.Helper() // without one .git needs root's right to mount
	apart, inPlace, err := guard.ProbeKernel(ctx, m.cachePath(), helper)
	if err != nil {
		l.Kernel, l.KernelInPlace = unavailable(err), unavailable(err)
	} else {
		l.Kernel, l.KernelInPlace = apart.State, inPlace.State
	}
	return l, context.Cause(ctx)
}

// Helper returns the small binary that stands in sessions as git and as git's
// hooks, or superqode itself where that is not installed.
func (m *Manager) Helper() (string, error) { return m.findHelper() }

// CachePath returns the folder for what can be made again.
func (m *Manager) CachePath() string { return m.cachePath() }
