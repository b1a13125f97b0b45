// Package aside keeps what a session in the origin itself could destroy (files that no
// object of git's holds, the repository), and brings it back.
package aside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// UnreadableError names files that the user may not read.
type UnreadableError []snapshot.Problem

func (e UnreadableError) Error() string { return e[0].Error() }

// Copy copies files into a folder of the session's aside folder and records
// in sn what was copied. When all is copied but files that cannot be read, the
// error is an UnreadableError.
func Copy(ctx context.Context, s *site.Site, wanted *snapshot.Snapshot, name string, sn *snapshot.Snapshot) error {
	if err := failpoint.Err("inplace.aside"); err != nil {
		return err
	}
	dir := filepath.Join(s.AsideDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if len(wanted.Entries) == 0 {
		return nil
	}
	kept, problems, err := treecopy.Copy(ctx, wanted, dir, treecopy.CopyOptions{Existing: true})
	if err != nil {
		return fmt.Errorf("keep what %s holds: %w", sn.Root, err)
	}
	var unreadable UnreadableError
	for _, p := range problems {
		switch {
		case errors.Is(p.Err, os.ErrNotExist) && name == "git" && isObject(string(p.Path)):
			return p // git moved it into a pack: KeepRepository begins again
		case errors.Is(p.Err, snapshot.ErrChangedWhileRead), errors.Is(p.Err, os.ErrNotExist):
			s.Warn(text.Printable(p.Path) + " changed while it was copied; what it holds now may not come back")
		case errors.Is(p.Err, os.ErrPermission):
			unreadable = append(unreadable, p)
		default:
			return fmt.Errorf("keep what %s holds: %w", sn.Root, p)
		}
	}
	for i := range kept.Entries {
		k := &kept.Entries[i]
		if e := sn.Find(k.Path); e != nil && e.Kind == k.Kind && k.Kind == snapshot.File {
			e.ID, e.Size, e.Stat.Mtime = k.ID, k.Size, k.Stat.Mtime // as it was copied, should it have changed since the scan
		}
	}
	sn.Entries = slices.DeleteFunc(sn.Entries, func(e snapshot.Entry) bool {
		return e.Kind == snapshot.File && e.ID.IsZero() && wanted.Find(e.Path) != nil
	}) // gone by now, or not to be read
	if unreadable != nil {
		return fmt.Errorf("keep what %s holds: %w", sn.Root, unreadable)
	}
	return nil
}

// KeepOverwritten salvages what a plan overwrites or removes in the folder dir.
// prefix is that of a salvage.Part. What cannot be salvaged is not overwritten
// either.
func KeepOverwritten(s *site.Site, dir string, prefix superqode.RelPath) func(context.Context, *revert.Plan) error {
	return func(ctx context.Context, p *revert.Plan) error {
		over := p.Overwritten()
		changed, err := openFiles(ctx, dir, over)
		if err == nil && !changed {
			changed, err = s.MoveLarge(ctx, dir, snapshot.TooMuch(over, snapshot.LargeFile, snapshot.MostRead))
		}
		if changed || errors.Is(err, superqode.ErrConflict) {
			return revert.ErrAgain // what the plan was made from is no more
		}
		if err != nil {
			return err
		}
		sv, err := s.Keep(ctx, salvage.Part{Dir: dir, Prefix: prefix, Entries: over})
		if site.IsFull(err) {
			if moved, merr := s.MoveUnsaved(ctx, dir, over); moved && merr == nil {
				return revert.ErrAgain
			}
		}
		if err != nil || sv == nil {
			return err
		}
		for _, l := range sv.LeftOut {
			p.Spare(superqode.RelPath(strings.TrimPrefix(strings.TrimPrefix(string(l.Path), string(prefix)), "/")), errors.New("it could not be saved: "+l.Reason))
		}
		return nil
	}
}

// openFiles gives the owner of files the permission to read them back. It reports
// whether there were any.
func openFiles(ctx context.Context, dir string, entries []snapshot.Entry) (bool, error) {
	if os.Geteuid() == 0 {
		return false, nil
	}
	var closed []snapshot.Entry
	for _, e := range entries {
		if e.Kind == snapshot.File && e.Perm&0o400 == 0 {
			e.Perm |= 0o400
			closed = append(closed, e)
		}
	}
	return len(closed) > 0, treecopy.Adjust(ctx, dir, closed)
}
