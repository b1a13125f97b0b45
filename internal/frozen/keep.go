package frozen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Keep stores the contents that entries of a state's base have, from its layers.
func Keep(ctx context.Context, to *store.Store, lower []string, base *snapshot.Snapshot) error {
	left := slices.DeleteFunc(slices.Clone(base.Entries), func(e snapshot.Entry) bool {
		return e.Kind != snapshot.File && e.Kind != snapshot.Link || e.ID.IsZero() || e.IsLarge()
	})
	slices.SortFunc(left, snapshot.ByPath)
	for _, dir := range lower {
		at, err := openLayer(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var here []snapshot.Entry
		left = slices.DeleteFunc(left, func(e snapshot.Entry) bool {
			now, err := at.stat(e.Path)
			if err != nil || now.Kind != e.Kind { // a whiteout, or in a layer below
				return false
			}
			here = append(here, e)
			return true
		})
		err = at.Close()
		if len(here) > 0 {
			err = errors.Join(err, to.WriteBlobs(ctx, dir, here))
		}
		if err != nil {
			return fmt.Errorf("keep the base's contents: %w", err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("keep the base's contents: %s: %w", text.Printable(left[0].Path), fs.ErrNotExist)
	}
	return nil
}
