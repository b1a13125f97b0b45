package findings

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

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

// Trial is a fix of a session that has ended, to be tried in a fresh one.
type Trial struct {
	VerifiedFix
	*Book
	patch []byte
}

// Try returns the trial of a fix whose artifact or finding has the id ref. The error
// wraps superqode.ErrNotFound when the session has none.
func Try(ctx context.Context, s *site.Site, ref string) (*Trial, error) {
	filed, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	fix, finding, err := FixOf(ctx, filed, s.Rec.ID, ref)
	if err != nil {
		return nil, err
	}
	t := &Trial{Book: Open(s), VerifiedFix: VerifiedFix{
		SessionID: s.Rec.ID, Artifact: fix.Path.String(), Fix: artifacts.Fix{FindingID: finding, PatchID: fix.ID},
	}}
	t.patch, err = filed.Read(fix, 0)
	return t, err
}

// Check asks git whether the patch applies to the base at all, and enters it into
// the report where it does not.
func (t *Trial) Check(ctx context.Context) (err error) {
	t.Reason, err = t.Book.Applies(ctx, t.patch)
	if err != nil {
		err = fmt.Errorf("the base of session %s is gone: %w", t.SessionID, err)
		return superqode.WithHint(err, "superqode workspace list")
	}
	if t.VerifiedFix.Applies = t.Reason == ""; t.VerifiedFix.Applies {
		return nil
	}
	t.Evidence = "the patch does not apply to the base: " + t.Reason
	return t.enter(ctx)
}

// Workspace is where a fix is tried.
type Workspace struct {
	Session superqode.SessionID
	Dir     string
	Head    string   // the commit that it was made of, "" for an empty folder
	Tests   []string // what Run runs
	Run     func(context.Context) (code int, timedOut bool, err error)
	Tell    func(string)
}

// Run runs the tests on the base and with the fix, and enters what came of it into
// the report of the finding's session.
func (t *Trial) Run(ctx context.Context, w Workspace) error {
	t.TriedIn = w.Session
	scratch, err := os.MkdirTemp(t.Folder, ".fix-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree := store.CheckApplyOptions{Commit: t.Ref("base"), Scratch: scratch}
	if err := t.Store.Checkout(ctx, tree, w.Dir, w.Head); err != nil {
		return fmt.Errorf("write out the base: %w", err)
	}
	w.Tell("tests before the fix")
	var late bool
	if t.Before, t.TimedOut, err = w.Run(ctx); err != nil {
		return err
	}
	tree.Patch = t.patch
	if err := t.Store.Checkout(ctx, tree, w.Dir, t.Ref("base")); err != nil {
		return fmt.Errorf("write out the fix: %w", err)
	}
	w.Tell("tests after the fix")
	if t.After, late, err = w.Run(ctx); err != nil {
		return err
	}
	t.TimedOut = t.TimedOut || late
	t.Verified = t.After == 0 && !t.TimedOut
	t.Improvement = t.Verified && t.Before != 0
	t.Evidence = fmt.Sprintf("%s: exit code %d before, %d after the patch, in session %s",
		text.Printable(strings.Join(w.Tests, " ")), t.Before, t.After, t.TriedIn)
	if t.TimedOut {
		t.Evidence += "; one of them ran out of time"
	}
	return t.enter(ctx)
}

func (t *Trial) enter(ctx context.Context) error {
	return t.ChangeReport(ctx, func(rep artifacts.Report) artifacts.Report { return rep.WithFix(t.Fix) })
}
