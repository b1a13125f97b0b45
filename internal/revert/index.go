package revert

import (
	"errors"
	"io/fs"
	"os"

	"github.com/seed-2d964004/superqode/internal/git"
)

// sameEntries reports whether the index at path holds the same entries as the
// copy that Capture made. Cached stat data and the layout of the file do not
// count.
func (s *RepoState) sameEntries(path string) (bool, error) {
	if len(s.IndexCopy) == 0 || s.IndexSum == "" {
		return false, nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	old, err := git.ReadIndex(string(s.IndexCopy), s.ObjectFormat)
	if err != nil {
		return false, nilIfCorrupt(err)
	}
	now, err := git.ReadIndex(path, s.ObjectFormat)
	if err != nil {
		return false, nilIfCorrupt(err)
	}
	if old.Len() != now.Len() {
		return false, nil
	}
	for i := range old.Len() {
		a, b := old.At(i), now.At(i)
		a.Stat, b.Stat = git.IndexStat{}, git.IndexStat{}
		if a != b {
			return false, nil
		}
	}
	return true, nil
}

// nilIfCorrupt treats an unreadable index as a changed one: what it held is
// gone either way. A copy of a split index lacks its shared half and is
// compared by its bytes alone.
func nilIfCorrupt(err error) error {
	if errors.Is(err, git.ErrIndexCorrupt) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
