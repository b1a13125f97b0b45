package merge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// OnlyHunks reduces the changes to the chosen hunks. The changes are in the
// order of the patch; it drops those that the patch does not show.
func (b *Scratch) OnlyHunks(ctx context.Context, e *Ends, paths []string, ranges []HunkRange) ([]Change, error) {
	if e.Base == "" {
		_, err := selectHunks(ranges, 0)
		return nil, errors.Join(err, context.Cause(ctx))
	}
	do := store.DiffOptions{Base: e.Base, Final: e.Final, Paths: paths}
	var patch bytes.Buffer
	if err := b.store.Diff(ctx, do, &patch); err != nil {
		return nil, err
	}
	files, err := splitPatch(patch.Bytes())
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range files {
		total += files[i].count()
	}
	sel, err := selectHunks(ranges, total)
	if err != nil {
		return nil, err
	}
	shown := *e
	shown.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(c superqode.Change) bool {
		return c.Type == superqode.ChangeMode && (c.OldMode^c.NewMode)&0o100 == 0
	})
	list, err := shown.Pairs(ctx, b.store, paths)
	if err != nil {
		return nil, err
	}
	e.Left = nil // what has no number was not chosen
	return b.chooseHunks(ctx, list, files, sel)
}

var ErrNotThePatch = errors.New("the patch and the list of its files do not match")

// chooseHunks goes through the patch's files and the changes side by side. A path
// that turned from file to link, or back, is two files of a patch.
func (b *Scratch) chooseHunks(ctx context.Context, list []Change, files []section, sel selection) ([]Change, error) {
	var out []Change
	number := 1
	take := func(c *Change) (*section, []int, error) {
		if len(files) == 0 || !files[0].isOf(c) {
			return nil, nil, ErrNotThePatch
		}
		f := &files[0]
		chosen := sel.chosen(f, number)
		number += f.count()
		files = files[1:]
		return f, chosen, nil
	}
	for _, c := range list {
		f, chosen, err := take(&c)
		if err != nil {
			return nil, err
		}
		if c.Old != nil && c.New != nil && c.Old.Kind != c.New.Kind {
			_, made, err := take(&c)
			if err != nil {
				return nil, err
			}
			switch {
			case len(made) > 0:
				out = append(out, c)
			case len(chosen) > 0:
				c.New = nil
				out = append(out, c)
			}
			continue
		}
		if len(chosen) == 0 {
			continue
		}
		if len(chosen) < f.count() {
			if err := b.partly(ctx, &c, f, chosen); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	if len(files) > 0 {
		return nil, ErrNotThePatch
	}
	return out, nil
}

// partly makes a change of some of its hunks. Any of them brings the name and
// the mode along.
func (b *Scratch) partly(ctx context.Context, c *Change, f *section, chosen []int) error {
	if c.Old == nil || c.New == nil || c.Old.Kind != snapshot.File {
		return ErrNotThePatch // a file that is made or deleted, or a link, has one hunk
	}
	if err := b.Fetch("base", c.Old.ID); err != nil {
		return err
	}
	base, err := os.Open(b.Path("base"))
	if err != nil {
		return err
	}
	defer base.Close()
	name := b.Fresh("hunks-")
	out, err := os.OpenFile(b.Path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.Added, c.Removed, err = patchFile(out, base, f, chosen)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	made, err := b.result(name)
	if err != nil {
		return err
	}
	part := *c.New
	part.ID, part.Size = made.ID, made.Size
	c.New = &part
	return ctx.Err()
}
