package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/revert"
)

// look is what a session's workspace holds now, compared with its base.
type look struct {
	base         *snapshot.Snapshot // what final is compared with: of an in-place session only what a patch is about
	final        *snapshot.Snapshot
	changes      []superqode.Change
	seen         *revert.Seen // in git_snapshot mode: all that was found
	problems     []snapshot.Problem
	ignored      int      // new entries that git ignores and that are left out
	ignoredPaths []string // the topmost of them
	gone         string   // why there is no workspace to look at, "" where there is one
	stored       bool     // final is no workspace's: all its contents are in the store
	inPlace      bool     // the workspace is the origin and stays as it is: nothing is touched to be read
	opened       []opened
}

// workspaceGone tells that the program deleted its workspace, or put something
// else in its place. Both count as an empty one: what the program did there was
// delete every file, and a link is not followed to what is not the session's.
func (s *Session) workspaceGone() (string, error) {
	st, err := os.Lstat(string(s.Rec.Workspace))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "the workspace was deleted", nil
	case err != nil:
		return "", fmt.Errorf("scan the workspace: %w", err)
	case !st.IsDir():
		return "the workspace was deleted and something else put in its place", nil
	case st.Mode()&0o700 != 0o700 && !s.Rec.Mode.InPlace():
		err = os.Chmod(string(s.Rec.Workspace), 0o700) // the folder itself is part of no snapshot
	}
	return "", err
}

// unreadBase says why the base could not be read: another process may have ended the
// session after this one found it open.
func (s *Session) unreadBase(err error) error {
	if now, lerr := state.Load(s.Folder); errors.Is(err, os.ErrNotExist) && (errors.Is(lerr, state.ErrGone) || lerr == nil && now.State.Ended()) {
		return s.ended()
	}
	return fmt.Errorf("session %s: read its base: %w", s.Rec.ID, err)
}

// look scans the workspace and compares it with the base; what the setup did and
// nobody changed since counts as unchanged. Close the look when no more contents
// are needed.
func (s *Session) look(ctx context.Context) (*look, error) {
	if s.team() {
		return s.lookAgents(ctx)
	}
	l, err := s.lookRaw(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.withoutSetup(l); err != nil {
		return nil, errors.Join(err, l.close(string(s.Rec.Workspace)))
	}
	if spared, err := s.setupIgnored(); err == nil && !slices.ContainsFunc(l.ignoredPaths, func(p string) bool { return !spared[p] }) {
		l.ignored = 0 // all of it is the setup's
	}
	l.changes = snapshot.Compare(l.base, l.final, snapshot.CompareOptions{Renames: true})
	return l, nil
}

// lookRaw scans the workspace. Files whose stat data is that of the base are not
// read.
func (s *Session) lookRaw(ctx context.Context) (_ *look, err error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, s.unreadBase(err)
	}
	l := &look{base: base, inPlace: s.Rec.Mode == superqode.ModeShared || s.Gentle}
	switch why, err := s.workspaceGone(); {
	case err != nil:
		return nil, err
	case why != "":
		l.gone = why // nothing is read below the root of an empty snapshot; it only has to be a folder
		l.final = &snapshot.Snapshot{Root: s.Folder, Format: base.Format, Taken: s.Now()}
		return l, s.onlyPatchable(l)
	}
	ws := string(s.Rec.Workspace)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close(ws))
		}
	}()
	err = l.scanAll(ctx, ws, snapshot.ScanOptions{Format: base.Format, Known: base.Known(), Previous: base, Contents: snapshot.StatOnly, Skip: s.skip()})
	if err != nil {
		return nil, fmt.Errorf("scan the workspace: %w", err)
	}
	if err := s.onlyPatchable(l); err != nil {
		return nil, err
	}
	if l.ignored, l.ignoredPaths, err = s.dropIgnored(ctx, l.final); err != nil {
		return nil, err
	}
	if err = l.hashAll(ctx, ws); err != nil {
		return nil, err
	}
	l.passOver()
	return l, nil
}

// skip says what is no part of a session's snapshots: git's own files, and in
// place also superqode's.
func (s *Session) skip() func(string, snapshot.Kind) bool {
	base := skipGit
	switch s.Rec.Mode {
	case superqode.ModeGitSnapshot:
		return s.skipUnprotected()
	case superqode.ModeDirectory: // a repository that came with the template is the workspace's own
		return func(string, snapshot.Kind) bool { return false }
	case superqode.ModeShared:
		base = skipOrigin
	}
	if len(s.Rec.Exclude) == 0 {
		return base
	}
	drop := excluded(s.Rec.Exclude)
	return func(path string, kind snapshot.Kind) bool { return base(path, kind) || drop(path) }
}

// describe fills in line counts and renames with edits.
func (s *Session) describe(ctx context.Context, l *look) error {
	if len(l.changes) == 0 {
		return nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	var err error
	if err := s.keepBase(ctx, l); err != nil {
		return err
	}
	small, large := l.takeLarge(l.changes)
	if l.stored {
		small, err = s.Store.DescribeStored(ctx, l.base, l.final, small, [2]string{s.Ref("base"), s.mergedRef(len(s.Rec.Agents) - 1)})
	} else {
		small, err = s.Store.Describe(ctx, l.base, l.final, small)
	}
	if err != nil {
		return err
	}
	l.changes = append(small, large...)
	slices.SortStableFunc(l.changes, func(a, b superqode.Change) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	if s.tracked() {
		e := merge.Ends{Changes: l.changes}
		if e.Base, e.Final, err = s.storeEnds(ctx, l); err != nil {
			return err
		}
		if s.credits, err = s.sharedCredits(ctx, &e); err != nil {
			return err
		}
	}
	return s.stampSeen(l.changes)
}

// Changes returns what differs between the session's base and its workspace as
// it is now or, once the session has ended and its workspace is gone, as it was
// in the end.
func (s *Session) Changes(ctx context.Context) ([]superqode.Change, error) {
	if s.past() {
		return s.readChanges()
	}
	go func() { _, _ = s.Git(ctx) }() // found and checked while the files are looked at; describe asks again and sees the error
	l, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.describe(ctx, l), l.close(string(s.Rec.Workspace))); err != nil {
		return nil, err
	}
	if l.gone != "" {
		s.Tell(l.gone)
	}
	for _, p := range l.problems {
		s.Tell(text.Printable(p.Path) + ": " + p.Err.Error())
	}
	return l.changes, nil
}

// stampSeen gives every change the time at which superqode first saw it, and
// the session's agent as its author.
func (s *Session) stampSeen(changes []superqode.Change) error {
	seen, err := s.readSeen()
	if err != nil {
		return err
	}
	credits, err := s.loadCredits()
	if err != nil {
		return err
	}
	now, fresh := s.Now().UTC().Truncate(time.Millisecond), false
	for i := range changes {
		c := &changes[i]
		if c.Agent.IsZero() {
			c.Agent = s.Rec.Agent
		}
		key := c.Path.String()
		if _, ok := seen[key]; !ok {
			seen[key], fresh = now, true
			if at, ok := s.Watched[key]; ok && at.Before(now) {
				seen[key] = at
			}
		}
		c.FirstSeen = seen[key]
	}
	credits.stamp(changes)
	if !fresh {
		return nil
	}
	return s.writeSeen(seen)
}
