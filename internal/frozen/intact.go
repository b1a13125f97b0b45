package frozen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// errChanged means that a state is not what it was when it was made.
var errChanged = errors.New("somebody else changed it")

// trusted is how long the files of a state are not looked at once more.
const trusted = time.Hour

// intact returns an error that wraps errChanged where somebody else changed what
// lies in a state's layers: all of it has an older ctime than the base.snap that came
// last. Folders, in which names come and go, are always looked at; files now and then,
// since that takes as long as a look at the origin.
func (st *State) intact() error {
	note := filepath.Join(filepath.Dir(st.Lower[0]), "checked")
	info, err := os.Stat(note)
	whole := err != nil || time.Since(info.ModTime()).Abs() > trusted
	made := make([]int64, len(st.Lower))
	for i, tree := range st.Lower {
		info, err := os.Stat(filepath.Join(filepath.Dir(tree), "base.snap"))
		if err != nil {
			return err
		}
		made[i] = info.ModTime().UnixNano()
	}
	list := append([]snapshot.Entry{{Kind: snapshot.Dir}}, st.Base.Entries...) // the top itself, first
	if !whole {
		list = slices.DeleteFunc(list, func(e snapshot.Entry) bool { return e.Kind != snapshot.Dir })
	}
	var all errgroup.Group
	for part := range slices.Chunk(list, max(1, len(list)/runtime.GOMAXPROCS(0)+1)) {
		all.Go(func() (err error) {
			layers := make([]*layer, len(st.Lower))
			for i, tree := range st.Lower {
				if layers[i], err = openLayer(tree); err != nil {
					return err
				}
				defer layers[i].Close()
			}
			for i := range part {
				if err := unchanged(&part[i], layers, made); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil || !whole {
		return err
	}
	return os.WriteFile(note, nil, 0o600)
}

// unchanged looks at an entry in the layers that show it.
func unchanged(e *snapshot.Entry, layers []*layer, made []int64) error {
	there := false
	for i, l := range layers {
		now, err := l.stat(e.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return &fs.PathError{Op: "look at", Path: text.Printable(e.Path), Err: err}
		case now.Stat.Ctime > made[i]:
			return fmt.Errorf("%s: %w", text.Printable(e.Path), errChanged)
		}
		if there = true; now.Kind != snapshot.Dir {
			break // nothing below it shows
		}
	}
	if !there {
		return fmt.Errorf("%s is gone: %w", text.Printable(e.Path), errChanged)
	}
	return nil
}
