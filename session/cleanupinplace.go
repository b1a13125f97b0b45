package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/revert"
)

// letGo takes away what a preserved in-place session keeps of the origin. The
// origin itself stays as it is. Where that is what it was, nothing more is
// needed of it; else what is kept goes with Force only, as a salvage.
func (c *cleaner) letGo(ctx context.Context, l state.Listed, state string) {
	id, s := l.ID.String(), c.m.session(l)
	if err := s.own(); err != nil {
		c.failed(id, "it can not be locked", err)
		return
	}
	defer s.Close() //nolint:errcheck // a lock that can not be given back ends with the process
	if s.Rec.State != l.State || s.Rec.Pinned != l.Pinned || !s.Rec.UpdatedAt.Equal(l.UpdatedAt) {
		c.spare(id, "in use by another process")
		return
	}
	ctx = context.WithoutCancel(ctx) // once begun, this is not left half-way
	differs, err := s.differs(ctx)
	if err != nil {
		differs = fmt.Sprintf("whether that is as it was can not be known: %v", err)
	}
	if differs != "" && !c.opt.Force {
		c.spare(id, state+"; it keeps what the origin was ("+differs+"): superqode workspace revert --session "+id)
		return
	}
	if c.opt.DryRun {
		c.removed(id, state, "")
		return
	}
	var d disposal
	if differs != "" {
		if d.salvage, err = s.salvageAside(ctx); err != nil {
			c.failed(id, "what it keeps of the origin can not be salvaged", err)
			return
		}
	}
	if err := s.dispose(ctx, d, c.opt.Force); err != nil {
		c.failed(id, "it can not be removed", err)
		return
	}
	c.removed(id, state, d.salvage.Name())
}

// differs tells, in words, how the origin of an in-place session is not as it
// was; "" means that it is.
func (s *Session) differs(ctx context.Context) (_ string, err error) {
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	base, err := s.LoadBase()
	if err != nil {
		return "", err
	}
	trees := []*revert.Tree{{Dir: string(s.Rec.Origin), Base: base, Skip: s.skip()}}
	if s.Rec.Mode == superqode.ModeGitSnapshot {
		repo, err := s.repository()
		if err != nil {
			return "", err
		}
		trees = append(trees, repo)
	}
	var diffs []string
	for _, t := range trees {
		v, err := t.Verify(ctx, revert.Stat, nil)
		if err != nil {
			return "", err
		}
		diffs = append(diffs, v.Differences...)
	}
	return firstOf(diffs), nil
}

// salvageAside keeps the copies of an in-place session that the origin could be
// brought back from: those of the work tree, and below git-dir those of the
// repository.
func (s *Session) salvageAside(ctx context.Context) (*salvage.Record, error) {
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return nil, err
	}
	var parts []salvage.Part
	for _, part := range []salvage.Part{{Dir: filepath.Join(s.AsideDir(), "tree")}, {Dir: filepath.Join(s.AsideDir(), "git"), Prefix: "git-dir"}} {
		sn, problems, err := snapshot.Scan(ctx, part.Dir, snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		part.Entries, part.LeftOut = sn.Entries, leftOutOf(problems)
		parts = append(parts, part)
	}
	return s.Salvage(ctx, "what the origin was, let go by cleanup", parts...)
}
