package session

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
	"github.com/seed-2d964004/superqode/snapshot"
)

// unsaved tells, in words, whether the workspace holds changes that are kept
// nowhere else; "" means that it does not: there are none, or the session's end
// has collected exactly these.
func (s *Session) unsaved(ctx context.Context) (_ string, err error) {
	l, err := s.look(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.close(string(s.rec.Workspace))) }()
	switch {
	case l.gone != "" || len(l.changes) == 0 && len(l.problems) == 0:
		return "", nil
	case len(l.problems) > 0:
		return fmt.Sprintf("it holds %s that can not be read", plural(len(l.problems), "path")), nil
	}
	if s.rec.State == superqode.StatePreserved && s.rec.Collected {
		digest, err := l.final.Digest()
		if err != nil {
			return "", err
		}
		if digest == s.rec.Final.Digest {
			return "", nil
		}
	}
	return fmt.Sprintf("it holds %s that %s kept nowhere else", plural(len(l.changes), "change"), map[bool]string{true: "is", false: "are"}[len(l.changes) == 1]), nil
}

// salvageIgnored is how many bytes of new ignored files go into the salvage of a
// workspace; the smallest first.
const salvageIgnored = 256 << 20

// salvageWorkspace keeps what the workspace of an isolated session holds beyond
// its base: changes, and what the program made that is in no patch (ignored
// files, those that an exclude pattern covers, nested repositories' own files)
// up to a limit. It returns nil when there is nothing.
func (s *Session) salvageWorkspace(ctx context.Context, why string) (_ *Salvage, err error) {
	if gone, err := s.workspaceGone(); err != nil || gone != "" {
		return nil, err
	}
	base, err := s.loadBase()
	if err != nil { // then all of it counts as new
		if base, err = s.noBase(); err != nil {
			return nil, err
		}
		s.base = base
	}
	l, ws := &look{}, string(s.rec.Workspace)
	defer func() { err = errors.Join(err, l.close(ws)) }()
	own := func(path string, _ snapshot.Kind) bool { return path == ".git" && s.rec.Mode == superqode.ModeWorktree }
	err = l.scanAll(ctx, ws, snapshot.ScanOptions{Format: base.Format, Known: base.Known(), Previous: base, Contents: snapshot.StatOnly, Skip: own})
	if err != nil {
		return nil, fmt.Errorf("scan the workspace: %w", err)
	}
	left := leftOutOf(l.problems)
	l.problems = nil
	large, err := s.dropLarge(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := l.hashAll(ctx, ws); err != nil {
		return nil, err
	}
	part := salvagePart{Dir: ws, LeftOut: append(left, large...)}
	for _, c := range snapshot.Compare(base, l.final, snapshot.CompareOptions{Dirs: true}) {
		if e := l.final.Find(c.Path.String()); e != nil {
			part.Entries = append(part.Entries, *e)
		}
	}
	return s.salvage(ctx, why, part)
}

func leftOutOf(problems []snapshot.Problem) []LeftOut {
	var left []LeftOut
	for _, p := range problems {
		left = append(left, LeftOut{p.Path, p.Err.Error()})
	}
	return left
}

// noBase stands in for a base that can not be read.
func (s *Session) noBase() (*snapshot.Snapshot, error) {
	format, err := snapshot.ParseFormat(s.rec.ObjectFormat)
	return &snapshot.Snapshot{Root: string(s.rec.Workspace), Format: format}, err
}

// dropLarge takes out of the look the biggest of the new files that no patch
// would hold, until the others fit into the limit, and names them.
func (s *Session) dropLarge(ctx context.Context, l *look) ([]LeftOut, error) {
	wanted := *l.final
	skip, dropped := s.skip(), ""
	wanted.Entries = slices.DeleteFunc(slices.Clone(l.final.Entries), func(e snapshot.Entry) bool {
		if dropped != "" && strings.HasPrefix(e.Path, dropped) {
			return true
		}
		if !skip(e.Path, e.Kind) {
			return false
		}
		dropped = e.Path + "/"
		return true
	})
	if _, err := s.dropIgnored(ctx, &wanted); err != nil {
		return nil, err
	}
	var extra []*snapshot.Entry
	for i := range l.final.Entries {
		e := &l.final.Entries[i]
		if e.Kind == snapshot.File && wanted.Find(e.Path) == nil && s.base.Find(e.Path) == nil {
			extra = append(extra, e)
		}
	}
	slices.SortStableFunc(extra, func(a, b *snapshot.Entry) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	var left []LeftOut
	out, total := map[string]bool{}, int64(0)
	for _, e := range extra {
		if total += e.Size; total > salvageIgnored {
			out[e.Path] = true
			left = append(left, LeftOut{e.Path, fmt.Sprintf("%s that git ignores, beyond the limit of %s", megabytes(e.Size), megabytes(salvageIgnored))})
		}
	}
	l.final.Entries = slices.DeleteFunc(l.final.Entries, func(e snapshot.Entry) bool { return out[e.Path] })
	return left, nil
}

// dispose takes away the workspace of a session whose contents were salvaged. An
// active session goes the whole way down, with its report. Where that fails, for
// the origin is gone, say, force takes the workspace all the same.
func (s *Session) dispose(ctx context.Context, force bool) error {
	if s.rec.State == superqode.StateActive {
		_, err := s.End(ctx, EndOptions{Keep: KeepNever})
		if err == nil || s.rec.State == superqode.StateDone || !force || errors.Is(err, superqode.ErrLocked) {
			return err
		}
		s.m.cfg.Warn(fmt.Sprintf("session %s was removed without its end: %v", s.rec.ID, err))
	}
	if err := s.takeAway(ctx, false); err != nil {
		return err
	}
	failpoint.Hit("cleanup.taken")
	if err := s.journal().write(string(superqode.StateDone), map[string]string{"by": "cleanup"}); err != nil {
		return err
	}
	now := s.m.now().UTC()
	err := s.update(ctx, func(r *Record) {
		r.State = superqode.StateDone
		if r.EndedAt.IsZero() {
			r.EndedAt = now
		}
	})
	if err != nil {
		return err
	}
	failpoint.Hit("cleanup.buried")
	return s.clear()
}

// ownWorkspace refuses to remove a folder that is not where the session's own
// workspace lies: a program may have written into the record.
func (s *Session) ownWorkspace() error {
	want := s.p.workspacePath(s.rec.ID.String())
	if !exists(string(s.rec.Workspace)) {
		return nil // removed, or the whole home was moved
	}
	if realPrefix(filepath.Dir(string(s.rec.Workspace))) != realPrefix(filepath.Dir(want)) || filepath.Base(string(s.rec.Workspace)) != filepath.Base(want) {
		return superqode.Errorf(superqode.ErrConflict, "the record of session %s names %s as its workspace, which is not superqode's to remove; its own is %s", s.rec.ID, s.rec.Workspace, want)
	}
	return nil
}

// exists reports whether something is at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
