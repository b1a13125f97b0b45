package layers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/site"
)

// Machine is what the guard's layers are made of and tried with on this machine.
type Machine struct {
	Home string   // superqode's own folder
	Shim string   // the helper to take; "" for the one that is found
	Env  []string // the user's environment
	Git  func(ctx context.Context) (*git.Git, error)
	Now  func() time.Time
}

// MachineOf is this machine for the sessions of a host.
func MachineOf(h *site.Host) *Machine {
	return &Machine{Home: h.Home, Shim: h.Shim, Env: h.Env, Git: h.Git, Now: h.Now}
}

// Unavailable is the state of a layer that this machine does not have.
func Unavailable(why error) string { return "unavailable: " + why.Error() }

// FillShim makes bin and exec in a session's folder, or in one that stands for it
// while the layers are probed.
func (m *Machine) FillShim(ctx context.Context, st *guard.SessionState, dir string) error {
	for _, d := range []string{"bin", "exec"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, d, guard.ShimMarker), nil, 0o600); err != nil {
			return err
		}
	}
	if err := m.linkHelper(dir, []string{"bin/git", "exec/git"}); err != nil {
		return err
	}
	for try := 0; ; try++ {
		f, err := m.Facts(ctx, git.At(string(st.Git.Bin), m.Env))
		if err == nil {
			err = f.link(filepath.Join(dir, "exec"))
		}
		if err == nil || try == 2 || !errors.Is(err, os.ErrNotExist) {
			return err // else another superqode, with another git, has swept the cache
		}
	}
}
