package mode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitfiles"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
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
func checkOrigin(ctx context.Context, s *site.Site) (*artifacts.OriginCheck, error) {
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
	check := &artifacts.OriginCheck{}
	for _, p := range problems {
		if e := then.Find(p.Path); e == nil || e.ID.IsZero() && len(then.Below(p.Path)) == 0 { // neither could it before
			check.NotCovered = append(check.NotCovered, text.Printable(p.Path)+": cannot be read: "+p.Err.Error())
			continue
		}
		check.Differences = append(check.Differences, text.Printable(p.Path)+": cannot be read: "+p.Err.Error())
	}
	if err := compareOrigin(ctx, then, now, check); err != nil {
		return nil, err
	}
	repo, err := checkRepository(s)
	check.Differences = append(check.Differences, repo...)
	found, ferr := gitfiles.Compare(ctx, gitfiles.Origin{Top: string(s.Rec.Origin), State: s.RepoState, Tree: now, Kept: s.Rec.KernelLayer().Layer == kernel.Mounts}, s.Folder, s.Git)
	if found != nil {
		check.Differences = append(check.Differences, found.Differences...)
		check.NotCovered = append(check.NotCovered, found.NotCovered...)
	}
	return check, errors.Join(err, ferr)
}

// methodOf says how the check of an origin was made: kernel+stat where mounts kept the
// origin from every program of the session, metadata included, and its files were
// looked at as well.
func methodOf(s *site.Site) string {
	kept := s.Rec.Kernel == kernel.Active && s.Rec.KernelLayer().Layer == kernel.Mounts
	if kept && s.Rec.Runs > 0 && !Of(s.Rec.Mode).InPlace {
		return "kernel+stat"
	}
	return string(revert.Stat)
}

// BroughtBack is the check of an origin that was brought back: what rev proved, but
// for what the session did not protect and what others changed in the repository.
func BroughtBack(s *site.Site, rev artifacts.Revert) artifacts.OriginCheck {
	check := artifacts.OriginCheck{Differences: slices.Concat(rev.Differences, s.Kept), Method: methodOf(s), NotCovered: uncovered(s)}
	check.Unchanged = rev.Verified && len(check.Differences) == 0
	return check
}

// Meanwhile is the conflict of a repository that others changed and that was left so,
// or nil.
func Meanwhile(s *site.Site) error {
	if len(s.Kept) == 0 {
		return nil
	}
	return superqode.Errorf(superqode.ErrConflict, "the repository was changed meanwhile: %s", text.FirstOf(s.Kept))
}

// uncovered names what no check of the origin can speak for: what a session in place
// does not protect, and, where nothing kept the programs from it, what superqode itself
// knows of how the origin was.
func uncovered(s *site.Site) (lines []string) {
	lines = LeftOut(s.Rec)
	if s.Rec.Runs > 0 && s.Rec.KernelLayer().Layer == kernel.None {
		lines = append(lines, "superqode's own record of it: without the kernel layer a program could have changed that")
	}
	return lines
}

// LeftOut names what a session in place does not protect, one line each.
func LeftOut(r state.Record) []string {
	lines := []string{}
	for _, p := range r.LeftOut {
		lines = append(lines, text.Printable(string(p))+": left out of the session")
	}
	return lines
}

// Origin compares the origin with what it was when the session began; see
// Kind.Origin. The check is not nil.
func Origin(ctx context.Context, s *site.Site, changes []superqode.Change) (*artifacts.OriginCheck, error) {
	check, err := For(s.Rec.Mode).Origin(ctx, s, changes)
	if check == nil {
		check = &artifacts.OriginCheck{}
	}
	if err != nil {
		check.Differences = append(check.Differences, "not checked: "+err.Error())
	}
	check.NotCovered = append(check.NotCovered, uncovered(s)...)
	check.Method, check.Unchanged = methodOf(s), len(check.Differences) == 0
	return check, err
}

// knowContents gives files of the origin the content ids that their copies in
// the base have, so that the check at the end can read instead of guess. The
// copy of a file has its size and its time.
func knowContents(origin, base *snapshot.Snapshot) {
	for e, b := range snapshot.Join(origin.Entries, base.Entries) {
		if e != nil && b != nil && e.Kind == snapshot.File && e.ID.IsZero() && b.LooksCopied(e) {
			e.ID, origin.File = b.ID, ""
		}
	}
}

// isOutput is why a file is not looked at.
const isOutput = "this command's output goes there"

// ownOutput reports whether an entry is the file that this process prints to: the user
// may well keep it in the origin (superqode run -- CMD > test.log).
func ownOutput() func(*snapshot.Entry) bool {
	var own []snapshot.Stat
	for _, fd := range []int{1, 2} { // stdout, stderr
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			own = append(own, snapshot.Stat{Dev: uint64(st.Dev), Ino: st.Ino})
		}
	}
	return func(e *snapshot.Entry) bool {
		return slices.ContainsFunc(own, func(o snapshot.Stat) bool { return e.Stat.Dev == o.Dev && e.Stat.Ino == o.Ino })
	}
}

// compareOrigin walks two snapshots of the origin side by side. An entry with
// the same stat data is the same; another one is read, where it is known what
// it held.
func compareOrigin(ctx context.Context, then, now *snapshot.Snapshot, check *artifacts.OriginCheck) error {
	differs := func(path superqode.RelPath, how string) {
		check.Differences = append(check.Differences, text.Printable(path)+": "+how)
	}
	read := now.With(nil)
	was := map[superqode.RelPath]*snapshot.Entry{}
	own := ownOutput()
	for a, b := range snapshot.Join(then.Entries, now.Entries) {
		switch {
		case b == nil:
			differs(a.Path, "deleted")
		case own(b):
			check.NotCovered = append(check.NotCovered, text.Printable(b.Path)+": "+isOutput)
		case a == nil:
			differs(b.Path, "created")
		case a.Kind != b.Kind:
			differs(a.Path, "type changed")
		case a.Perm != b.Perm && a.Kind != snapshot.Link:
			differs(a.Path, "mode changed")
		case a.Stat.UID != b.Stat.UID || a.Stat.GID != b.Stat.GID:
			differs(a.Path, "owner changed")
		case a.Kind == snapshot.Link && a.Link != b.Link, a.Kind == snapshot.File && a.Size != b.Size:
			differs(a.Path, "modified")
		case a.Kind != snapshot.File || a.Stat == b.Stat:
		case a.ID.IsZero() && a.Stat.Mtime == b.Stat.Mtime && a.Stat.Ino == b.Stat.Ino:
			// Times can be set back after a write, but for the change time: nobody can say that this is the old content.
			differs(a.Path, "its owner, links or content changed; the content was not recorded")
		case a.ID.IsZero():
			differs(a.Path, "modified (by its times; its content was not recorded)")
		default:
			read.Entries = append(read.Entries, *b)
			was[b.Path] = a
		}
	}
	if len(read.Entries) == 0 {
		return nil
	}
	problems, err := snapshot.HashMissing(ctx, read)
	if err != nil {
		return err
	}
	for _, p := range problems {
		differs(p.Path, "cannot be read: "+p.Err.Error())
	}
	for i := range read.Entries {
		e := &read.Entries[i]
		switch old := was[e.Path]; {
		case e.ID.IsZero():
		case e.ID != old.ID:
			differs(e.Path, "modified")
		case e.SameFile(old) && e.Stat.Nlink == old.Stat.Nlink:
			check.NotCovered = append(check.NotCovered, text.Printable(e.Path)+": its extended attributes (its metadata was changed)")
		}
	}
	return nil
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
	if errors.Is(err, os.ErrPermission) {
		return []string{text.Printable("cannot be read: " + err.Error())}, nil
	}
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
