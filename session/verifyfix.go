package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// VerifyFixOptions says which fix is tried, and with which tests.
type VerifyFixOptions struct {
	Dir     string // any folder inside the origin
	Session string // the session of the finding; "" finds the newest one that has it
	Finding string // its id, or the id of the fix's artifact
	Open    OpenOptions
	Exec    program.ExecOptions // the tests; they run twice
	Tell    func(string)
}

// VerifiedFix is what came of it.
type VerifiedFix struct {
	artifacts.Fix
	SessionID superqode.SessionID `json:"session_id"`     // of the finding
	TriedIn   superqode.SessionID `json:"tried_in"`       // the fresh session
	Before    int                 `json:"exit_before"`    // the tests' exit code on the base
	After     int                 `json:"exit_after"`     // and with the fix
	Applies   bool                `json:"applies"`        // git took the patch on the base
	TimedOut  bool                `json:"timed_out"`      // one of the runs
	Reason    string              `json:"reason"`         // why the patch does not apply
	Artifact  string              `json:"patch_artifact"` // below qe-artifacts
}

// VerifyFix applies the fix of a finding in a fresh session that begins with what
// the finding's session began with, runs the tests before and after, and enters
// what came of it into the report of the finding's session.
func (m *Manager) VerifyFix(ctx context.Context, opt VerifyFixOptions) (*VerifiedFix, error) {
	s, v, patch, err := m.findFix(ctx, opt)
	if err != nil {
		return nil, err
	}
	v.Reason, err = s.Findings().Applies(ctx, patch)
	if err != nil {
		return nil, superqode.WithHint(fmt.Errorf("the base of session %s is gone: %w", s.Rec.ID, err), "superqode workspace list")
	}
	if v.Applies = v.Reason == ""; !v.Applies {
		v.Evidence = "the patch does not apply to the base: " + v.Reason
		return v, s.Findings().ChangeReport(ctx, func(rep artifacts.Report) artifacts.Report { return rep.WithFix(v.Fix) })
	}
	if err := m.tryFix(ctx, s, opt, patch, v); err != nil {
		return v, err
	}
	v.Verified = v.After == 0 && !v.TimedOut
	v.Improvement = v.Verified && v.Before != 0
	v.Evidence = fmt.Sprintf("%s: exit code %d before, %d after the patch, in session %s", text.Printable(strings.Join(opt.Exec.Args, " ")), v.Before, v.After, v.TriedIn)
	if v.TimedOut {
		v.Evidence += "; one of them ran out of time"
	}
	return v, s.Findings().ChangeReport(ctx, func(rep artifacts.Report) artifacts.Report { return rep.WithFix(v.Fix) })
}

// findFix finds the session and the patch.
func (m *Manager) findFix(ctx context.Context, opt VerifyFixOptions) (*Session, *VerifiedFix, []byte, error) {
	var candidates []state.Listed
	var err error
	if opt.Session != "" {
		candidates = make([]state.Listed, 1)
		candidates[0], err = m.find(ctx, opt.Dir, opt.Session)
	} else {
		candidates, _, err = registry.List(ctx, m.Host, opt.Dir, false)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for _, l := range candidates {
		if !l.State.Ended() {
			continue
		}
		s := m.session(l)
		store, err := artifacts.Open(string(s.Rec.Origin))
		if err != nil {
			return nil, nil, nil, err
		}
		fix, finding, err := findings.FixOf(ctx, store, l.ID, opt.Finding)
		if errors.Is(err, superqode.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, nil, err
		}
		patch, err := store.Read(fix, 0)
		return s, &VerifiedFix{SessionID: l.ID, Artifact: fix.Path.String(), Fix: artifacts.Fix{FindingID: finding, PatchID: fix.ID}}, patch, err
	}
	return nil, nil, nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session that has ended has a fix for %q", opt.Finding), "superqode artifacts list --type fix")
}

// tryFix runs the tests in a fresh session, on the base and with the fix.
func (m *Manager) tryFix(ctx context.Context, s *Session, opt VerifyFixOptions, patch []byte, v *VerifiedFix) (err error) {
	open, head := opt.Open, ""
	open.Dir, open.Owned, open.Trial, open.Name, open.Keep, open.NoRevert = string(s.Rec.Origin), true, true, "verify-fix "+v.FindingID, state.KeepNever, false
	if s.Rec.GitDir != "" {
		head = s.Rec.Base.Head
	}
	open.Mode, open.From = mode.Apart(head), cmp.Or(head, mode.FromWorking)
	fresh, err := m.openInterruptible(ctx, open, opt.Exec.Signals)
	if err != nil {
		return err
	}
	defer fresh.Close()
	v.TriedIn = fresh.Rec.ID
	defer func() {
		stop := ignore(opt.Exec.Signals)
		defer stop()
		_, eerr := fresh.End(context.WithoutCancel(ctx), EndOptions{Keep: state.KeepNever, Locked: true})
		err = errors.Join(err, eerr)
	}()
	scratch, err := os.MkdirTemp(s.Folder, ".fix-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree := store.CheckApplyOptions{Commit: s.Ref("base"), Scratch: scratch}
	if err := s.Store.Checkout(ctx, tree, string(fresh.Rec.Workspace), head); err != nil {
		return fmt.Errorf("write out the base: %w", err)
	}
	opt.Tell("tests before the fix")
	before, err := fresh.Exec(ctx, opt.Exec)
	if err != nil {
		return err
	}
	tree.Patch = patch
	if err := s.Store.Checkout(ctx, tree, string(fresh.Rec.Workspace), s.Ref("base")); err != nil {
		return fmt.Errorf("write out the fix: %w", err)
	}
	opt.Tell("tests after the fix")
	after, err := fresh.Exec(ctx, opt.Exec)
	v.Before, v.After, v.TimedOut = before.ExitCode, after.ExitCode, before.TimedOut || after.TimedOut
	return err
}
