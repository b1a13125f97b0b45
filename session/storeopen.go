package session

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// openStore opens the project's store of contents once. While the repository is
// distrusted its objects are read from the session's own copy of them.
func (s *Session) openStore(ctx context.Context) error {
	if s.store != nil {
		return nil
	}
	format, err := snapshot.ParseFormat(s.rec.ObjectFormat)
	if err != nil {
		return err
	}
	objects := ""
	switch {
	case s.distrusted:
		objects = filepath.Join(s.asideDir(), "git", "objects")
	case s.rec.CommonDir != "":
		objects = filepath.Join(string(s.rec.CommonDir), "objects")
	}
	g, err := s.m.git(ctx)
	if err != nil {
		return err
	}
	s.store, err = snapshot.OpenStore(ctx, g, s.p.StorePath(), objects, format)
	return err
}
