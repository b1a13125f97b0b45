package mode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gitfiles"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// SaveBase writes base and origin beside the record. The base comes last: it
// vouches only for files that did not change within the last tick of the clock,
// so there is a moment to wait, and the other writes use it. What the origin's
// repositories are is recorded meanwhile.
func SaveBase(ctx context.Context, s *site.Site) error {
	g, gctx := errgroup.WithContext(ctx)
	if s.OriginBase != nil {
		o := gitfiles.Origin{Top: string(s.Rec.Origin), State: s.RepoState, Tree: s.OriginBase, Kept: s.Rec.KernelBy == kernel.Mounts}
		g.Go(func() error { return gitfiles.Record(gctx, o, s.Folder) })
	}
	g.Go(func() error { return saveBase(gctx, s) })
	err := g.Wait()
	if s.Rec.Overlay == nil { // whose git directory is still to be made
		s.OriginBase = nil // it is not needed before the end, and is large
	}
	return err
}

func saveBase(ctx context.Context, s *site.Site) error {
	digest, err := s.Base.Digest()
	if err != nil {
		return err
	}
	s.Rec.Base.Digest = digest
	s.Rec.Base.Files, s.Rec.Base.Bytes = s.Base.Count()
	wait := atomicfile.Durable
	if !Of(s.Rec.Mode).InPlace && s.Rec.State == superqode.StateCreated {
		wait = atomicfile.Loose // the workspace that it describes is not on disk either
	}
	if s.RepoState != nil {
		if err := s.RepoState.Save(filepath.Join(s.Folder, "state.json"), wait); err != nil {
			return err
		}
	}
	if s.OriginBase != nil {
		knowContents(s.OriginBase, s.Base)
		if err := s.OriginBase.SaveAs(filepath.Join(s.Folder, "origin.snap"), wait); err != nil {
			return err
		}
	}
	if s.Base.File == "" { // else it was done when that was written
		if err := s.Base.Settle(ctx); err != nil {
			return err
		}
	}
	if err := s.Base.SaveAs(filepath.Join(s.Folder, "base.snap"), wait); err != nil || !Of(s.Rec.Mode).Exclusive() {
		return err
	}
	for _, name := range []string{"base.snap", state.RepositorySnap, state.IgnoredFile} { // see site.Held
		data, err := atomicfile.Read(filepath.Join(s.Folder, name))
		if err == nil {
			err = atomicfile.Replace(filepath.Join(s.AsideDir(), name), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("keep a second copy: %w", err)
		}
	}
	return nil
}

// KeepBase puts contents of the base that are not in the store yet there, as far
// as a patch is made from them.
func KeepBase(ctx context.Context, s *site.Site, l *Look) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return For(s.Rec.Mode).keepBase(ctx, s, l)
}

// StoreEnds commits base and final to refs/superqode/<session>/ in the store and
// returns the commits' ids.
func StoreEnds(ctx context.Context, s *site.Site, l *Look) (base, final string, err error) {
	if err := s.OpenStore(ctx); err != nil {
		return "", "", err
	}
	if l.ends {
		return l.Commits[0], l.Commits[1], nil
	}
	if err := KeepBase(ctx, s, l); err != nil {
		return "", "", err
	}
	if err := storeContents(ctx, s, l); err != nil {
		return "", "", err
	}
	before, after := l.storable()
	ids, err := s.Store.CommitAll(ctx, []store.CommitRequest{
		{Ref: s.Ref("base"), Snap: before, CommitOptions: store.CommitOptions{Message: "base of session " + s.Rec.ID.String(), When: s.Rec.CreatedAt}},
		{Ref: s.Ref("final"), Snap: after, CommitOptions: store.CommitOptions{Message: "final state of session " + s.Rec.ID.String(), When: s.Now()}, OnPrevious: true},
	})
	if err != nil {
		return "", "", fmt.Errorf("store base and final state: %w", err)
	}
	s.Rec.HasFinal, l.Commits, l.ends = true, [2]string(ids), true
	return ids[0], ids[1], nil
}

// StoredLook is what an earlier look found and stored.
func StoredLook(s *site.Site) (*Look, error) {
	changes, err := ReadChanges(s)
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return nil, err
	}
	l := &Look{Changes: changes}
	if s.Rec.HasFinal {
		l.Commits, l.ends = [2]string{s.Ref("base"), s.Ref("final")}, true
		return l, nil
	}
	for i := range changes {
		changes[i].LinesAdded, changes[i].LinesRemoved = -1, -1 // nobody counted them
	}
	if err := Unstored(s); err != nil && len(changes) > 0 {
		s.Warn(err.Error() + ": superqode workspace restore --list")
	}
	return l, nil
}

// Unstored is why a session that has ended has no final state; nil where it changed nothing.
func Unstored(s *site.Site) error {
	changes, err := ReadChanges(s)
	if errors.Is(err, superqode.ErrNotFound) || err == nil && len(changes) > 0 {
		err = superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "what session %s changed was not collected, or could not be stored; there is only what was saved when it was overwritten", s.Rec.ID), "superqode workspace restore --list")
	}
	return err
}

// storeContents keeps the contents that the session made.
func storeContents(ctx context.Context, s *site.Site, l *Look) error {
	if l.Commits[1] != "" {
		return nil
	}
	var fresh []snapshot.Entry
	for _, c := range l.Changes {
		if e := l.Final.Find(c.Path); e != nil && (e.Kind == snapshot.File || e.Kind == snapshot.Link) && !e.ID.IsZero() && !e.IsLarge() {
			fresh = append(fresh, *e)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := s.Store.WriteBlobs(ctx, l.Final.Root, fresh); err != nil {
		return fmt.Errorf("store the session's contents: %w", err)
	}
	return nil
}

// maxPath is how long a path may be that git applies: the kernel takes no longer one at
// once (PATH_MAX, with the NUL at its end).
const maxPath = 4095

// maxPatch is the size from which on git applies no patch: MAX_APPLY_SIZE in the apply.c
// of git 2.39.
const maxPatch = 1023 << 20

// headers passes a patch on and sees whether one of its paths may be longer than maxPath.
type headers struct {
	to     io.Writer
	begins byte // what the line begins with
	length int
	long   bool
}

func (h *headers) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if h.length == 0 {
			h.begins = line[0]
		}
		h.length += len(line)
		h.long = h.long || h.length > maxPath && h.begins == 'd' // of "diff --git"; no line of contents begins so
		if line[len(line)-1] == '\n' {
			h.length = 0
		}
	}
	return h.to.Write(p)
}

// tooDeep returns a path of a patch that git cannot apply, "" where there is none.
func tooDeep(ctx context.Context, s *site.Site, opt store.DiffOptions) (superqode.RelPath, error) {
	pairs, err := s.Store.DiffTree(ctx, opt)
	for _, p := range pairs {
		for _, e := range []*snapshot.Entry{p.Old, p.New} {
			if e != nil && len(e.Path) > maxPath {
				return e.Path, nil
			}
		}
	}
	return "", err
}

// refused names what git does not apply of a patch of that size, "" where it does.
func refused(size int64, deep superqode.RelPath) string {
	switch {
	case deep != "":
		return fmt.Sprintf("path of %d bytes (%s…)", len(deep), text.Printable(deep[:60]))
	case size >= maxPatch:
		return "patch of " + text.Size(size)
	}
	return ""
}

// PatchOf writes the difference of two commits of the store into a file. It returns nil
// where there is none, and where git could not apply it: the session says so.
func PatchOf(ctx context.Context, s *site.Site, base, final string) (*artifacts.New, error) {
	f, err := os.CreateTemp(s.Folder, ".patch-*")
	if err != nil {
		return nil, err
	}
	opt, seen, deep := store.DiffOptions{Base: base, Final: final}, &headers{to: f}, superqode.RelPath("")
	err = s.Store.Diff(ctx, opt, seen)
	if err == nil && seen.long {
		deep, err = tooDeep(ctx, s, opt)
	}
	st, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil || st.Size() == 0 {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	if what := refused(st.Size(), deep); what != "" {
		s.Warn(fmt.Sprintf("there is no patch: git applies no %s; superqode workspace apply --session %s does", what, s.Rec.ID))
		return nil, os.Remove(f.Name())
	}
	return &artifacts.New{
		Type: artifacts.TypePatch, Path: artifacts.SessionPatch(s.Rec.ID), Description: "the session's changes; git apply brings them into the origin as it was at the start",
		File: f.Name(), Session: s.Rec.ID, Agent: s.Rec.Agent, Metadata: map[string]any{"base": base, "final": final},
	}, nil
}
