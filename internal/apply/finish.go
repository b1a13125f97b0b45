package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/swap"
)

// The result of finishing an interrupted apply.
const (
	Finished  = "applied"
	TakenBack = "taken back"
)

// Pending reports whether an apply of the session in that folder is under way,
// or was interrupted.
func Pending(sessionDir string) bool {
	_, err := os.Lstat(IntentPath(sessionDir))
	return err == nil
}

// Finish completes or undoes an interrupted apply: it completes one if
// everything was ready to be moved into place and still can be. It returns the
// result, "" if there was nothing to finish.
func (j *Job) Finish(ctx context.Context) (action string, err error) {
	in, err := readIntent(j.Dir)
	if err != nil || in == nil {
		return "", err
	}
	d, err := swap.Open(string(in.Origin))
	if errors.Is(err, os.ErrNotExist) {
		return "", j.dropIntent() // somebody deleted the origin: there is nothing to finish
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	defer Sweep(j.Dir)
	failpoint.Hit("apply.recovering")
	switch in.Plan.Phase {
	case swap.Staging:
		return TakenBack, errors.Join(d.Discard(in.Plan), j.dropIntent())
	case swap.Committing:
		if cerr := d.Commit(ctx, in.Plan); cerr != nil {
			j.Warn(fmt.Sprintf("the interrupted apply of session %s cannot be finished and is undone: %v", j.ID, cerr))
			return TakenBack, j.undoIntent(ctx, d, in)
		}
		if err := j.saveIntent(in, swap.Cleaning); err != nil {
			return "", err
		}
		return Finished, j.cleanIntent(ctx, d, in)
	case swap.Undoing:
		return TakenBack, j.undoIntent(ctx, d, in)
	}
	if in.Undone {
		return TakenBack, j.cleanIntent(ctx, d, in)
	}
	return Finished, j.cleanIntent(ctx, d, in)
}

// Sweep deletes the scratch folders of a killed apply.
func Sweep(sessionDir string) {
	names, _ := state.Names(sessionDir)
	for _, n := range names {
		if strings.HasPrefix(n, merge.Prefix) {
			_ = os.RemoveAll(sessionDir + "/" + n) // nothing depends on them
		}
	}
}
