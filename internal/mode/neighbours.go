package mode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Neighbours are the open worktree sessions of a repository in which a
// git_snapshot session works. What git keeps of their worktrees is theirs to
// change meanwhile, so it is no part of the repository's snapshot; but a program
// that deletes .git takes that along. It is kept, too, and brought back where it
// is gone or cannot be meant.

func neighboursDir(s *site.Site) string { return filepath.Join(s.AsideDir(), "neighbours") }

// keepNeighbours copies what git keeps of other sessions' worktrees.
func keepNeighbours(ctx context.Context, s *site.Site, format snapshot.Format) error {
	for _, id := range sessionWorktrees(s.Source.Repo.CommonDir) {
		sn, _, err := snapshot.Scan(ctx, filepath.Join(s.Source.Repo.CommonDir, "worktrees", id), snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly})
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return err
		}
		dir := filepath.Join(neighboursDir(s), id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		// What changes meanwhile (its program runs) is as good as any moment's.
		if _, _, err := treecopy.Copy(ctx, sn, dir, treecopy.CopyOptions{}); err != nil {
			return fmt.Errorf("keep what git has of session %s: %w", id, err)
		}
	}
	return nil
}

// sessionWorktrees lists the sessions of which git keeps a worktree.
func sessionWorktrees(commonDir string) []string {
	names, _ := state.Names(filepath.Join(commonDir, "worktrees")) // none, mostly
	names = slices.DeleteFunc(names, func(name string) bool {
		_, err := superqode.ParseSessionID(name)
		return err != nil
	})
	slices.Sort(names)
	return names
}

// restoreNeighbours brings back what the program destroyed of sessions that are
// still open.
func restoreNeighbours(ctx context.Context, s *site.Site) error {
	names, err := state.Names(neighboursDir(s))
	if err != nil {
		return err
	}
	for _, id := range names {
		if l, err := state.Load(s.Project.SessionPath(id)); err != nil || l.State == superqode.StateDone || !atomicfile.Exists(string(l.Workspace)) {
			continue // there is nothing to look after any more: it is done, or on its way to that and has taken both away
		}
		if err := restoreNeighbour(ctx, s, id); err != nil {
			return fmt.Errorf("bring back what git had of session %s: %w", id, err)
		}
	}
	return nil
}

func restoreNeighbour(ctx context.Context, s *site.Site, id string) error {
	kept, admin := filepath.Join(neighboursDir(s), id), filepath.Join(string(s.Rec.CommonDir), "worktrees", id)
	base, problems, err := snapshot.Scan(ctx, kept, snapshot.ScanOptions{Format: snapshot.SHA256})
	if err != nil || len(problems) > 0 {
		return snapshot.WithProblems(err, problems)
	}
	opt := revert.RestoreOptions{Keep: KeepOverwritten(s, admin, "")}
	if _, err := os.Lstat(admin); errors.Is(err, os.ErrNotExist) {
		s.Warn("the program took away what git keeps of the worktree of session " + id + "; it was put back")
	} else if opt.Within, err = spoilt(s, kept, admin); err != nil || len(opt.Within) == 0 {
		return err
	}
	for _, dir := range []string{filepath.Dir(admin), admin} {
		if err := clearImpostor(ctx, s, dir); err != nil {
			return err
		}
	}
	tree := &revert.Tree{Dir: admin, Base: base, Aside: kept}
	res, err := tree.Restore(ctx, opt)
	if err == nil && !res.Verified {
		err = superqode.Errorf(superqode.ErrVerification, "%s", FirstOf(res.Differences))
	}
	return err
}

// spoilt names the files of a session's worktree that its own program cannot
// have left so: those that never change, and those that git could not read.
func spoilt(s *site.Site, kept, admin string) (paths []superqode.RelPath, err error) {
	for _, name := range []string{"HEAD", "commondir", "config.worktree", "gitdir", "index"} {
		was, wasErr := atomicfile.Read(filepath.Join(kept, name))
		is, isErr := atomicfile.Read(filepath.Join(admin, name))
		bad := (wasErr == nil) != (isErr == nil)
		if !bad && wasErr == nil {
			switch name {
			case "HEAD":
				bad = !isHead(string(is))
			case "index":
				_, err := git.ReadIndex(filepath.Join(admin, name), s.Rec.ObjectFormat)
				bad = errors.Is(err, git.ErrIndexCorrupt)
			default:
				bad = string(was) != string(is)
			}
		}
		if bad {
			path, err := superqode.ParseRelPath(name)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// isHead reports whether git can make sense of a HEAD file.
func isHead(text string) bool {
	text = strings.TrimSuffix(text, "\n")
	if ref, ok := strings.CutPrefix(text, "ref: "); ok {
		return strings.HasPrefix(ref, "refs/")
	}
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
