package life

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// wayDown is the end of every session, in this order. End, Ctrl-C, recovery after
// kill -9 and cleanup all go down it, from the step that the record names. Each
// step goes by the base and by what is there, so it can be repeated after a crash.
//
// In place, the repository's own files are brought back first, before any git runs
// there; then what the session made is stored, which the salvage needs in any case; then
// the work tree is brought back. It waits for nothing that can be made from the store.
var wayDown = []step{
	{name: stepMerge, what: "merging", run: (*ending).merge},
	{name: stepSecure, what: "bringing the repository back", run: (*ending).secure, recall: (*ending).secure},
	{name: stepCollect, what: "collecting the changes", run: (*ending).collect, recall: (*ending).recollect},
	{name: state.StepBringBack, what: "bringing your files back", run: (*ending).bringBack, due: (*ending).bringsBack},
	{name: stepDescribe, what: "describing the changes", run: (*ending).describe, recall: (*ending).describeAgain},
	{name: stepApply, what: "applying the changes", run: (*ending).apply},
	{name: state.StepRemove, what: "removing the workspace", run: (*ending).remove, due: (*ending).removes},
	{name: stepCheck, what: "checking your files", run: (*ending).check, tells: true},
	{name: stepAgents, what: "ending the agents' sessions", run: (*ending).agents, tells: true},
	{name: stepReport, what: "writing the report", run: (*ending).report, tells: true},
	{name: stepFinish, what: "recording the end", run: (*ending).finish},
}

// The steps that the record does not name: a repetition begins with them, or after
// them, see state.StepBringBack and state.StepRemove.
const (
	stepMerge    = "merge"    // what several agents did is merged into the session's workspace
	stepSecure   = "secure"   // in place: commits are kept, the repository's own files brought back
	stepCollect  = "collect"  // changed contents and outputs are stored
	stepDescribe = "describe" // patch, logs, findings, artifacts, commits are stored
	stepApply    = "apply"    // the changes are brought into the origin, where that was asked for
	stepCheck    = "check"    // the origin is compared with the base
	stepAgents   = "agents"   // the agents' own sessions are ended
	stepReport   = "report"
	stepFinish   = "finish"
)

// A step is one part of the way down. What goes wrong in it is the ending's
// failure: the steps after it go by that.
type step struct {
	name   string
	what   string // for people
	run    func(*ending, context.Context) error
	recall func(*ending, context.Context) error // takes the place of run where the record names a later step
	due    func(*ending) bool                   // of a step that the record names before it begins: whether it is to be run
	tells  bool                                 // it only tells of the end: not run for a session that has its report
}

// An ending is one way down: what was asked for, and what its steps found.
type ending struct {
	*Session
	alone  attach.Alone
	opt    EndOptions
	from   string // the first step to run; "" is the first of all
	told   bool   // the session has its report already
	stays  bool   // in place: the changes stay in the origin
	keep   bool   // the session is preserved
	failed []failure
	doing  doing

	members team.Ending // agents in workspaces of their own

	look       *mode.Look
	artifacts  []artifacts.Artifact
	commits    *artifacts.Commits
	outputs    *artifacts.Outputs // nil: none were asked for
	warnings   []string
	final      *snapshot.Snapshot     // isolated: the workspace at the end
	applied    *artifacts.Applied     // nil: nothing was to be applied
	origin     *artifacts.OriginCheck // as it was found, nil before that
	repo, tree *revert.Restored       // in place: what was brought back
	res        *artifacts.Result
}

// A failure is what went wrong in one step. A conflict, between agents or with the
// origin, says nothing against the session: it is not part of its report's errors.
type failure struct {
	step     string
	err      error
	conflict bool
}

// fail keeps what went wrong in a step.
func (e *ending) fail(step string, err error) {
	if err != nil {
		_, conflict := errors.AsType[*apply.Error](err)
		e.failed = append(e.failed, failure{step, err, conflict})
	}
}

// failures joins the failures that are chosen.
func (e *ending) failures(choose func(failure) bool) error {
	var list []error
	for _, f := range e.failed {
		if choose(f) {
			list = append(list, f.err)
		}
	}
	return errors.Join(list...)
}

// failedIn reports whether something went wrong in one of the steps.
func (e *ending) failedIn(steps ...string) bool {
	return e.failures(func(f failure) bool { return !f.conflict && slices.Contains(steps, f.step) }) != nil
}

// End collects what the session changed and made, takes its workspace away, or
// preserves it, checks the origin and writes the report. The result is not nil
// as soon as the workspace was looked at. An error that wraps ErrVerification
// means that something is not as it was; any other, that superqode could not do
// its work and the workspace was preserved.
func (s *Session) End(ctx context.Context, opt EndOptions) (*artifacts.Result, error) {
	if s.Rec.State == superqode.StateDone {
		return nil, mode.Ended(s.Site)
	}
	alone := s.made
	if !s.Rec.Owned || !s.Held() || alone.Attached == nil {
		var err error
		if alone, err = s.Own(); err != nil {
			return nil, err
		}
		if s.Rec.State == superqode.StateDone { // by another process, between the look and the lock
			return nil, mode.Ended(s.Site)
		}
	}
	return s.end(ctx, alone, opt)
}

func (s *Session) end(ctx context.Context, alone attach.Alone, opt EndOptions) (*artifacts.Result, error) {
	if err := alone.EndAbandoned(); err != nil {
		return nil, err
	}
	e := s.ending(alone, opt, s.Rec.Step)
	if e.from == state.StepRemove && atomicfile.Exists(string(s.Rec.Workspace)) { // somebody may have worked there since
		e.from = ""
	}
	return e.goDown(ctx)
}

func (s *Session) ending(alone attach.Alone, opt EndOptions, from string) *ending {
	return &ending{Session: s, alone: alone, opt: opt, from: from, look: &mode.Look{}, members: team.Ending{Attached: s.Attached}}
}

// goDown takes the steps that are left.
func (e *ending) goDown(ctx context.Context) (_ *artifacts.Result, err error) {
	ctx, stop := e.attend(ctx)
	defer stop()
	facts := mode.Of(e.Rec.Mode)
	if facts.InPlace {
		unlock, lerr := e.Project.Lock(ctx)
		if lerr != nil {
			return nil, lerr
		}
		defer func() { err = errors.Join(err, unlock()) }()
		asked := cmp.Or(e.opt.Keep, e.Rec.Keep) == superqode.KeepAlways && facts.Restores
		e.stays, e.keep = !facts.Restores || e.Rec.NoRevert || asked, asked && !e.told
	}
	e.MakeRoom(ctx)
	if e.from == "" {
		if err := e.record(ctx, "", superqode.StateCollecting); err != nil {
			return nil, err
		}
	}
	past := e.from != ""
	for _, st := range wayDown {
		if ctx.Err() != nil {
			return e.res, context.Cause(ctx)
		}
		past = past && st.name != e.from
		run := st.run
		switch {
		case past && e.told:
			run = nil
		case past:
			run = st.recall
		case st.due != nil && !st.due(e) || st.tells && e.told:
			run = nil
		case st.due != nil:
			if err := e.record(ctx, st.name, superqode.StateReverting); err != nil {
				e.fail(st.name, err)
				e.keep = true
				continue
			}
		}
		if run != nil {
			e.fail(st.name, e.doing.take(ctx, st, func(ctx context.Context) error { return run(e, ctx) }))
		}
	}
	err = errors.Join(e.failures(func(failure) bool { return true }), mode.Meanwhile(e.Site))
	if e.failedIn(stepSecure, state.StepBringBack) {
		again := "superqode workspace revert --session " + e.Rec.ID.String()
		err = superqode.WithHint(err, "%s # what was kept of the origin is in %s", again, text.QuotePOSIX(e.AsideDir()))
		err = site.RoomHint(err, again)
	}
	return e.res, err
}

// record writes down how far the end has come.
func (e *ending) record(ctx context.Context, step string, to superqode.State) error {
	err := e.Update(ctx, func(r *state.Record) { r.State, r.Step = to, step })
	failpoint.Hit("end." + string(to))
	return err
}

// merge puts what several agents did into the session's workspace. What could not
// be merged makes the session a failed one.
func (e *ending) merge(ctx context.Context) error {
	if !e.Team() || mode.Of(e.Rec.Mode).InPlace {
		return nil
	}
	err := e.members.Merge(ctx)
	if conflict := e.members.Conflict(); conflict != nil {
		e.failed = append(e.failed, failure{stepMerge, conflict, true})
		e.opt.Failed, e.opt.NotApplied = true, cmp.Or(e.opt.NotApplied, conflict.Error())
	}
	if err != nil {
		err = superqode.WithHint(err, "superqode workspace end --session %s", e.Rec.ID)
	}
	return err
}

// secure brings back whatever git reads or runs in the origin.
func (e *ending) secure(ctx context.Context) (err error) {
	if !mode.Of(e.Rec.Mode).InPlace || e.stays {
		return nil
	}
	if _, err := gitdir.KeepCommits(ctx, e.Site); err != nil { // before HEAD is what it was; the origin must not wait for it
		e.Warn("the session's commits could not be kept: " + err.Error())
	}
	e.repo, err = mode.For(e.Rec.Mode).Secure(ctx, e.Site)
	return err
}

// collect compares the workspace with the base and stores what differs. Where the agents' changes
// could not be merged, the workspace does not hold them, and nothing is concluded from it.
func (e *ending) collect(ctx context.Context) error {
	if e.failedIn(stepMerge) {
		e.Rec.Collected = false
		return nil
	}
	inPlace := mode.Of(e.Rec.Mode).InPlace
	if inPlace {
		e.fail(stepCollect, mode.FreeArtifacts(ctx, e.Site))
	}
	err := e.collectAll(ctx)
	e.Note(e.warnings)
	if !inPlace { // the check of the origin holds two more snapshots of that size
		e.Rec.Collected, e.final, e.Base = err == nil, e.look.Final, nil
	}
	e.look.Base, e.look.Final = nil, nil
	return err
}

// recollect reads what an earlier attempt has collected.
func (e *ending) recollect(ctx context.Context) error {
	if mode.Of(e.Rec.Mode).InPlace {
		e.fail(stepCollect, mode.FreeArtifacts(ctx, e.Site))
	}
	var err error
	e.look, err = mode.StoredLook(e.Site)
	return err
}

// bringsBack reports whether the origin's work tree is to be brought back: also
// when it could not be collected, since what is overwritten is salvaged.
func (e *ending) bringsBack() bool {
	return mode.Of(e.Rec.Mode).InPlace && !e.stays && !e.failedIn(stepSecure)
}

func (e *ending) bringBack(ctx context.Context) (err error) {
	e.tree, err = mode.For(e.Rec.Mode).BringBack(ctx, e.Site, e.look.Seen)
	return err
}

// removes decides whether the workspace is taken away. What could not be collected
// or applied stays.
func (e *ending) removes() bool {
	if mode.Of(e.Rec.Mode).InPlace {
		return false
	}
	if e.from == "" {
		e.keep = e.failures(func(f failure) bool { return f.step != stepMerge || !f.conflict }) != nil || keeps(&e.Rec, e.opt, e.opt.unset != nil || len(e.look.Changes) > 0 || e.look.Ignored > 0)
	}
	return !e.keep
}

// keeps decides whether the workspace of a session stays that nothing went wrong with;
// some is whether there is anything to look at.
func keeps(r *state.Record, opt EndOptions, some bool) bool {
	switch cmp.Or(opt.Keep, r.Keep) {
	case superqode.KeepAlways:
		return true
	case superqode.KeepNever:
		return false
	}
	return opt.Failed && some
}

func (e *ending) remove(ctx context.Context) error {
	err := mode.SaveLarge(ctx, e.Site, e.final, e.look.Changes)
	if err == nil {
		err = mode.TakeAway(ctx, e.Site, e.opt.Locked)
	}
	e.keep = err != nil
	return err
}

// check compares the origin with the base and says in the result how it ended.
// Nothing is claimed of a workspace that is kept, or of an origin that was not
// brought back.
func (e *ending) check(ctx context.Context) error {
	e.res = e.result()
	e.Base, e.final = nil, nil
	if mode.Of(e.Rec.Mode).InPlace && !e.stays {
		e.checkBroughtBack()
		return nil
	}
	e.res.Applied = e.applied
	var err error
	if e.origin == nil {
		err = e.checkOrigin(ctx)
	}
	e.res.OriginCheck = *e.origin
	if e.origin.Unchanged && e.res.Revert.Verified {
		e.res.Revert.Digest = e.Rec.Base.Digest
	}
	return err
}

// checkOrigin compares the origin with the base. That it differs is no error: the
// user may well have worked there meanwhile.
func (e *ending) checkOrigin(ctx context.Context) error {
	if !e.stays {
		defer e.Begin("checking that your files are as they were", nil)()
	}
	var err error
	e.origin, err = mode.Origin(ctx, e.Site, e.look.Changes)
	return err
}

// checkBroughtBack says what the two halves of bringing an origin back have proven.
func (e *ending) checkBroughtBack() {
	rev := &e.res.Revert
	rev.Verified = true
	for _, r := range []*revert.Restored{e.repo, e.tree} {
		if r != nil {
			rev.Differences = append(rev.Differences, r.Differences...)
		}
		rev.Verified = rev.Verified && r != nil && r.Verified
	}
	broken := e.failures(func(f failure) bool { return f.step == stepSecure || f.step == state.StepBringBack })
	switch {
	case broken != nil:
		rev.Differences, rev.Verified = append(rev.Differences, broken.Error()), false
	case len(rev.Differences) > 0:
		e.fail(state.StepBringBack, superqode.Errorf(superqode.ErrVerification, "%s not as it was: %s", mode.IsAre(len(rev.Differences)), text.FirstOf(rev.Differences)))
	}
	if rev.Verified {
		rev.Digest = e.tree.Digest
	}
	e.res.OriginCheck, rev.Salvages = mode.BroughtBack(e.Site, *rev), mode.Saved(e.Site)
}

// result is what happened, in the shape of docs/formats.md.
func (e *ending) result() *artifacts.Result {
	r := &e.Rec
	ended := e.Now()
	res := &artifacts.Result{
		SessionID: r.ID, Mode: r.Mode, State: superqode.StateDone, Origin: string(r.Origin), TimedOut: r.TimedOut,
		StartedAt: artifacts.At(r.CreatedAt), EndedAt: artifacts.At(ended), DurationSeconds: text.Seconds(ended.Sub(r.CreatedAt)),
		Base: r.Base, Final: r.Final, Changes: e.look.Changes, Artifacts: artifacts.Refs(e.artifacts),
		Guard: e.Guard().Result(), Commits: e.commits, Outputs: e.outputs,
		Workspace: r.WorkspaceResult(),
		Idle:      r.Runs == 0, Limit: r.Limit, Truncated: r.Truncated, Runner: r.RunnerID(),
		Revert: artifacts.Revert{Method: string(revert.Stat)},
	}
	res.Case, res.CaseBytes = superqode.JSONPath(string(r.Case))
	if r.ExitCode != nil {
		res.ExitCode = *r.ExitCode
	} else if r.Runs > 0 {
		res.ExitCode = state.ExitUnknown
	}
	removal := e.failures(func(f failure) bool { return f.step == state.StepRemove })
	switch {
	case e.stays:
		res.Revert.Method = "none"
	case mode.Of(r.Mode).InPlace: // see checkBroughtBack
	case removal != nil:
		res.Revert.Differences = []string{removal.Error()}
	case e.keep:
		res.Revert.Method = "" // of a workspace that is kept nothing is claimed
	default: // its removal was looked at
		res.Revert.Verified = true
	}
	if e.keep {
		res.State, res.Workspace.Preserved = superqode.StatePreserved, true
	}
	return res
}

// agents ends the sessions of agents in workspaces of their own.
func (e *ending) agents(ctx context.Context) error {
	var err error
	if !mode.Of(e.Rec.Mode).InPlace {
		always := cmp.Or(e.opt.Keep, e.Rec.Keep) == superqode.KeepAlways
		err = e.members.Leave(ctx, e.failedIn(stepMerge), func(a superqode.AgentID) bool { return e.keep && e.members.Keeps(a, always) })
	}
	var rerr error
	e.res.Agents, rerr = e.AgentRuns()
	return errors.Join(err, rerr)
}

// report writes the session's report. In place, whatever went wrong preserves the
// session: it holds what the origin was.
func (e *ending) report(ctx context.Context) error {
	failpoint.Hit("end.checked")
	e.keep = e.keep || mode.Of(e.Rec.Mode).InPlace && len(e.failed) > 0
	err := e.writeReport(ctx, e.failures(func(f failure) bool { return !f.conflict }))
	e.keep = e.keep || err != nil
	return err
}

// finish records the end.
func (e *ending) finish(ctx context.Context) error {
	final := superqode.StateDone
	if e.keep {
		final = superqode.StatePreserved
	}
	if e.res != nil {
		e.res.State, e.res.Workspace.Preserved = final, e.keep
	}
	err := e.Update(ctx, func(r *state.Record) {
		r.State = final
		if e.res != nil && !e.res.Final.Digest.IsZero() { // zero: they are not known
			r.ChangeCount = len(e.res.Changes)
		}
		if e.res != nil || r.EndedAt.IsZero() {
			r.EndedAt = e.Now().UTC()
		}
		if r.Step == state.StepRemove && atomicfile.Exists(string(r.Workspace)) {
			r.Step = "" // it is preserved, and may change
		}
	})
	if err != nil {
		return err
	}
	failpoint.Hit("end.finished")
	if mode.Of(e.Rec.Mode).InPlace { // what it would be brought back from goes next
		if err := atomicfile.SyncDir(e.Folder); err != nil {
			return err
		}
	}
	if err := e.endClaims(ctx); err != nil {
		e.Tell("the session's claims cannot be let go: " + err.Error())
	}
	if e.keep {
		return e.SyncWork()
	}
	return e.alone.Clear()
}

// dispose takes away the workspace of a session whose contents were salvaged. An
// active session goes the whole way down, with its report; where that fails, for
// the origin is gone, say, force takes the workspace all the same.
func (s *Session) dispose(ctx context.Context, alone attach.Alone, d mode.Disposal, force bool) error {
	if err := mode.MoveOut(ctx, s.Site, d.Ignored); err != nil {
		return err
	}
	if s.Rec.State == superqode.StateActive {
		_, err := s.end(ctx, alone, EndOptions{Keep: superqode.KeepNever})
		if err == nil || s.Rec.State == superqode.StateDone || !force || errors.Is(err, superqode.ErrLocked) {
			return err
		}
		s.Tell(fmt.Sprintf("session %s was removed without its end: %v", s.Rec.ID, err))
	}
	if err := mode.MoveOut(ctx, s.Site, d.Large); err != nil {
		return err
	}
	e := s.ending(alone, EndOptions{}, state.StepRemove)
	e.told = true
	_, err := e.goDown(ctx)
	return err
}

// endClaims releases what the session's agents still have when it ends.
func (s *Session) endClaims(ctx context.Context) error {
	return coordinator.OpenTable(s.Project.Dir).EndSession(ctx, s.Rec.ID)
}
