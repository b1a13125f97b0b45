package mode

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/site"
)

// SaveBase writes base and origin beside the record. The base comes last: it
// vouches only for files that did not change within the last tick of the clock,
// so there is a moment to wait, and the other writes use it.
func SaveBase(ctx context.Context, s *site.Site) error {
	digest, err := s.Base.Digest()
	if err != nil {
		return err
	}
	s.Rec.Base.Digest = digest
	s.Rec.Base.Files, s.Rec.Base.Bytes = s.Base.Count()
	if s.RepoState != nil {
		if err := s.RepoState.Save(filepath.Join(s.Folder, "state.json")); err != nil {
			return err
		}
	}
	if s.OriginBase != nil {
		knowContents(s.OriginBase, s.Base)
		if err := s.OriginBase.Save(filepath.Join(s.Folder, "origin.snap")); err != nil {
			return err
		}
	}
	if err := s.Base.Settle(ctx); err != nil {
		return err
	}
	return s.Base.Save(filepath.Join(s.Folder, "base.snap"))
}

// KeepBase puts contents of the base that are not in the store yet there, as far
// as a patch is made from them.
func KeepBase(ctx context.Context, s *site.Site, l *Look) error {
	return For(s.Rec.Mode).keepBase(ctx, s, l)
}
