package session

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// letGo takes away what a preserved in-place session keeps of the origin. The
// origin itself stays as it is. Where that is what it was, nothing more is
// needed of it; else what is kept goes with Force only, as a salvage.
func (c *cleaner) letGo(ctx context.Context, l state.Listed, state string) {
	id, s := l.ID.String(), c.m.session(l)
	if err := s.own(); err != nil {
		c.failed(id, "it cannot be locked", err)
		return
	}
	defer s.Close() //nolint:errcheck // a lock that cannot be given back ends with the process
	if s.Rec.State != l.State || s.Rec.Pinned != l.Pinned || !s.Rec.UpdatedAt.Equal(l.UpdatedAt) {
		c.spare(id, "in use by another process")
		return
	}
	ctx = context.WithoutCancel(ctx) // once begun, this is not left half-way
	differs, err := mode.Differs(ctx, s.Site)
	if err != nil {
		differs = fmt.Sprintf("whether that is as it was cannot be known: %v", err)
	}
	if differs != "" && !c.opt.Force {
		c.spare(id, state+"; it keeps what the origin was ("+differs+"): superqode workspace revert --session "+id)
		return
	}
	if c.opt.DryRun {
		c.removed(id, state, "")
		return
	}
	var d mode.Disposal
	if differs != "" {
		if d.Salvage, err = mode.SalvageAside(ctx, s.Site); err != nil {
			c.failed(id, "what it keeps of the origin cannot be salvaged", err)
			return
		}
	}
	if err := s.dispose(ctx, d, c.opt.Force); err != nil {
		c.failed(id, "it cannot be removed", err)
		return
	}
	c.removed(id, state, d.Salvage.Name())
}
