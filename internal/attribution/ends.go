package attribution

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Ends finds what a session's patch lies between: as the workspace is now or, of
// a session that has ended, as it was in the end.
func (s *Authorship) Ends(ctx context.Context) (e merge.Ends, err error) {
	if s.Rec.State == superqode.StateDone {
		return s.StoredEnds(ctx)
	}
	l, err := s.Look(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, l.Close(string(s.Rec.Workspace))) }()
	if l.Gone != "" {
		return e, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s: there is nothing to apply, and taking that for the wish to delete every file would be wrong", l.Gone), "superqode workspace info --session %s", s.Rec.ID)
	}
	for _, p := range l.Problems {
		e.Left = append(e.Left, text.Printable(p.Path)+" could not be read: "+p.Err.Error())
	}
	e.Changes = l.Changes
	if len(l.Changes) == 0 {
		return e, nil
	}
	e.Base, e.Final, err = mode.StoreEnds(ctx, s.Site, l)
	return e, err
}

// StoredEnds are the ends that were stored when the session was collected.
func (s *Authorship) StoredEnds(ctx context.Context) (e merge.Ends, err error) {
	e.Changes, err = mode.ReadChanges(s.Site)
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return e, err
	}
	if !s.Rec.HasFinal {
		return e, nil
	}
	e.Base, e.Final = s.Ref("base"), s.Ref("final")
	return e, s.OpenStore(ctx)
}

// OpenScratch makes a scratch folder for merges with the origin,
// openMergeScratch one for what lies in the store.
func (s *Authorship) OpenScratch(ctx context.Context) (*merge.Scratch, error) {
	opt, err := s.scratchOptions(ctx)
	if err != nil {
		return nil, err
	}
	opt.Origin = string(s.Rec.Origin)
	return merge.Open(ctx, opt)
}

func (s *Authorship) openMergeScratch(ctx context.Context) (*merge.StoreScratch, error) {
	opt, err := s.scratchOptions(ctx)
	if err != nil {
		return nil, err
	}
	return merge.OpenStoreScratch(ctx, opt)
}

func (s *Authorship) scratchOptions(ctx context.Context) (merge.Options, error) {
	if err := s.OpenStore(ctx); err != nil {
		return merge.Options{}, err
	}
	g, err := s.Git(ctx)
	return merge.Options{Git: g, Store: s.Store, Dir: s.Folder}, err
}

// Past reports whether the workspace tells no more what the session changed.
func (s *Authorship) Past() bool {
	return s.Rec.State == superqode.StateDone || s.Rec.Reverting
}
