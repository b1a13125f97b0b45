package attach

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// DiffOptions selects what Diff prints.
type DiffOptions struct {
	Paths []string          // relative to the workspace's root; none: all
	Agent superqode.AgentID // only what this agent changed; zero: all
	Stat  bool              // a diffstat instead of the patch
	Color bool
}

// Diff writes the session's changes as a patch in git's format: base to
// workspace, or base to final once the workspace is no more.
func (s *Attached) Diff(ctx context.Context, w io.Writer, opt DiffOptions) error {
	do := store.DiffOptions{Paths: opt.Paths, Stat: opt.Stat, Color: opt.Color}
	if !opt.Agent.IsZero() {
		e, err := s.AgentEnds(ctx, opt.Agent)
		if err != nil || e.Base == "" {
			return err
		}
		do.Base, do.Final = e.Base, e.Final
		return s.Store.Diff(ctx, do, w)
	}
	if s.Past() {
		if !s.Rec.HasFinal {
			return mode.Unstored(s.Site)
		}
		if err := s.OpenStore(ctx); err != nil {
			return err
		}
		do.Base, do.Final = s.Ref("base"), s.Ref("final")
		return s.Store.Diff(ctx, do, w)
	}
	l, err := s.Look(ctx)
	if err != nil {
		return err
	}
	if len(l.Changes) == 0 {
		return l.Close()
	}
	do.Base, do.Final, err = mode.StoreEnds(ctx, s.Site, l)
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	return s.Store.Diff(ctx, do, w)
}

// DiffNumbered is Diff with the number of each hunk behind its second "@@", or on
// a line of its own for a file without hunks: what ApplyOptions.Hunks takes.
func (s *Attached) DiffNumbered(ctx context.Context, w io.Writer, opt DiffOptions) error {
	n := merge.NewNumberWriter(w)
	return errors.Join(s.Diff(ctx, n, opt), n.Close())
}

// Unsaved tells, in words, whether the workspace holds changes that are kept
// nowhere else; "" means that it does not: there are none, or the session's end
// has collected exactly these.
func (s *Attached) Unsaved(ctx context.Context) (_ string, err error) {
	l, err := s.Look(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	switch {
	case l.Gone != "" || len(l.Changes) == 0 && len(l.Problems) == 0:
		return "", nil
	case len(l.Problems) > 0:
		return fmt.Sprintf("it holds %s that cannot be read", text.Plural(len(l.Problems), "path")), nil
	}
	if s.Rec.State == superqode.StatePreserved && s.Rec.Collected {
		digest, err := l.Final.Digest()
		if err != nil {
			return "", err
		}
		if digest == s.Rec.Final.Digest {
			return "", nil
		}
	}
	return fmt.Sprintf("it holds %s that %s kept nowhere else", text.Plural(len(l.Changes), "change"), map[bool]string{true: "is", false: "are"}[len(l.Changes) == 1]), nil
}
