package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/revert"
)

// endInPlace takes a session that worked in the origin itself the way down. Each
// step goes by what is there and by the base, so all of it can be repeated:
//
//  1. the repository's own files are brought back, before any git runs there;
//  2. what the session changed in the work tree is collected;
//  3. the work tree is brought back, and both are looked at again.
func (s *Session) endInPlace(ctx context.Context, opt EndOptions) (*artifacts.Result, error) {
	unlock, err := s.Project.Lock(ctx)
	if err != nil {
		return nil, err
	}
	res, err := s.endOrigin(ctx, opt)
	return res, errors.Join(err, unlock())
}

func (s *Session) endOrigin(ctx context.Context, opt EndOptions) (*artifacts.Result, error) {
	keep := cmp.Or(opt.Keep, s.Rec.Keep) == state.KeepAlways && s.Rec.Mode == superqode.ModeGitSnapshot
	stays := s.Rec.Mode == superqode.ModeShared || s.Rec.NoRevert || keep
	half := s.Rec.State == superqode.StateReverting || s.Rec.Reverting // half brought back by now
	if !half {
		if err := s.step(ctx, superqode.StateCollecting); err != nil {
			return nil, err
		}
	}
	var repo *revert.Restored
	var rerr error
	if !stays {
		if _, err := gitdir.KeepCommits(ctx, s.Site); err != nil { // before HEAD is what it was; the origin must not wait for it
			s.Warn("the session's commits could not be kept: " + err.Error())
		}
		repo, rerr = s.bringBackRepository(ctx, revert.Stat)
	}
	oerr := s.freeArtifacts(ctx)
	c, cerr := s.collectOnce(ctx, half)
	s.Note(c.warnings)
	c.final = nil
	var tree *revert.Restored
	if rerr == nil && !stays { // also what could not be collected is salvaged, and the origin must not wait
		if rerr = s.step(ctx, superqode.StateReverting); rerr == nil {
			done := s.Begin("bringing your files back", nil)
			tree, rerr = s.restoreTree(ctx, revert.RestoreOptions{Seen: c.seen})
			done()
		}
	}
	s.Base = nil
	res := s.inPlaceResult(c, repo, tree, stays, rerr)
	if rerr == nil && len(res.Revert.Differences) > 0 && !stays {
		rerr = superqode.Errorf(superqode.ErrVerification, "%s not as it was: %s", isAre(len(res.Revert.Differences)), firstOf(res.Revert.Differences))
	}
	err := errors.Join(rerr, oerr, cerr)
	if stays {
		err = errors.Join(err, s.describeOrigin(ctx, res))
	}
	res.Agents, cerr = s.agentRunsOr(nil)
	err = errors.Join(err, cerr)
	failpoint.Hit("end.checked")
	kept := err != nil || keep
	if werr := s.report(ctx, c, res, err); werr != nil {
		err, kept = errors.Join(err, werr), true
	}
	err = errors.Join(err, s.finish(ctx, res, kept))
	if rerr != nil {
		err = superqode.WithHint(err, "superqode workspace revert --session %s", s.Rec.ID)
	}
	return res, err
}

func firstOf(list []string) string {
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
func (s *Session) bringBackRepository(ctx context.Context, how revert.Method) (*revert.Restored, error) {
	defer s.Begin("bringing your repository back", nil)()
	s.Distrusted, s.Store = true, nil
	defer func() { s.Distrusted, s.Store = false, nil }()
	if err := s.restoreTop(ctx); err != nil {
		return nil, fmt.Errorf("bring back the origin's folder: %w", err)
	}
	res, err := s.restoreRepository(ctx, how, false)
	if err != nil {
		return res, fmt.Errorf("bring back the repository: %w", err)
	}
	return res, nil
}

// restoreTop makes sure that the origin is a folder that can be worked in.
func (s *Session) restoreTop(ctx context.Context) error {
	top := string(s.Rec.Origin)
	if err := s.clearImpostor(ctx, top); err != nil {
		return err
	}
	return unix.Chmod(top, s.Rec.TopFolder.Mode|0o700)
}

// freeArtifacts takes away what the program put in the place of superqode's own
// folder, where the artifacts go.
func (s *Session) freeArtifacts(ctx context.Context) error {
	dir := filepath.Join(string(s.Rec.Origin), ".superqode")
	if st, err := os.Lstat(dir); err != nil || st.IsDir() {
		return nil // the artifact store tells what is wrong with it
	}
	return s.clearImpostor(ctx, dir)
}

// collectOnce collects, or, where the work tree may be half brought back already,
// takes what was collected before.
func (s *Session) collectOnce(ctx context.Context, half bool) (*collected, error) {
	if !half {
		c, err := s.collect(ctx)
		if c == nil {
			c = &collected{look: &look{}}
		}
		return c, err
	}
	c := &collected{look: &look{}}
	changes, err := s.readChanges()
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return c, err
	}
	c.changes = changes
	if err := s.OpenStore(ctx); err != nil {
		return c, err
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return c, err
	}
	if c.artifacts, err = store.List(ctx, artifacts.Filter{Session: s.Rec.ID}); err != nil || !s.Rec.HasFinal {
		return c, err
	}
	path := artifacts.SessionPatch(s.Rec.ID)
	if slices.ContainsFunc(c.artifacts, func(a artifacts.Artifact) bool { return a.Path.String() == path }) {
		return c, nil
	}
	patch, err := s.patchOf(ctx, s.Ref("base"), s.Ref("final")) // it could not be stored before: a full disk, say
	if err != nil || patch == nil {
		return c, err
	}
	defer os.Remove(patch.File)
	added, err := store.AddAll(ctx, []artifacts.New{*patch})
	c.artifacts = append(c.artifacts, added...)
	return c, err
}

// tree is the origin's work tree as a git_snapshot session has to leave it.
func (s *Session) originTree(ctx context.Context) (*revert.Tree, error) {
	base, err := s.LoadBase()
	if err != nil {
		return nil, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	s.Store.Borrow(filepath.Join(s.AsideDir(), "git", "objects"))
	return &revert.Tree{Dir: string(s.Rec.Origin), Base: base, Skip: s.skip(), Store: s.Store, Aside: filepath.Join(s.AsideDir(), "tree")}, nil
}

// restoreTree brings the work tree back. What it overwrites and removes is
// salvaged first: some of it may be the user's, who worked there meanwhile.
func (s *Session) restoreTree(ctx context.Context, opt revert.RestoreOptions) (*revert.Restored, error) {
	tree, err := s.originTree(ctx)
	if err != nil {
		return nil, err
	}
	opt.Keep = s.keepOverwritten(tree.Dir, "")
	res, err := tree.Restore(ctx, opt)
	failpoint.Hit("inplace.tree")
	if err == nil && !opt.DryRun && s.Rec.Mode.InPlace() {
		err = s.Rec.TopFolder.Restore(tree.Dir)
		failpoint.Hit("inplace.tree-done")
	}
	if err != nil {
		err = fmt.Errorf("bring back %s: %w", tree.Dir, err)
	}
	return res, err
}

// keepOverwritten salvages what a plan overwrites or removes in the folder dir.
// prefix is that of a salvage.Part. What can not be salvaged is not overwritten
// either.
func (s *Session) keepOverwritten(dir, prefix string) func(context.Context, *revert.Plan) error {
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

// inPlaceResult tells how it ended. Nothing is claimed of an origin that was not
// brought back.
func (s *Session) inPlaceResult(c *collected, repo, tree *revert.Restored, stays bool, failed error) *artifacts.Result {
	res := s.result(c, false, nil)
	res.Revert = artifacts.Revert{Method: string(revert.Stat)}
	if stays {
		res.Revert.Method = "none"
		return res
	}
	for _, r := range []*revert.Restored{repo, tree} {
		if r != nil {
			res.Revert.Differences = append(res.Revert.Differences, r.Differences...)
		}
	}
	if failed != nil {
		res.Revert.Differences = append(res.Revert.Differences, failed.Error())
	}
	res.Revert.Verified = failed == nil && repo != nil && tree != nil && repo.Verified && tree.Verified
	if res.Revert.Verified {
		res.Revert.Digest = tree.Digest
	}
	res.OriginCheck = artifacts.OriginCheck{Unchanged: res.Revert.Verified, Differences: res.Revert.Differences}
	return res
}

// describeOrigin tells how an origin that is not brought back differs.
func (s *Session) describeOrigin(ctx context.Context, res *artifacts.Result) error {
	diffs := []string{}
	if s.Rec.Mode == superqode.ModeShared { // its base knows nothing of what git ignores: the changes are all there is to tell
		for _, c := range res.Changes {
			diffs = append(diffs, text.Printable(c.Path.String())+": "+string(c.Type))
		}
		res.OriginCheck = artifacts.OriginCheck{Unchanged: len(diffs) == 0, Differences: diffs}
		return nil
	}
	base, err := s.LoadBase()
	if err != nil {
		return err
	}
	tree := &revert.Tree{Dir: string(s.Rec.Origin), Base: base, Skip: s.skip()}
	repo, err := s.repository()
	if err != nil {
		return err
	}
	for _, t := range []*revert.Tree{tree, repo} {
		v, err := t.Verify(ctx, revert.Stat, nil)
		if err != nil {
			return err
		}
		diffs = append(diffs, v.Differences...)
	}
	res.OriginCheck = artifacts.OriginCheck{Unchanged: len(diffs) == 0, Differences: diffs}
	return nil
}
