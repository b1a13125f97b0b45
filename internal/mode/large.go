package mode

import (
	"context"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// WithoutLarge returns the snapshot without its large files.
func WithoutLarge(sn *snapshot.Snapshot) *snapshot.Snapshot {
	if !slices.ContainsFunc(sn.Entries, func(e snapshot.Entry) bool { return e.IsLarge() }) {
		return sn
	}
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return e.IsLarge() })
	return &out
}

// TakeLarge takes the changes of large files out of the list.
func (l *Look) TakeLarge(changes []superqode.Change) (small, large []superqode.Change) {
	for _, c := range changes {
		old := c.OldPath
		if old.IsZero() {
			old = c.Path
		}
		if l.Final.Find(c.Path.String()).IsLarge() || l.Base.Find(old.String()).IsLarge() {
			c.Binary = true
			large = append(large, c)
			continue
		}
		small = append(small, c)
	}
	return small, large
}

// SaveLarge moves the large files that the session changed out of a workspace
// that is about to be removed.
func SaveLarge(ctx context.Context, s *site.Site, final *snapshot.Snapshot, changes []superqode.Change) error {
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
