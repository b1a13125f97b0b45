package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

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

// moveLarge moves large files out of a directory into the session's folder and
// tells where they are.
func (s *Session) moveLarge(ctx context.Context, dir string, entries []snapshot.Entry) (moved bool, err error) {
	var files []snapshot.Entry
	for i := range entries {
		if entries[i].IsLarge() {
			files = append(files, entries[i])
		}
	}
	if len(files) == 0 {
		return false, nil
	}
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(s.dir, "large", strconv.Itoa(n))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return false, err
		}
		if err := os.Mkdir(to, 0o700); err == nil {
			break
		} else if !errors.Is(err, os.ErrExist) {
			return false, err
		}
	}
	format, err := snapshot.ParseFormat(s.rec.ObjectFormat)
	if err != nil {
		return false, err
	}
	err = snapshot.MoveOut(ctx, dir, to, format, files)
	for i := range files {
		file := filepath.Join(to, files[i].Path)
		if _, lerr := os.Lstat(file); lerr == nil {
			s.warn(fmt.Sprintf("%s (%s) is too big for a patch; it is kept until the session is cleaned up: %s", visible(files[i].Path), megabytes(files[i].Size), quoteWord(file)))
		}
	}
	return true, err
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
	_, err := s.moveLarge(ctx, string(s.rec.Workspace), files)
	return err
}
