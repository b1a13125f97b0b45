package mode

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// skipGit leaves git's own files out of a workspace's snapshot, at any depth.
func skipGit(path superqode.RelPath, _ snapshot.Kind) bool {
	return path.Name() == ".git"
}

// SkipOrigin also leaves out superqode's folder in the origin.
func SkipOrigin(path superqode.RelPath, kind snapshot.Kind) bool {
	return path == ".superqode" || skipGit(path, kind)
}

// checkOrigin compares the origin with what it was when the session began, and
// changes nothing. The differences are one line each: paths first, then the
// repository beside the work tree.
func checkOrigin(ctx context.Context, s *site.Site) ([]string, error) {
	then, err := s.LoadOrigin()
	if err != nil {
		return nil, err
	}
	now, problems, err := snapshot.Scan(ctx, string(s.Rec.Origin), snapshot.ScanOptions{
		Format: then.Format, Known: then.Known(), Previous: then, Contents: snapshot.StatOnly, Skip: SkipOrigin,
	})
	if err != nil {
		return nil, fmt.Errorf("check the origin: %w", err)
	}
	diffs := []string{}
	for _, p := range problems {
		if e := then.Find(p.Path); e == nil || e.ID.IsZero() && len(then.Below(p.Path)) == 0 {
			continue // it could not be read before either, or there was nothing to read
		}
		diffs = append(diffs, text.Printable(p.Path)+": cannot be read: "+p.Err.Error())
	}
	tree, err := compareOrigin(ctx, then, now)
	if err != nil {
		return nil, err
	}
	diffs = append(diffs, tree...)
	repo, err := checkRepository(s)
	return append(diffs, repo...), err
}

// knowContents gives files of the origin the content ids that their copies in
// the base have, so that the check at the end can read instead of guess. The
// copy of a file has its size and its time.
func knowContents(origin, base *snapshot.Snapshot) {
	for e, b := range snapshot.Join(origin.Entries, base.Entries) {
		if e != nil && b != nil && e.Kind == snapshot.File && e.ID.IsZero() && b.LooksCopied(e) {
			e.ID = b.ID
		}
	}
}

// compareOrigin walks two snapshots of the origin side by side. An entry with
// the same stat data is the same; another one is read, where it is known what
// it held.
func compareOrigin(ctx context.Context, then, now *snapshot.Snapshot) ([]string, error) {
	var diffs []string
	read := now.With(nil)
	was := map[superqode.RelPath]*snapshot.Entry{}
	for a, b := range snapshot.Join(then.Entries, now.Entries) {
		switch {
		case b == nil:
			diffs = append(diffs, text.Printable(a.Path)+": deleted")
		case a == nil:
			diffs = append(diffs, text.Printable(b.Path)+": created")
		case a.Kind != b.Kind:
			diffs = append(diffs, text.Printable(a.Path)+": type changed")
		case a.Perm != b.Perm && a.Kind != snapshot.Link:
			diffs = append(diffs, text.Printable(a.Path)+": mode changed")
		case a.Kind == snapshot.Link && a.Link != b.Link, a.Kind == snapshot.File && a.Size != b.Size:
			diffs = append(diffs, text.Printable(a.Path)+": modified")
		case a.Kind != snapshot.File || a.Stat == b.Stat:
		case a.ID.IsZero() && a.Stat.Mtime == b.Stat.Mtime && a.Stat.Ino == b.Stat.Ino:
			// Times can be set back after a write, but for the change time: nobody can say that this is the old content.
			diffs = append(diffs, text.Printable(a.Path)+": its owner, links or content changed; the content was not recorded")
		case a.ID.IsZero():
			diffs = append(diffs, text.Printable(a.Path)+": modified (by its times; its content was not recorded)")
		default:
			read.Entries = append(read.Entries, *b)
			was[b.Path] = a
		}
	}
	if len(read.Entries) == 0 {
		return diffs, nil
	}
	problems, err := snapshot.HashMissing(ctx, read)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		diffs = append(diffs, text.Printable(p.Path)+": cannot be read: "+p.Err.Error())
	}
	for i := range read.Entries {
		if e := &read.Entries[i]; !e.ID.IsZero() && e.ID != was[e.Path].ID {
			diffs = append(diffs, text.Printable(e.Path)+": modified")
		}
	}
	return diffs, nil
}

// checkRepository compares refs, stash, index, configuration and hooks.
func checkRepository(s *site.Site) ([]string, error) {
	if s.Rec.CommonDir == "" {
		return nil, nil
	}
	if s.RepoState == nil {
		state, err := revert.LoadState(filepath.Join(s.Folder, "state.json"))
		if err != nil {
			return nil, err
		}
		s.RepoState = state
	}
	now, err := revert.Capture(&git.Repo{GitDir: string(s.Rec.GitDir), CommonDir: string(s.Rec.CommonDir), ObjectFormat: s.Rec.ObjectFormat}, "")
	if err != nil {
		return nil, err
	}
	found, err := s.RepoState.Compare(now)
	diffs := make([]string, 0, len(found))
	for _, d := range found {
		diffs = append(diffs, text.Printable(d.String()))
	}
	return diffs, err
}
