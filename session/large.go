package session

import (
	"context"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// withoutLarge returns the snapshot without its large files.
func withoutLarge(sn *snapshot.Snapshot) *snapshot.Snapshot {
	if !slices.ContainsFunc(sn.Entries, func(e snapshot.Entry) bool { return e.IsLarge() }) {
		return sn
	}
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return e.IsLarge() })
	return &out
}

// takeLarge takes the changes of large files out of the list.
func (l *look) takeLarge(changes []superqode.Change) (small, large []superqode.Change) {
	for _, c := range changes {
		old := c.OldPath
		if old.IsZero() {
			old = c.Path
		}
		if l.final.Find(c.Path.String()).IsLarge() || l.base.Find(old.String()).IsLarge() {
			c.Binary = true
			large = append(large, c)
			continue
		}
		small = append(small, c)
	}
	return small, large
}

// saveLarge moves the large files that the session changed out of a workspace
// that is about to be removed.
func (s *Session) saveLarge(ctx context.Context, final *snapshot.Snapshot, changes []superqode.Change) error {
	if final == nil {
		return nil
	}
	var files []snapshot.Entry
	for _, c := range changes {
		if e := final.Find(c.Path.String()); e.IsLarge() {
			files = append(files, *e)
		}
	}
	_, err := s.MoveLarge(ctx, string(s.Rec.Workspace), files)
	return err
}
