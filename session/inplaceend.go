package session

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/state"
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
	kind := mode.For(s.Rec.Mode)
	keep := cmp.Or(opt.Keep, s.Rec.Keep) == state.KeepAlways && mode.Of(s.Rec.Mode).Restores
	stays := !mode.Of(s.Rec.Mode).Restores || s.Rec.NoRevert || keep
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
		repo, rerr = kind.Secure(ctx, s.Site)
	}
	oerr := mode.FreeArtifacts(ctx, s.Site)
	c, cerr := s.collectOnce(ctx, half)
	s.Note(c.warnings)
	c.Final = nil
	var tree *revert.Restored
	if rerr == nil && !stays { // also what could not be collected is salvaged, and the origin must not wait
		if rerr = s.step(ctx, superqode.StateReverting); rerr == nil {
			tree, rerr = kind.BringBack(ctx, s.Site, c.Seen)
		}
	}
	s.Base = nil
	res := s.inPlaceResult(c, repo, tree, stays, rerr)
	if rerr == nil && len(res.Revert.Differences) > 0 && !stays {
		rerr = superqode.Errorf(superqode.ErrVerification, "%s not as it was: %s", mode.IsAre(len(res.Revert.Differences)), mode.FirstOf(res.Revert.Differences))
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

// collectOnce collects, or, where the work tree may be half brought back already,
// takes what was collected before.
func (s *Session) collectOnce(ctx context.Context, half bool) (*collected, error) {
	if !half {
		c, err := s.collect(ctx)
		if c == nil {
			c = &collected{Look: &mode.Look{}}
		}
		return c, err
	}
	c := &collected{Look: &mode.Look{}}
	changes, err := mode.ReadChanges(s.Site)
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return c, err
	}
	c.Changes = changes
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
	patch, err := mode.PatchOf(ctx, s.Site, s.Ref("base"), s.Ref("final")) // it could not be stored before: a full disk, say
	if err != nil || patch == nil {
		return c, err
	}
	defer os.Remove(patch.File)
	added, err := store.AddAll(ctx, []artifacts.New{*patch})
	c.artifacts = append(c.artifacts, added...)
	return c, err
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
	diffs, err := mode.For(s.Rec.Mode).Origin(ctx, s.Site, res.Changes)
	if err != nil {
		return err
	}
	res.OriginCheck = artifacts.OriginCheck{Unchanged: len(diffs) == 0, Differences: diffs}
	return nil
}
