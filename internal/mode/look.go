package mode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Look is what a session's workspace holds now, compared with its base.
type Look struct {
	Base         *snapshot.Snapshot // what final is compared with: of an in-place session only what a patch is about
	Final        *snapshot.Snapshot
	Changes      []superqode.Change
	Seen         *revert.Seen // in git_snapshot mode: all that was found
	Problems     []snapshot.Problem
	Ignored      int                 // new entries that git ignores and that are left out
	IgnoredPaths []superqode.RelPath // the topmost of them
	Gone         string              // why there is no workspace to look at, "" where there is one
	Commits      [2]string           // of the store, or refs: base and final, once all that they hold is there
	ends         bool                // the commits are the session's own base and final
	InPlace      bool                // the workspace is the origin and stays as it is: nothing is touched to be read
	dir          string              // what was looked at
	opened       []opened
}

// WorkspaceGone tells that the program deleted its workspace, or put something
// else in its place. Both count as an empty one: what the program did there was
// delete every file, and a link is not followed to what is not the session's.
func WorkspaceGone(s *site.Site) (string, error) {
	dir := string(s.Rec.Workspace)
	if s.Rec.Overlay != nil {
		dir = s.Upper()
	}
	st, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "the workspace was deleted", nil
	case err != nil:
		return "", fmt.Errorf("scan the workspace: %w", err)
	case !st.IsDir():
		return "the workspace was deleted and something else put in its place", nil
	case st.Mode()&0o700 != 0o700 && !Of(s.Rec.Mode).InPlace:
		err = os.Chmod(dir, 0o700) // the folder itself is part of no snapshot
	}
	return "", err
}

// LookRaw scans the workspace. Files whose stat data is that of the base are not
// read.
func LookRaw(ctx context.Context, s *site.Site) (_ *Look, err error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, UnreadBase(s, err)
	}
	l := &Look{Base: base, InPlace: !Of(s.Rec.Mode).Restores || s.Gentle}
	switch why, err := WorkspaceGone(s); {
	case err != nil:
		return nil, err
	case why != "":
		l.Gone = why // nothing is read below the root of an empty snapshot; it only has to be a folder
		l.Final = &snapshot.Snapshot{Root: s.Folder, Format: base.Format, Taken: s.Now()}
		return l, onlyPatchable(s, l)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err = l.scanWorkspace(ctx, s, Skip(s)); err != nil {
		return nil, fmt.Errorf("scan the workspace: %w", err)
	}
	if err := onlyPatchable(s, l); err != nil {
		return nil, err
	}
	if l.Ignored, l.IgnoredPaths, err = dropIgnored(ctx, s, l.Final); err != nil {
		return nil, err
	}
	if err = l.HashAll(ctx); err != nil {
		return nil, err
	}
	l.passOver()
	return l, nil
}

// Skip reports what is no part of a session's snapshots.
func Skip(s *site.Site) snapshot.Skip { return For(s.Rec.Mode).Skip(s) }

// onlyPatchable takes out of a look what is brought back and in no patch.
func onlyPatchable(s *site.Site, l *Look) error {
	k, now := For(s.Rec.Mode), l.Final
	if Of(s.Rec.Mode).Mounted && slices.Equal(l.Base.Entries, now.Entries) {
		return nil // what could be in no patch need not be found
	}
	base, err := k.patchable(s, l.Base)
	if err != nil {
		return err
	}
	if l.Final, err = k.patchable(s, now); err == nil && l.Final != now {
		l.Base, l.Seen = base, &revert.Seen{Now: now, Problems: l.Problems}
	}
	return err
}

// UnreadBase says why the base could not be read: another process may have ended the
// session after this one found it open.
func UnreadBase(s *site.Site, err error) error {
	if now, lerr := state.Load(s.Folder); errors.Is(err, os.ErrNotExist) && (errors.Is(lerr, state.ErrGone) || lerr == nil && now.State.Ended()) {
		return Ended(s)
	}
	return fmt.Errorf("session %s: read its base: %w", s.Rec.ID, err)
}

// Ended is the error of what needs a session that has not ended.
func Ended(s *site.Site) error {
	return superqode.Errorf(superqode.ErrNotFound, "session %s has ended already", s.Rec.ID)
}

// maxOpenings bounds how often a workspace is scanned again because folders in
// it had to be opened first; each scan gets at least one level deeper.
const maxOpenings = 64

// opened is a path whose permission bits were widened for reading.
type opened struct {
	path superqode.RelPath
	perm os.FileMode
}

// A Scan lists what a folder holds, in the way of snapshot.Scan.
type Scan func(context.Context) (*snapshot.Snapshot, []snapshot.Problem, error)

// scanWorkspace scans the workspace in the way of its mode.
func (l *Look) scanWorkspace(ctx context.Context, s *site.Site, skip snapshot.Skip) error {
	opt := snapshot.ScanOptions{Format: s.Base.Format, Known: s.Base.Known(), Previous: s.Base, Contents: snapshot.StatOnly, Skip: skip}
	return l.ScanAll(ctx, func(ctx context.Context) (*snapshot.Snapshot, []snapshot.Problem, error) {
		return For(s.Rec.Mode).scan(ctx, s, opt)
	})
}

// ScanAll scans a folder. A program may take the read permission from what it made, or
// was given; the workspace belongs to superqode's user, so that is no reason not to know
// what is there. Close gives the permissions back.
func (l *Look) ScanAll(ctx context.Context, scan Scan) (err error) {
	for range maxOpenings {
		if l.Final, l.Problems, err = scan(ctx); err != nil {
			return err
		}
		if !l.Open(l.Final.Root, l.Problems) {
			return nil
		}
	}
	return nil
}

// HashAll reads the contents that no stat data vouch for, but for those of large
// files that base cannot have.
func (l *Look) HashAll(ctx context.Context) error {
	if l.Base != nil {
		l.Final.NameUnlike(l.Base)
	}
	problems, err := snapshot.HashMissing(ctx, l.Final)
	if err == nil && l.Open(l.dir, problems) {
		problems, err = snapshot.HashMissing(ctx, l.Final)
	}
	l.Problems = append(l.Problems, problems...)
	for _, o := range l.opened { // the permissions that count are the program's
		if e := l.Final.Find(o.path); e != nil {
			e.Perm = uint32(o.perm.Perm()) | e.Perm&^0o777
		}
	}
	return err
}

// Open widens the permissions of the files and folders that could not be read,
// and reports whether there was one.
func (l *Look) Open(dir string, problems []snapshot.Problem) (any bool) {
	l.dir = dir
	if l.InPlace || len(problems) == 0 {
		return false
	}
	root, err := atomicfile.OpenRoot(l.dir)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, p := range problems {
		if p.Path == "" || !errors.Is(p.Err, os.ErrPermission) {
			continue
		}
		st, err := root.Lstat(string(p.Path))
		if err != nil || !st.Mode().IsRegular() && !st.IsDir() {
			continue
		}
		mode := st.Mode() & (os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky)
		wide := mode | 0o400
		if st.IsDir() {
			wide |= 0o100
		}
		if wide == mode || root.Chmod(string(p.Path), wide) != nil {
			continue
		}
		l.opened = append(l.opened, opened{p.Path, mode})
		any = true
	}
	return any
}

// passOver takes files that cannot be read in spite of all for what they were,
// or for not there: they are named as problems, and nothing is said about what
// they hold.
func (l *Look) passOver() {
	l.Final.Entries = slices.DeleteFunc(l.Final.Entries, func(e snapshot.Entry) bool {
		return e.Kind == snapshot.File && e.ID.IsZero() && l.Base.Find(e.Path) == nil
	})
	for i := range l.Final.Entries {
		e := &l.Final.Entries[i]
		if e.Kind != snapshot.File || !e.ID.IsZero() {
			continue
		}
		if old := l.Base.Find(e.Path); old.Kind == snapshot.File {
			e.ID, e.Size = old.ID, old.Size
		} else {
			*e = *old
		}
	}
}

// Close gives the opened paths their permissions back, the last one first: a
// folder that is closed hides what is in it.
func (l *Look) Close() error {
	if len(l.opened) == 0 {
		return nil
	}
	root, err := atomicfile.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, o := range slices.Backward(l.opened) {
		err = errors.Join(err, root.Chmod(string(o.path), o.perm))
	}
	l.opened = nil
	l.Seen = nil // it shows bits that are no more
	return err
}

// WithoutLarge returns the snapshot without its large files.
func WithoutLarge(sn *snapshot.Snapshot) *snapshot.Snapshot {
	if !slices.ContainsFunc(sn.Entries, func(e snapshot.Entry) bool { return e.IsLarge() }) {
		return sn
	}
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return e.IsLarge() })
	return &out
}

// storable returns both ends as commits of the store hold them. A path at which one of
// them is too large is left as it was: the patch would delete what has only grown.
func (l *Look) storable() (base, final *snapshot.Snapshot) {
	base, final = WithoutLarge(l.Base), WithoutLarge(l.Final)
	if base == l.Base && final == l.Final {
		return base, final
	}
	var list []snapshot.Entry
	for old, e := range snapshot.Join(l.Base.Entries, l.Final.Entries) {
		switch {
		case old.IsLarge():
		case e.IsLarge() && old != nil:
			list = append(list, *old)
		case e != nil && !e.IsLarge():
			list = append(list, *e)
		}
	}
	return base, l.Final.With(list)
}

// Compare fills in the changes.
func (l *Look) Compare() {
	l.Changes = snapshot.Compare(l.Base, l.Final, snapshot.CompareOptions{Renames: true})
	for i, c := range l.Changes {
		l.Changes[i].Binary = l.isLarge(c)
	}
}

func (l *Look) isLarge(c superqode.Change) bool {
	return l.Final.Find(c.Path).IsLarge() || l.Base.Find(cmp.Or(c.OldPath, c.Path)).IsLarge()
}

// TakeLarge takes the changes of large files out of the list.
func (l *Look) TakeLarge() (small, large []superqode.Change) {
	for _, c := range l.Changes {
		if l.isLarge(c) {
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
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if final == nil {
		return nil
	}
	var files []snapshot.Entry
	for _, c := range changes {
		if e := final.Find(c.Path); e.IsLarge() {
			files = append(files, *e)
		}
	}
	_, err := s.MoveLarge(ctx, written(s), files)
	return err
}

// written is the folder in which the files that a session changed lie: through an
// overlay's mount one that was copied up has another inode, and a move would copy it.
func written(s *site.Site) string {
	if s.Rec.Overlay != nil {
		return s.Upper()
	}
	return s.WorkDir()
}
