package mode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// IsAre counts paths, with the verb.
func IsAre(n int) string {
	if n == 1 {
		return "1 path is"
	}
	return fmt.Sprintf("%d paths are", n)
}

// known refuses paths that were not there and are not there.
func known(ctx context.Context, s *site.Site, tree *revert.Tree, paths []superqode.RelPath) error {
	if len(paths) == 0 {
		return nil
	}
	now, _, err := snapshot.Scan(ctx, tree.Dir, snapshot.ScanOptions{Format: tree.Base.Format, Previous: tree.Base, Contents: snapshot.StatOnly, Skip: tree.Skip})
	if err != nil {
		return err
	}
	for _, p := range paths {
		if tree.Base.Find(p) == nil && now.Find(p) == nil {
			return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s is not in the workspace, and was not", text.Printable(p.String())), "superqode workspace changes --session %s", s.Rec.ID)
		}
	}
	return nil
}

// inGitDir marks paths of the repository, so that they are told from those of
// the work tree.
func inGitDir(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = strings.TrimSuffix(".git/"+p, "/")
	}
	return out
}

// revertWorkspace brings back a workspace that is not the origin.
func revertWorkspace(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error {
	if err := reopenWorkspace(s, opt); err != nil {
		return err
	}
	tree, err := workspaceTree(ctx, s)
	if err != nil {
		return err
	}
	if err := known(ctx, s, tree, opt.Paths); err != nil {
		return err
	}
	res, err := tree.Restore(ctx, revert.RestoreOptions{Within: opt.Paths, How: opt.How, DryRun: opt.DryRun, Keep: aside.KeepOverwritten(s, tree.Dir, "")})
	if res != nil {
		r.Restored = *res
	}
	return err
}

// workspaceTree is a workspace that is not the origin, as it was handed out.
func workspaceTree(ctx context.Context, s *site.Site) (*revert.Tree, error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	spared, err := SetupIgnored(s)
	if err != nil {
		return nil, err
	}
	if _, err := s.Mount(ctx); err != nil {
		return nil, err
	}
	drop := Skip(s)
	skip := func(path superqode.RelPath, kind snapshot.Kind) bool {
		if spared[path] {
			return true
		}
		if path != ".git" && skipGit(path, kind) && base.Find(path.Parent()) == nil {
			return false // of a repository that the program made
		}
		return drop(path, kind)
	}
	return &revert.Tree{Dir: s.WorkDir(), Base: base, Skip: skip, Store: s.Store}, nil
}

// reopenWorkspace makes the workspace's own folder anew where the program took
// it away or put something else there.
func reopenWorkspace(s *site.Site, opt RevertOptions) error {
	ws := string(s.Rec.Workspace)
	why, err := WorkspaceGone(s)
	if err != nil || why == "" || opt.DryRun {
		return err
	}
	if _, err := os.Lstat(ws); err == nil {
		if err := trash.Put(ws, s.Project.TrashPath()); err != nil {
			return err
		}
	}
	return os.Mkdir(ws, 0o700)
}

// verifyRepository compares the git common dir of a git_snapshot session with what it
// was, and returns the paths that differ, each below .git.
func verifyRepository(ctx context.Context, s *site.Site, how revert.Method) ([]string, error) {
	if st, err := os.Lstat(string(s.Rec.CommonDir)); err != nil || !st.IsDir() {
		return []string{".git: deleted"}, nil
	}
	tree, err := aside.RepositoryTree(s)
	if err != nil {
		return nil, err
	}
	now, _, err := tree.Scan(ctx, revert.Stat)
	if err != nil {
		return nil, err
	}
	bad, err := aside.ResolveObjects(ctx, s, tree, now, how == revert.Full)
	if err != nil {
		return nil, err
	}
	v, err := tree.Verify(ctx, how, nil)
	if err != nil {
		return nil, err
	}
	diffs := inGitDir(append(bad, v.Differences...))
	slices.Sort(diffs)
	return slices.Compact(diffs), nil
}

// RevertOptions says what Revert brings back.
type RevertOptions struct {
	Paths  []superqode.RelPath // relative to the workspace; none: all, the repository's own state included
	How    revert.Method
	DryRun bool                        // only tell what would be done
	Forget func(context.Context) error // lets go of the commits that the session made; nil where there are none
}

// Reverted is what Revert did.
type Reverted struct {
	revert.Restored
	Salvages []string // what was overwritten or removed, see Salvage
}

// bringBackRepository restores the origin's own folder and its git dir.
func bringBackRepository(ctx context.Context, s *site.Site, how revert.Method) (*revert.Restored, error) {
	defer s.Begin("bringing your repository back", nil)()
	s.Distrusted, s.Store = true, nil
	defer func() { s.Distrusted, s.Store = false, nil }()
	if err := restoreTop(ctx, s); err != nil {
		return nil, fmt.Errorf("bring back the origin's folder: %w", err)
	}
	res, err := aside.RestoreRepository(ctx, s, how, false)
	if err != nil {
		return res, fmt.Errorf("bring back the repository: %w", err)
	}
	return res, nil
}

// restoreTop makes sure that the origin is a folder that can be worked in.
func restoreTop(ctx context.Context, s *site.Site) error {
	top := string(s.Rec.Origin)
	if err := aside.ClearImpostor(ctx, s, top); err != nil {
		return err
	}
	return unix.Chmod(top, s.Rec.TopFolder.Mode|0o700)
}

// FreeArtifacts takes away what the program put in the place of superqode's own
// folder, where the artifacts go.
func FreeArtifacts(ctx context.Context, s *site.Site) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	dir := filepath.Join(string(s.Rec.Origin), ".superqode")
	if st, err := os.Lstat(dir); err != nil || st.IsDir() {
		return nil // the artifact store tells what is wrong with it
	}
	return aside.ClearImpostor(ctx, s, dir)
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
	if base, err = aside.WithUsers(ctx, s, base); err != nil {
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
	opt.Keep = aside.KeepOverwritten(s, tree.Dir, "")
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
