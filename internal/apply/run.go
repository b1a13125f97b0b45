package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/swap"
	"github.com/seed-2d964004/superqode/internal/text"
)

// intent is sessions/<id>/apply.json: it exists from before the first file is
// written in the origin until nothing of the apply is left there but its
// result. Its plan has every path, what was there, and where old and new are
// while they are exchanged; so whoever finds the file can complete or undo the
// apply.
type intent struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Origin        superqode.HostPath  `json:"origin"`
	StartedAt     time.Time           `json:"started_at"`
	Salvage       string              `json:"salvage"` // of what is overwritten and deleted
	Undone        bool                `json:"undone"`  // it was undone
	Plan          *swap.Plan          `json:"plan"`
}

// IntentPath is the file that exists while an apply of the session in that
// folder is under way.
func IntentPath(sessionDir string) string { return filepath.Join(sessionDir, "apply.json") }

func (j *Job) saveIntent(in *intent, phase swap.Phase) error {
	in.Plan.Phase = phase
	return atomicfile.WriteJSON(IntentPath(j.Dir), in)
}

// dropIntent ends an apply: from now on there is nothing to finish.
func (j *Job) dropIntent() error {
	if err := os.Remove(IntentPath(j.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(j.Dir)
}

// readIntent returns nil where no apply is under way.
func readIntent(sessionDir string) (*intent, error) {
	data, err := atomicfile.Read(IntentPath(sessionDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in intent
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: apply.json: %w", state.ErrBroken, err)
	}
	switch {
	case in.SchemaVersion > state.SchemaVersion:
		return nil, fmt.Errorf("%w: apply.json has schema_version %d, this superqode knows %d", state.ErrBroken,
			in.SchemaVersion, state.SchemaVersion)
	case in.Plan == nil || in.SessionID.String() != filepath.Base(sessionDir):
		return nil, fmt.Errorf("%w: apply.json is not that of session %s", state.ErrBroken, filepath.Base(sessionDir))
	}
	if err := in.Plan.Check(); err != nil {
		return nil, fmt.Errorf("%w: apply.json: %w", state.ErrBroken, err)
	}
	return &in, nil
}

// carryOut does what was decided. It salvages what it overwrites or deletes,
// then writes every new file beside its place, the only step that can run out
// of space, and then exchanges them.
func (j *Job) carryOut(ctx context.Context, view *merge.View, steps []merge.Step, b *merge.Scratch, opt Options,
	res *artifacts.Applied) error {
	keep, err := filepath.Rel(string(j.Origin), superqode.RealPrefix(opt.Stay))
	if opt.Stay == "" || err != nil || strings.HasPrefix(keep, "..") {
		keep = ""
	}
	in := &intent{SchemaVersion: state.SchemaVersion, SessionID: j.ID, Origin: j.Origin, StartedAt: j.Now().UTC(),
		Plan: merge.Plan(view, steps, keep)}
	if in.Salvage, err = j.salvageOverwritten(ctx, view, in.Plan); err != nil {
		return err
	}
	failpoint.Hit("apply.salvaged")
	d, err := swap.Open(string(j.Origin))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := j.runIntent(ctx, d, in, b); err != nil {
		return j.failed(err, opt.Reverse)
	}
	res.Salvage = in.Salvage
	verr := j.verifyApplied(ctx, view, steps)
	failpoint.Hit("apply.verified")
	return errors.Join(verr, j.cleanIntent(ctx, d, in), j.mark(opt))
}

// appliedFile is there, in a session's folder, while its changes are in the origin; its time
// is that of the apply.
const appliedFile = "applied"

// mark remembers an apply for Last, and forgets one that was taken back whole.
func (j *Job) mark(opt Options) error {
	path := filepath.Join(j.Dir, appliedFile)
	if !opt.Reverse {
		return atomicfile.Replace(path, nil, 0o600)
	}
	if len(opt.Paths)+len(opt.Hunks) > 0 || !opt.Agent.IsZero() {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Last returns, of some sessions, the one that was applied last and not taken back since; ""
// if there is none.
func Last(list []state.Listed) (id string) {
	var at time.Time
	for _, l := range list {
		if st, err := os.Stat(filepath.Join(l.Dir, appliedFile)); err == nil && st.ModTime().After(at) {
			id, at = l.ID.String(), st.ModTime()
		}
	}
	return id
}

// salvageOverwritten saves what the plan overwrites and deletes and returns the
// salvage's id.
func (j *Job) salvageOverwritten(ctx context.Context, view *merge.View, plan *swap.Plan) (string, error) {
	var over []snapshot.Entry
	for i := range plan.Steps {
		st := &plan.Steps[i]
		if st.Op == swap.Remove || st.Op == swap.Put && st.Was != nil {
			over = append(over, *view.Now.Find(superqode.RelPath(st.Path)))
		}
	}
	return j.salvageWhole(ctx, "apply", salvage.Part{Dir: string(j.Origin), Entries: over})
}

// salvageWhole returns the id of a salvage, "" where there is nothing to save. What
// cannot be saved is an error.
func (j *Job) salvageWhole(ctx context.Context, why string, part salvage.Part) (string, error) {
	sv, err := j.Salvage(ctx, why, part)
	if err != nil || sv == nil {
		return "", err
	}
	if len(sv.LeftOut) > 0 {
		first := sv.LeftOut[0]
		return "", fmt.Errorf("nothing was applied: %s could not be saved before it is overwritten: %s",
			text.Printable(first.Path), first.Reason)
	}
	return sv.ID, nil
}

// runIntent carries out a plan until everything is in its place. After an error
// everything is as it was, unless the error says otherwise.
func (j *Job) runIntent(ctx context.Context, d *swap.Dir, in *intent, b *merge.Scratch) error {
	if err := j.saveIntent(in, swap.Staging); err != nil {
		return err
	}
	failpoint.Hit("apply.begun")
	err := d.Stage(ctx, in.Plan, func(_ context.Context, st *swap.Step, w io.Writer) error { return b.Fill(st.Data, w) })
	if err != nil {
		return errors.Join(err, j.dropIntent())
	}
	failpoint.Hit("apply.staged")
	if err := j.saveIntent(in, swap.Committing); err != nil {
		return errors.Join(err, d.Discard(in.Plan), j.dropIntent())
	}
	failpoint.Hit("apply.committing")
	err = d.Commit(ctx, in.Plan)
	if err == nil {
		failpoint.Hit("apply.committed")
		err = j.saveIntent(in, swap.Cleaning)
	}
	if err != nil {
		return errors.Join(err, j.undoIntent(ctx, d, in))
	}
	failpoint.Hit("apply.cleaning")
	return nil
}

// undoIntent undoes what was done of a plan. It does not stop if it cannot
// record the phase: whoever finds the old phase completes the plan, which is
// consistent, too.
func (j *Job) undoIntent(ctx context.Context, d *swap.Dir, in *intent) error {
	_ = j.saveIntent(in, swap.Undoing)
	failpoint.Hit("apply.undoing")
	left, err := d.Undo(in.Plan)
	for _, l := range left {
		j.Warn(fmt.Sprintf("%s was changed while the apply was undone, and is left as it is; what it held before is in salvage %s", text.Printable(l.Path), in.Salvage))
	}
	if err != nil {
		return superqode.WithHint(fmt.Errorf("%w: the apply could not be taken back whole: %w",
			superqode.ErrVerification, err), "superqode workspace recover --session %s", j.ID)
	}
	failpoint.Hit("apply.undone")
	in.Undone = true
	_ = j.saveIntent(in, swap.Cleaning)
	return j.cleanIntent(context.WithoutCancel(ctx), d, in)
}

// cleanIntent deletes what is left beside the files and ends the apply.
func (j *Job) cleanIntent(ctx context.Context, d *swap.Dir, in *intent) error {
	err := d.Clean(in.Plan, func(path string, st *swap.Step) error {
		sv, err := j.Salvage(ctx, "written to while it was replaced: "+string(st.Path),
			salvage.Part{Dir: string(in.Origin), Entries: []snapshot.Entry{{Path: superqode.RelPath(path), Kind: snapshot.File}}})
		if err == nil && (sv == nil || len(sv.LeftOut) > 0) {
			err = fmt.Errorf("%s could not be saved", text.Printable(path))
		}
		if err == nil {
			j.Warn(fmt.Sprintf("%s was written to while it was replaced; what was written is in salvage %s",
				text.Printable(string(st.Path)), sv.ID))
		}
		return err
	})
	if err != nil {
		return superqode.WithHint(fmt.Errorf("clean up after the apply: %w", err),
			"superqode workspace recover --session %s", j.ID)
	}
	failpoint.Hit("apply.cleaned")
	return j.dropIntent()
}

// failed says what happened to an apply that failed.
func (j *Job) failed(err error, reverse bool) error {
	if errors.Is(err, superqode.ErrVerification) {
		return err
	}
	if _, moved := errors.AsType[*swap.MovedError](err); moved {
		return superqode.WithHint(fmt.Errorf("%w; nothing was applied", err), "%s", j.again(reverse))
	}
	return fmt.Errorf("nothing was applied: %w", err)
}

// verifyApplied reads what was written and checks that what was deleted is
// gone.
func (j *Job) verifyApplied(ctx context.Context, view *merge.View, steps []merge.Step) error {
	var changes []merge.Change
	for i := range steps {
		changes = append(changes, steps[i].Change)
	}
	now, err := merge.Look(ctx, string(j.Origin), view.Now.Format, changes)
	if err != nil {
		return fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	var wrong []string
	closed := map[superqode.RelPath]bool{}
	for _, p := range now.Problems {
		closed[p.Path] = errors.Is(p.Err, os.ErrPermission)
	}
	for i := range steps {
		if e := steps[i].Put; e != nil {
			is := now.Now.Find(e.Path)
			same := is != nil && (e.Kind == snapshot.Link || is.Perm&0o777 == e.Perm&0o777)
			if same && closed[e.Path] && e.Perm&0o400 == 0 { // the session removed the permission to read it
				same = is.Kind == e.Kind && is.Size == e.Size
			} else if same {
				same = is.SameContent(e)
			}
			if !same {
				wrong = append(wrong, text.Printable(e.Path))
			}
		}
		if e := steps[i].Remove; e != nil {
			if is := now.Now.Find(e.Path); is != nil && is.Kind != snapshot.Dir {
				wrong = append(wrong, text.Printable(e.Path))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return superqode.Errorf(superqode.ErrVerification, "applied, but not as it should be: %s",
		strings.Join(wrong[:min(len(wrong), 5)], ", "))
}
