package layers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// opAllow is how `guard allow` reaches a supervisor; args: an allowance.
const opAllow = "guard.allow"

// allowance is one operation that a person lets through once. allowed.jsonl in
// the session's folder has a line for each, and one more when it is used up.
type allowance struct {
	SchemaVersion int             `json:"schema_version"`
	ID            string          `json:"id"`
	Operation     guard.Operation `json:"operation"`
	At            time.Time       `json:"at"`
	UsedAt        *time.Time      `json:"used_at,omitempty"`
	Command       []string        `json:"command,omitempty"` // that used it
}

// allowances are the ids that a supervisor may let through: those that were
// there before the program was started, and those that a person sent it. What
// the program itself writes into the file is in no supervisor's memory.
type allowances struct{ known []string }

func allowedPath(dir string) string { return filepath.Join(dir, "allowed.jsonl") }

func readAllowances(dir string) (allowances, error) {
	list, err := openAllowances(dir)
	var a allowances
	for _, l := range list {
		a.known = append(a.known, l.ID)
	}
	return a, err
}

// openAllowances returns the allowances that are not used up.
func openAllowances(dir string) ([]allowance, error) {
	lines, _, err := ledger.Read[allowance](allowedPath(dir))
	var list []allowance
	for _, a := range lines {
		switch {
		case a.ID == "":
		case a.UsedAt != nil:
			list = slices.DeleteFunc(list, func(b allowance) bool { return b.ID == a.ID })
		default:
			list = append(list, a)
		}
	}
	return list, err
}

// add records an allowance. Every supervisor of the session hears of it; the
// line is written once.
func (a *allowances) add(ctx context.Context, dir string, one allowance) (err error) {
	if one.ID == "" || one.UsedAt != nil {
		return superqode.Errorf(superqode.ErrUsage, "not an allowance")
	}
	if _, err := guard.NewPolicy([]string{string(one.Operation)}, nil); err != nil {
		return err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "allowed.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	a.known = append(a.known, one.ID)
	list, err := openAllowances(dir)
	if err != nil || slices.ContainsFunc(list, func(b allowance) bool { return b.ID == one.ID }) {
		return err
	}
	return appendAllowance(dir, one)
}

func appendAllowance(dir string, one allowance) error {
	if err := atomicfile.ClearWay(allowedPath(dir)); err != nil {
		return err
	}
	return ledger.AppendSynced(allowedPath(dir), one)
}

// use takes an allowance for an attempt, under a lock, so that it serves once
// whichever layer and whichever supervisor asks.
func (a *allowances) use(ctx context.Context, dir string, at guard.Attempt) (used bool, err error) {
	if len(a.known) == 0 {
		return false, nil
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(dir, "allowed.lock"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	list, err := openAllowances(dir)
	if err != nil {
		return false, err
	}
	for _, one := range list {
		i := slices.Index(a.known, one.ID)
		if i < 0 || one.Operation != at.Operation &&
			!strings.HasPrefix(string(at.Operation), string(one.Operation)+".") {
			continue
		}
		now := time.Now().UTC()
		one.UsedAt, one.Command = &now, at.Command
		if err := appendAllowance(dir, one); err != nil {
			return false, err
		}
		a.known = slices.Delete(a.known, i, i+1)
		return true, nil
	}
	return false, nil
}

// AllowOnce lets one operation of a session's program through, once. It is for a
// person: from inside the session it is refused with an error that wraps
// superqode.ErrDenied. An unknown operation wraps ErrUsage, a session that has ended or
// that runs no program ErrNotFound.
func AllowOnce(ctx context.Context, l state.Listed, op guard.Operation, now time.Time) error {
	if l.State.Ended() {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended", l.ID)
	}
	if _, err := guard.NewPolicy([]string{string(op)}, nil); err != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "unknown operation %q", op),
			"superqode guard status --operations")
	}
	supervisors, err := supervisor.Of(l.Dir)
	if err != nil {
		return err
	}
	one := allowance{SchemaVersion: state.SchemaVersion, ID: rand.Text(), Operation: op, At: now.UTC()}
	for _, sup := range supervisors {
		if supervisor.Descends(os.Getpid(), sup.PID) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
				"this runs inside session %s, and only a person outside of it can let something through", l.ID),
				"ask the user")
		}
	}
	for _, sup := range supervisors {
		if err := supervisor.CallSocket(ctx, sup.Path, opAllow, one, &struct{}{}); err != nil {
			return fmt.Errorf("report to the session's supervisor: %w", err)
		}
	}
	switch {
	case len(supervisors) > 0:
		return nil
	case l.Owned:
		return superqode.Errorf(superqode.ErrNotFound, "session %s runs no program that could be let through", l.ID)
	}
	return (&allowances{}).add(ctx, l.Dir, one)
}
