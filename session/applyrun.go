package session

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
	"github.com/seed-2d964004/superqode/home"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/swap"
	"github.com/seed-2d964004/superqode/merge"
	"github.com/seed-2d964004/superqode/salvage"
	"github.com/seed-2d964004/superqode/snapshot"
)

// applyIntent is sessions/<id>/apply.json: it stands from before the first file
// is written in the origin until nothing of the apply is left there but its
// result. Its plan knows every path, what was there, and where old and new are
// while they change places; so whoever finds the file can go on, or back.
type applyIntent struct {
	SchemaVersion int                 `json:"schema_version"`
	SessionID     superqode.SessionID `json:"session_id"`
	Origin        HostPath            `json:"origin"`
	StartedAt     time.Time           `json:"started_at"`
	Salvage       string              `json:"salvage"` // of what is overwritten and deleted
	Undone        bool                `json:"undone"`  // it was taken back
	Plan          *swap.Plan          `json:"plan"`
}

func intentPath(sessionDir string) string { return filepath.Join(sessionDir, "apply.json") }

func (s *Session) saveIntent(in *applyIntent, phase swap.Phase) error {
	in.Plan.Phase = phase
	return atomicfile.WriteJSON(intentPath(s.dir), in)
}

// dropIntent ends an apply: from now there is nothing to finish.
func (s *Session) dropIntent() error {
	if err := os.Remove(intentPath(s.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(s.dir)
}

// readIntent returns nil where no apply is under way.
func readIntent(sessionDir string) (*applyIntent, error) {
	data, err := atomicfile.Read(intentPath(sessionDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in applyIntent
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: apply.json: %w", home.ErrBroken, err)
	}
	switch {
	case in.SchemaVersion > home.SchemaVersion:
		return nil, fmt.Errorf("%w: apply.json has schema_version %d, this superqode knows %d", home.ErrBroken, in.SchemaVersion, home.SchemaVersion)
	case in.Plan == nil || in.SessionID.String() != filepath.Base(sessionDir):
		return nil, fmt.Errorf("%w: apply.json is not that of session %s", home.ErrBroken, filepath.Base(sessionDir))
	}
	if err := in.Plan.Check(); err != nil {
		return nil, fmt.Errorf("%w: apply.json: %w", home.ErrBroken, err)
	}
	return &in, nil
}

// carryOut does what was decided. What is overwritten or deleted is salvaged
// first; then every new file is written beside its place, which is all that can
// fail for want of space; then they change places.
func (s *Session) carryOut(ctx context.Context, view *merge.View, steps []merge.Step, b *merge.Bench, opt ApplyOptions, res *artifacts.Applied) error {
	keep, err := filepath.Rel(string(s.rec.Origin), realPrefix(opt.Stay))
	if opt.Stay == "" || err != nil || strings.HasPrefix(keep, "..") {
		keep = ""
	}
	in := &applyIntent{SchemaVersion: home.SchemaVersion, SessionID: s.rec.ID, Origin: s.rec.Origin, StartedAt: s.m.now().UTC(), Plan: merge.Plan(view, steps, keep)}
	if in.Salvage, err = s.salvageOverwritten(ctx, view, in.Plan); err != nil {
		return err
	}
	failpoint.Hit("apply.salvaged")
	if err := s.journal().Write("apply", map[string]string{"paths": fmt.Sprint(len(res.Applied)), "salvage": in.Salvage}); err != nil {
		return err
	}
	d, err := swap.Open(string(s.rec.Origin))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := s.runIntent(ctx, d, in, b); err != nil {
		return s.applyFailed(err, in)
	}
	res.Salvage = in.Salvage
	verr := s.verifyApplied(ctx, view, steps)
	failpoint.Hit("apply.verified")
	err = errors.Join(s.cleanIntent(ctx, d, in), s.journal().Write("applied", nil))
	return errors.Join(verr, err)
}

// salvageOverwritten keeps what the plan overwrites and deletes and returns the
// salvage's id.
func (s *Session) salvageOverwritten(ctx context.Context, view *merge.View, plan *swap.Plan) (string, error) {
	var over []snapshot.Entry
	for i := range plan.Steps {
		st := &plan.Steps[i]
		if st.Op == swap.Remove || st.Op == swap.Put && st.Was != nil {
			over = append(over, *view.Now.Find(string(st.Path)))
		}
	}
	sv, err := s.salvage(ctx, "apply", salvage.Part{Dir: string(s.rec.Origin), Entries: over})
	if err != nil || sv == nil {
		return "", err
	}
	if len(sv.LeftOut) > 0 {
		return "", fmt.Errorf("nothing was applied: %s can not be kept before it is overwritten: %s", visible(sv.LeftOut[0].Path), sv.LeftOut[0].Reason)
	}
	return sv.ID, nil
}

// runIntent takes a plan from its beginning to the point where everything is in
// its place. On an error everything is as it was, unless the error says
// otherwise.
func (s *Session) runIntent(ctx context.Context, d *swap.Dir, in *applyIntent, b *merge.Bench) error {
	if err := s.saveIntent(in, swap.Staging); err != nil {
		return err
	}
	failpoint.Hit("apply.begun")
	err := d.Stage(ctx, in.Plan, func(_ context.Context, st *swap.Step, w io.Writer) error { return b.Fill(st.Data, w) })
	if err != nil {
		return errors.Join(err, s.dropIntent())
	}
	failpoint.Hit("apply.staged")
	if err := s.saveIntent(in, swap.Committing); err != nil {
		return errors.Join(err, d.Discard(in.Plan), s.dropIntent())
	}
	failpoint.Hit("apply.committing")
	err = d.Commit(ctx, in.Plan)
	if err == nil {
		failpoint.Hit("apply.committed")
		err = s.saveIntent(in, swap.Cleaning)
	}
	if err != nil {
		return errors.Join(err, s.undoIntent(ctx, d, in))
	}
	failpoint.Hit("apply.cleaning")
	return nil
}

// undoIntent takes back what was done of a plan. That the phase could not be
// written down is no reason to stop: who finds the old one goes forward, and
// that is whole, too.
func (s *Session) undoIntent(ctx context.Context, d *swap.Dir, in *applyIntent) error {
	_ = s.saveIntent(in, swap.Undoing)
	failpoint.Hit("apply.undoing")
	left, err := d.Undo(in.Plan)
	for _, l := range left {
		s.m.cfg.Warn(fmt.Sprintf("%s was changed while the apply was taken back, and left as it is; what it held before is in salvage %s", visible(l.Path), in.Salvage))
	}
	if err != nil {
		return superqode.WithHint(fmt.Errorf("%w: the apply could not be taken back whole: %w", superqode.ErrVerification, err), "superqode workspace recover --session %s", s.rec.ID)
	}
	failpoint.Hit("apply.undone")
	in.Undone = true
	_ = s.saveIntent(in, swap.Cleaning)
	return s.cleanIntent(context.WithoutCancel(ctx), d, in)
}

// cleanIntent deletes what is left beside the files and ends the apply.
func (s *Session) cleanIntent(ctx context.Context, d *swap.Dir, in *applyIntent) error {
	err := d.Clean(in.Plan, func(path string, st *swap.Step) error {
		sv, err := s.salvage(ctx, "written to while it was replaced: "+string(st.Path), salvage.Part{Dir: string(in.Origin), Entries: []snapshot.Entry{{Path: path, Kind: snapshot.File}}})
		if err == nil && (sv == nil || len(sv.LeftOut) > 0) {
			err = fmt.Errorf("%s can not be kept", visible(path))
		}
		if err == nil {
			s.m.cfg.Warn(fmt.Sprintf("%s was written to while it was replaced; what was written is in salvage %s", visible(string(st.Path)), sv.ID))
		}
		return err
	})
	if err != nil {
		return superqode.WithHint(fmt.Errorf("clear up after the apply: %w", err), "superqode workspace recover --session %s", s.rec.ID)
	}
	failpoint.Hit("apply.cleaned")
	return s.dropIntent()
}

// applyFailed says what became of an apply that was given up.
func (s *Session) applyFailed(err error, in *applyIntent) error {
	if errors.Is(err, superqode.ErrVerification) {
		return err
	}
	if _, moved := errors.AsType[*swap.MovedError](err); moved {
		return superqode.WithHint(fmt.Errorf("%w; nothing was applied", err), "superqode workspace apply --session %s", s.rec.ID)
	}
	return fmt.Errorf("nothing was applied: %w", err)
}

// verifyApplied reads again what was written and looks whether what was deleted
// is gone.
func (s *Session) verifyApplied(ctx context.Context, view *merge.View, steps []merge.Step) error {
	var changes []merge.Change
	for i := range steps {
		changes = append(changes, steps[i].Change)
	}
	now, err := merge.Look(ctx, string(s.rec.Origin), view.Now.Format, changes)
	if err != nil {
		return fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	var wrong []string
	closed := map[string]bool{}
	for _, p := range now.Problems {
		closed[p.Path] = errors.Is(p.Err, os.ErrPermission)
	}
	for i := range steps {
		if e := steps[i].Put; e != nil {
			is := now.Now.Find(e.Path)
			same := is != nil && (e.Kind == snapshot.Link || is.Perm&0o777 == e.Perm&0o777)
			if same && closed[e.Path] && e.Perm&0o400 == 0 { // the session took the right to read it
				same = is.Kind == e.Kind && is.Size == e.Size
			} else if same {
				same = merge.SameData(is, e)
			}
			if !same {
				wrong = append(wrong, visible(e.Path))
			}
		}
		if e := steps[i].Remove; e != nil {
			if is := now.Now.Find(e.Path); is != nil && is.Kind != snapshot.Dir {
				wrong = append(wrong, visible(e.Path))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return superqode.Errorf(superqode.ErrVerification, "applied, but not as it should be: %s", strings.Join(wrong[:min(len(wrong), 5)], ", "))
}
