package session

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// End collects what the session changed and made, takes its workspace away, or
// preserves it, checks the origin and writes the report. The result is not nil
// as soon as the workspace was looked at. An error that wraps ErrVerification
// means that something is not as it was; any other, that superqode could not do
// its work and the workspace was preserved.
func (s *Session) End(ctx context.Context, opt EndOptions) (*artifacts.Result, error) {
	if s.Rec.State == superqode.StateDone {
		return nil, mode.Ended(s.Site)
	}
	if !s.Rec.Owned || s.unlock == nil {
		if err := s.own(); err != nil {
			return nil, err
		}
		if s.Rec.State == superqode.StateDone { // by another process, between the look and the lock
			return nil, mode.Ended(s.Site)
		}
	}
	if err := s.endAbandoned(); err != nil {
		return nil, err
	}
	if mode.Of(s.Rec.Mode).InPlace {
		return s.endInPlace(ctx, opt)
	}
	if err := s.step(ctx, superqode.StateCollecting); err != nil {
		return nil, err
	}
	var gerr error
	if s.Team() {
		gerr = s.gather(ctx)
	}
	c, cerr := s.collectAfter(ctx, gerr)
	if c == nil {
		c = &collected{Look: &mode.Look{}}
	}
	s.Rec.Collected = cerr == nil
	s.Note(c.warnings)
	final := c.Final
	c.Final, s.Base = nil, nil // the check of the origin holds two more snapshots of that size
	conflict := s.mergeConflict()
	if opt.Failed = opt.Failed || conflict != nil; conflict != nil && opt.NotApplied == "" {
		opt.NotApplied = conflict.Error()
	}
	applied := s.applyAtEnd(ctx, opt.EndApply, c, cerr)
	keep := s.keeps(opt, cerr) || applied.keeps()
	var lerr error
	if !keep {
		lerr = mode.SaveLarge(ctx, s.Site, final, c.Changes)
	}
	if err := s.step(ctx, superqode.StateReverting); err != nil {
		return nil, errors.Join(cerr, err)
	}
	var rerr error
	if !keep {
		if rerr = lerr; rerr == nil {
			rerr = mode.TakeAway(ctx, s.Site, opt.Locked)
		}
		keep = rerr != nil
	}
	res := s.result(c, keep, rerr)
	var oerr error
	if !applied.fill(s, res) {
		oerr = s.fillOriginCheck(ctx, res)
	}
	gerr = s.leaveAgents(ctx, gerr, func(a superqode.AgentID) bool { return keep && s.keepsAgent(opt, a) })
	res.Agents, cerr = s.agentRunsOr(cerr)
	failpoint.Hit("end.checked")
	aerr, reported := applied.failure()
	err := errors.Join(cerr, rerr, oerr, aerr, gerr, conflict)
	if werr := s.report(ctx, c, res, errors.Join(cerr, rerr, oerr, reported, gerr)); werr != nil {
		return res, errors.Join(err, s.finish(ctx, res, true), werr)
	}
	return res, errors.Join(err, s.finish(ctx, res, keep))
}

// keeps decides whether the workspace stays.
func (s *Session) keeps(opt EndOptions, cerr error) bool {
	keep := opt.Keep
	if keep == "" {
		keep = s.Rec.Keep
	}
	switch {
	case cerr != nil: // what could not be collected must not be thrown away
		return true
	case keep == state.KeepAlways:
		return true
	case keep == state.KeepNever:
		return false
	}
	return opt.Failed
}

// step records that a part of the way down begins.
func (s *Session) step(ctx context.Context, to superqode.State) error {
	err := s.Update(ctx, func(r *state.Record) {
		r.State, r.Reverting = to, r.Reverting || to == superqode.StateReverting && mode.Of(r.Mode).Exclusive()
	})
	failpoint.Hit("end." + string(to))
	return err
}

// result tells what happened, in the shape of docs/formats.md. rerr is what
// the removal said.
func (s *Session) result(c *collected, kept bool, rerr error) *artifacts.Result {
	r := &s.Rec
	ended := s.Now()
	res := &artifacts.Result{
		SessionID: r.ID, Mode: r.Mode, Origin: string(r.Origin), TimedOut: r.TimedOut,
		StartedAt: artifacts.At(r.CreatedAt), EndedAt: artifacts.At(ended), DurationSeconds: text.Seconds(ended.Sub(r.CreatedAt)),
		Base: r.Base, Final: r.Final, Changes: c.Changes, Artifacts: artifacts.Refs(c.artifacts),
		Guard:     s.guard().Result(),
		Commits:   c.commits,
		Workspace: artifacts.Workspace{Path: string(r.Workspace), Preserved: kept},
		Idle:      r.Runs == 0, Limit: r.Limit, Truncated: r.Truncated, Runner: r.Agent.String(), Outputs: c.outputs,
	}
	res.Case, res.CaseBytes = superqode.JSONPath(string(r.Case))
	if r.ExitCode != nil {
		res.ExitCode = *r.ExitCode
	} else if r.Runs > 0 {
		res.ExitCode = state.ExitUnknown
	}
	res.State = superqode.StateDone
	if kept {
		res.State = superqode.StatePreserved
	}
	switch {
	case rerr != nil:
		res.Revert = artifacts.Revert{Method: "stat", Differences: []string{rerr.Error()}}
	case !kept: // takeAway looked; of a workspace that is kept nothing is claimed
		res.Revert = artifacts.Revert{Method: "stat", Verified: true}
	}
	return res
}

// fillOriginCheck compares the origin with the base. It reports what differs;
// it is no error, since the user may well have worked there meanwhile.
func (s *Session) fillOriginCheck(ctx context.Context, res *artifacts.Result) error {
	defer s.Begin("checking that your files are as they were", nil)()
	diffs, err := mode.For(s.Rec.Mode).Origin(ctx, s.Site, nil)
	if err != nil {
		res.OriginCheck.Differences = []string{"not checked: " + err.Error()}
		return err
	}
	res.OriginCheck = artifacts.OriginCheck{Unchanged: len(diffs) == 0, Differences: diffs}
	if res.OriginCheck.Unchanged && res.Revert.Verified {
		res.Revert.Digest = s.Rec.Base.Digest
	}
	return nil
}

// finish records the end.
func (s *Session) finish(ctx context.Context, res *artifacts.Result, kept bool) error {
	final := superqode.StateDone
	if kept {
		final = superqode.StatePreserved
	}
	res.State, res.Workspace.Preserved = final, kept
	if err := s.Update(ctx, func(r *state.Record) { r.State, r.EndedAt, r.ChangeCount = final, s.Now().UTC(), len(res.Changes) }); err != nil {
		return err
	}
	failpoint.Hit("end.finished")
	if err := s.endClaims(ctx); err != nil {
		s.Tell("the session's claims cannot be let go: " + err.Error())
	}
	if kept {
		return nil
	}
	return s.clear()
}
