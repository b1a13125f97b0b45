package mode

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode"
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
	Ignored      int      // new entries that git ignores and that are left out
	IgnoredPaths []string // the topmost of them
	Gone         string   // why there is no workspace to look at, "" where there is one
	Stored       bool     // final is no workspace's: all its contents are in the store
	InPlace      bool     // the workspace is the origin and stays as it is: nothing is touched to be read
	opened       []opened
}

// WorkspaceGone tells that the program deleted its workspace, or put something
// else in its place. Both count as an empty one: what the program did there was
// delete every file, and a link is not followed to what is not the session's.
func WorkspaceGone(s *site.Site) (string, error) {
	st, err := os.Lstat(string(s.Rec.Workspace))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "the workspace was deleted", nil
	case err != nil:
		return "", fmt.Errorf("scan the workspace: %w", err)
	case !st.IsDir():
		return "the workspace was deleted and something else put in its place", nil
	case st.Mode()&0o700 != 0o700 && !Of(s.Rec.Mode).InPlace:
		err = os.Chmod(string(s.Rec.Workspace), 0o700) // the folder itself is part of no snapshot
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
	ws := string(s.Rec.Workspace)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close(ws))
		}
	}()
	err = l.ScanAll(ctx, ws, snapshot.ScanOptions{Format: base.Format, Known: base.Known(), Previous: base, Contents: snapshot.StatOnly, Skip: Skip(s)})
	if err != nil {
		return nil, fmt.Errorf("scan the workspace: %w", err)
	}
	if err := onlyPatchable(s, l); err != nil {
		return nil, err
	}
	if l.Ignored, l.IgnoredPaths, err = dropIgnored(ctx, s, l.Final); err != nil {
		return nil, err
	}
	if err = l.HashAll(ctx, ws); err != nil {
		return nil, err
	}
	l.passOver()
	return l, nil
}

// Skip reports what is no part of a session's snapshots.
func Skip(s *site.Site) func(string, snapshot.Kind) bool { return For(s.Rec.Mode).Skip(s) }

// onlyPatchable takes out of a look what is brought back and in no patch.
func onlyPatchable(s *site.Site, l *Look) error {
	k, now := For(s.Rec.Mode), l.Final
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
