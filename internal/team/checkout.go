package team

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// checkOut brings the session's own workspace to what was merged, and proves it.
func (s *Ending) checkOut(ctx context.Context, m *attribution.TeamMerge) error {
	ws := s.WorkDir()
	if _, err := os.Lstat(ws); errors.Is(err, os.ErrNotExist) {
		if err := os.Mkdir(ws, 0o700); err != nil {
			return err
		}
	}
	drop := mode.Skip(s.Site)
	skip := func(path superqode.RelPath, kind snapshot.Kind) bool {
		return drop(path, kind) || m.Now.Find(path).IsLarge()
	}
	wide, closed := readable(m.Now)
	tree := &revert.Tree{Dir: ws, Base: mode.WithoutLarge(wide), Skip: skip, Store: s.Store}
	res, err := tree.Restore(ctx, revert.RestoreOptions{})
	if err != nil {
		return err
	}
	if !res.Verified {
		return superqode.Errorf(superqode.ErrVerification, "%s not as merged: %s",
			mode.IsAre(len(res.Differences)), text.FirstOf(res.Differences))
	}
	if err := s.checkOutLarge(ctx, m); err != nil {
		return err
	}
	for _, e := range slices.Backward(closed) { // what is in a folder comes after it
		if err := treecopy.Adjust(ctx, ws, []snapshot.Entry{e}); err != nil {
			return err
		}
	}
	return nil
}

// readable returns the snapshot with what its owner could not read, or not search,
// opened, so that it can be written and proven, and the entries as they have to
// be in the end.
func readable(sn *snapshot.Snapshot) (wide *snapshot.Snapshot, closed []snapshot.Entry) {
	out := *sn
	out.Entries = slices.Clone(sn.Entries)
	for i := range out.Entries {
		e, need := &out.Entries[i], uint32(0)
		switch e.Kind {
		case snapshot.File:
			need = 0o400
		case snapshot.Dir:
			need = 0o700
		}
		if e.Perm&need != need && !e.IsLarge() {
			closed = append(closed, *e)
			e.Perm |= need
		}
	}
	return &out, closed
}

// checkOutLarge takes over the large files that agents made or changed: no store
// has them, only the agents' workspaces.
func (s *Ending) checkOutLarge(ctx context.Context, m *attribution.TeamMerge) error {
	for _, w := range m.Works {
		var paths []superqode.RelPath
		for _, c := range w.Large {
			if c.New == nil {
				continue
			}
			if e := m.Now.Find(c.New.Path); e.IsLarge() && e.ID == c.New.ID {
				paths = append(paths, c.New.Path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		tree := &revert.Tree{Dir: s.WorkDir(), Base: m.Now, Skip: mode.Skip(s.Site), Store: s.Store,
			Aside: w.Child.WorkDir()}
		res, err := tree.Restore(ctx, revert.RestoreOptions{Within: paths})
		if err == nil && !res.Verified {
			err = superqode.Errorf(superqode.ErrVerification, "%s not as agent %s made them: %s",
				mode.IsAre(len(res.Differences)), w.Agent, text.FirstOf(res.Differences))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
