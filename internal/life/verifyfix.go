package life

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
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

// VerifyFix applies the fix of a finding in a fresh session that begins with what
// the finding's session began with, runs the tests before and after, and enters
// what came of it into the report of the finding's session.
func (m *Manager) VerifyFix(ctx context.Context, opt VerifyFixOptions) (*findings.VerifiedFix, error) {
	t, err := m.findFix(ctx, opt)
	if err != nil {
		return nil, err
	}
	if err := t.Check(ctx); err != nil || !t.VerifiedFix.Applies {
		return &t.VerifiedFix, err
	}
	return &t.VerifiedFix, m.tryFix(ctx, t, opt)
}

// findFix finds the session and the patch.
func (m *Manager) findFix(ctx context.Context, opt VerifyFixOptions) (*findings.Trial, error) {
	var candidates []state.Listed
	var err error
	if opt.Session != "" {
		candidates = make([]state.Listed, 1)
		candidates[0], err = m.find(ctx, opt.Dir, opt.Session)
	} else {
		candidates, _, err = registry.List(ctx, m.Host, opt.Dir, false)
	}
	if err != nil {
		return nil, err
	}
	for _, l := range candidates {
		if !l.State.Ended() {
			continue
		}
		if t, err := findings.Try(ctx, m.session(l).Site, opt.Finding); !errors.Is(err, superqode.ErrNotFound) {
			return t, err
		}
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session that has ended has a fix for %q", opt.Finding), "superqode artifacts list --type fix")
}

// tryFix runs the tests in a fresh session, on the base and with the fix.
func (m *Manager) tryFix(ctx context.Context, t *findings.Trial, opt VerifyFixOptions) (err error) {
	open, head := opt.Open, ""
	open.Dir, open.Owned, open.Trial, open.Name, open.Keep, open.NoRevert = string(t.Rec.Origin), true, true, "verify-fix "+t.FindingID, superqode.KeepNever, false
	if t.Rec.GitDir != "" {
		head = t.Rec.Base.Head
	}
	open.Mode, open.From = mode.Apart(head), cmp.Or(head, mode.FromWorking)
	fresh, err := m.openInterruptible(ctx, open, opt.Exec.Signals)
	if err != nil {
		return err
	}
	defer fresh.Close()
	defer func() {
		_, eerr := fresh.End(context.WithoutCancel(ctx), EndOptions{Keep: superqode.KeepNever, Locked: true, Signals: opt.Exec.Signals})
		err = errors.Join(err, eerr)
	}()
	return t.Run(ctx, findings.Workspace{
		Session: fresh.Rec.ID, Dir: fresh.WorkDir(), Head: head, Tests: opt.Exec.Args, Tell: opt.Tell,
		Run: func(ctx context.Context) (int, bool, error) {
			res, err := fresh.Exec(ctx, opt.Exec)
			return res.ExitCode, res.TimedOut, err
		},
	})
}
