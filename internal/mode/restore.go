package mode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// FirstOf names the first of a list of differences, and how many more there are.
func FirstOf(list []string) string {
	if len(list) > 3 {
		return fmt.Sprintf("%s; %s; %s and %d more", list[0], list[1], list[2], len(list)-3)
	}
	out := ""
	for i, l := range list {
		if i > 0 {
			out += "; "
		}
		out += l
	}
	return out
}

// bringBackRepository restores the origin's own folder and its git dir.
func bringBackRepository(ctx context.Context, s *site.Site, how revert.Method) (*revert.Restored, error) {
	defer s.Begin("bringing your repository back", nil)()
	s.Distrusted, s.Store = true, nil
	defer func() { s.Distrusted, s.Store = false, nil }()
	if err := restoreTop(ctx, s); err != nil {
		return nil, fmt.Errorf("bring back the origin's folder: %w", err)
	}
	res, err := restoreRepository(ctx, s, how, false)
	if err != nil {
		return res, fmt.Errorf("bring back the repository: %w", err)
	}
	return res, nil
}

// restoreTop makes sure that the origin is a folder that can be worked in.
func restoreTop(ctx context.Context, s *site.Site) error {
	top := string(s.Rec.Origin)
	if err := clearImpostor(ctx, s, top); err != nil {
		return err
	}
	return unix.Chmod(top, s.Rec.TopFolder.Mode|0o700)
}

// FreeArtifacts takes away what the program put in the place of superqode's own
// folder, where the artifacts go.
func FreeArtifacts(ctx context.Context, s *site.Site) error {
	dir := filepath.Join(string(s.Rec.Origin), ".superqode")
	if st, err := os.Lstat(dir); err != nil || st.IsDir() {
		return nil // the artifact store tells what is wrong with it
	}
	return clearImpostor(ctx, s, dir)
}

// tree is the origin's work tree as a git_snapshot session has to leave it.
func originTree(ctx context.Context, s *site.Site) (*revert.Tree, error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	s.Store.Borrow(filepath.Join(s.AsideDir(), "git", "objects"))
	return &revert.Tree{Dir: string(s.Rec.Origin), Base: base, Skip: Skip(s), Store: s.Store, Aside: filepath.Join(s.AsideDir(), "tree")}, nil
}

// restoreTree brings the work tree back. What it overwrites and removes is
// salvaged first: some of it may be the user's, who worked there meanwhile.
func restoreTree(ctx context.Context, s *site.Site, opt revert.RestoreOptions) (*revert.Restored, error) {
	tree, err := originTree(ctx, s)
	if err != nil {
		return nil, err
	}
	opt.Keep = KeepOverwritten(s, tree.Dir, "")
	res, err := tree.Restore(ctx, opt)
	failpoint.Hit("inplace.tree")
	if err == nil && !opt.DryRun {
		err = s.Rec.TopFolder.Restore(tree.Dir)
		failpoint.Hit("inplace.tree-done")
	}
	if err != nil {
		err = fmt.Errorf("bring back %s: %w", tree.Dir, err)
	}
	return res, err
}

// KeepOverwritten salvages what a plan overwrites or removes in the folder dir.
// prefix is that of a salvage.Part. What can not be salvaged is not overwritten
// either.
func KeepOverwritten(s *site.Site, dir, prefix string) func(context.Context, *revert.Plan) error {
	return func(ctx context.Context, p *revert.Plan) error {
		over := p.Overwritten()
		for _, prepare := range []func(context.Context, string, []snapshot.Entry) (bool, error){openFiles, s.MoveLarge} {
			changed, err := prepare(ctx, dir, over)
			if changed || errors.Is(err, superqode.ErrConflict) {
				return revert.ErrAgain // what the plan was made from is no more
			}
			if err != nil {
				return err
			}
		}
		sv, err := s.Keep(ctx, salvage.Part{Dir: dir, Prefix: prefix, Entries: over})
		if err != nil || sv == nil {
			return err
		}
		for _, l := range sv.LeftOut {
			p.Spare(strings.TrimPrefix(strings.TrimPrefix(l.Path, prefix), "/"), errors.New("it could not be saved: "+l.Reason))
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
