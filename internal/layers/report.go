package layers

import (
	"context"
	"os"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Report are the guard's layers as a session would have them here: active, or
// "unavailable: " with the reason.
type Report struct {
	Shim          string `json:"shim"`
	Hooks         string `json:"hooks"`
	Kernel        string `json:"kernel"`          // for a workspace of its own
	KernelInPlace string `json:"kernel_in_place"` // for a session in the origin itself
}

// Report tries each layer in a scratch repository with the user's git. The
// trial of shim and hooks is kept for as long as git, helper and kernel stay the
// same.
func (m *Machine) Report(ctx context.Context, g *git.Git) (l Report, err error) {
	if err := os.MkdirAll(m.CachePath(), 0o700); err != nil {
		return l, state.Unwritable(err, m.CachePath())
	}
	f, err := m.Facts(ctx, g)
	if err == nil {
		st := &guard.SessionState{ID: superqode.NewSessionID(m.Now()),
			Git: guard.RealGit{Bin: superqode.HostPath(g.Bin), ExecPath: f.ExecPath, Version: g.Version.String()}}
		l.Shim, l.Hooks, err = m.Probe(ctx, st)
	}
	if err != nil {
		l.Shim, l.Hooks = Unavailable(err), Unavailable(err)
	}
	helper, _ := m.Helper() // without one .git needs root's right to mount
	apart, inPlace, err := kernel.Probe(ctx, m.CachePath(), helper)
	if err != nil {
		l.Kernel, l.KernelInPlace = Unavailable(err), Unavailable(err)
	} else {
		l.Kernel, l.KernelInPlace = apart.State, inPlace.State
	}
	return l, context.Cause(ctx)
}
