package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Apply carries out a plan. It leaves alone what has changed since the plan was
// made, does everything else, and returns a *snapshot.MovedError, which wraps
// superqode.ErrConflict and names these paths; the caller looks again. It
// follows no link. When Apply returns nil, or one of these, or a *LostError,
// what was done survives a power cut.
func (t *Tree) Apply(ctx context.Context, p *Plan) error {
	if err := failpoint.Err("revert.apply"); err != nil {
		return err
	}
	erased := treecopy.Erase(ctx, t.Dir, p.Remove)
	if err := hard(erased); err != nil {
		return err
	}
	if err := failpoint.Err("revert.erased"); err != nil {
		return err
	}
	lost, written := t.materialize(ctx, p)
	if err := hard(written); err != nil {
		return err
	}
	if err := failpoint.Err("revert.written"); err != nil {
		return err
	}
	if err := treecopy.Adjust(ctx, t.Dir, t.adjustments(p)); err != nil {
		return err
	}
	failpoint.Hit("revert.adjusted")
	if len(p.Write) > 0 {
		if err := treecopy.Sync(t.Dir); err != nil {
			return err
		}
	}
	if err := failpoint.Err("revert.applied"); err != nil {
		return err
	}
	if moved := errors.Join(erased, written); moved != nil {
		return moved
	}
	if lost = append(lost, p.spared...); len(lost) > 0 {
		return &LostError{lost}
	}
	return nil
}

// hard returns an error that is more than a path that moved.
func hard(err error) error {
	if errors.Is(err, superqode.ErrConflict) {
		return nil
	}
	return err
}

// LostError names what a plan could not restore because its contents are lost
// or damaged, or because restoring it needs more rights. Everything else was
// done.
type LostError struct{ Problems []snapshot.Problem }

// Error describes the first.
func (e *LostError) Error() string {
	if n := len(e.Problems); n > 1 {
		return fmt.Sprintf("%v, and %d more", e.Problems[0], n-1)
	}
	return e.Problems[0].Error()
}

// Unwrap returns superqode.ErrVerification.
func (*LostError) Unwrap() error { return superqode.ErrVerification }

// materialize writes what is missing or different, with the folders above it.
func (t *Tree) materialize(ctx context.Context, p *Plan) (lost []snapshot.Problem, err error) {
	if len(p.Write) == 0 {
		return nil, nil
	}
	removed := map[superqode.RelPath]bool{}
	for i := range p.Remove {
		removed[p.Remove[i].Path] = true
	}
	now := &snapshot.Snapshot{Root: t.Dir, Format: t.Base.Format}
	for i := range p.Write {
		if e := p.Now.Find(p.Write[i].Path); e != nil && !removed[e.Path] {
			now.Entries = append(now.Entries, *e)
		}
	}
	wanted := &snapshot.Snapshot{Root: t.Dir, Format: t.Base.Format, Entries: withFolders(p.Write, t.folder(p.Now))}
	return treecopy.Materialize(ctx, wanted, t.Store, t.Dir, treecopy.MaterializeOptions{
		Replace: true, Now: now, HardLink: p.hardLink, Aside: t.Aside, Special: true, Partial: true,
	})
}

// folder returns what a folder has to be in the end: as in the base, or as it
// is.
func (t *Tree) folder(now *snapshot.Snapshot) func(superqode.RelPath) *snapshot.Entry {
	return func(dir superqode.RelPath) *snapshot.Entry {
		if e := t.Base.Find(dir); e != nil && e.Kind == snapshot.Dir {
			return e
		}
		return now.Find(dir)
	}
}

// withFolders adds the folders above entries.
func withFolders(entries []snapshot.Entry, folder func(superqode.RelPath) *snapshot.Entry) []snapshot.Entry {
	out := slices.Clone(entries)
	have := make(map[superqode.RelPath]bool, len(entries))
	for i := range entries {
		have[entries[i].Path] = true
	}
	for i := range entries {
		for dir := entries[i].Path.Parent(); dir != "" && !have[dir]; dir = dir.Parent() {
			have[dir] = true
			if e := folder(dir); e != nil {
				out = append(out, *e)
			}
		}
	}
	slices.SortFunc(out, snapshot.ByPath)
	return out
}

// adjustments are the plan's own and the folders in which something was removed
// or replaced, which changed their times.
func (t *Tree) adjustments(p *Plan) []snapshot.Entry {
	out := slices.Clone(p.Adjust)
	have := make(map[superqode.RelPath]bool, len(out))
	for i := range out {
		have[out[i].Path] = true
	}
	for _, list := range [][]snapshot.Entry{p.Remove, p.Write} {
		for i := range list {
			dir := list[i].Path.Parent()
			if dir == "" || have[dir] {
				continue
			}
			have[dir] = true
			if e := t.Base.Find(dir); e != nil && e.Kind == snapshot.Dir {
				out = append(out, *e)
			}
		}
	}
	slices.SortFunc(out, snapshot.ByPath)
	return out
}

// RestoreOptions says what to restore, and how to prove it.
type RestoreOptions struct {
	Within []superqode.RelPath // only these paths and what is below them; none: all
	How    Method              // "" is Stat
	DryRun bool                // only make the plan
	// Seen is what the caller has just found in the directory, by a scan that
	// trusted stat data; nil: nothing. It saves one scan.
	Seen *Seen
	// Restore calls Keep with each plan before it applies it, to save what it
	// overwrites and removes. nil saves nothing. Keep returns ErrAgain if what
	// it did makes another plan necessary.
	Keep func(ctx context.Context, p *Plan) error
}

// Seen is what a scan found.
type Seen struct {
	Now      *snapshot.Snapshot
	Problems []snapshot.Problem
}

// Restored says what Restore did and what it found afterwards.
type Restored struct {
	Paths       []string // that were not as in the base
	Digest      superqode.Digest
	Verified    bool
	Differences []string // what still differs, one line each
}

// ErrAgain is what RestoreOptions.Keep returns to ask for another plan.
var ErrAgain = errors.New("the directory has to be looked at again")

// errUnsteady is why a path is not restored.
var errUnsteady = errors.New("somebody keeps changing it; it was left alone")

// restoreTries bounds how often Restore makes a new plan because something
// changed meanwhile.
const restoreTries = 5

// fresh is for how long a look is a proof of what nothing was done to.
const fresh = 2 * time.Second

// Restore brings the directory back to the base and then checks it. The error
// is not nil if it could not do so or could not check; Restored says what still
// differs.
func (t *Tree) Restore(ctx context.Context, opt RestoreOptions) (*Restored, error) {
	var res Restored
	var lost *LostError
	verify := func() (*Verified, error) { return t.Verify(ctx, opt.How, opt.Within) }
	for try := 1; ; try++ {
		seen, err := t.firstLook(ctx, opt, try)
		if err != nil {
			return &res, err
		}
		p := t.Plan(seen.Now, opt.Within)
		res.Paths = union(res.Paths, p.Paths())
		if opt.DryRun {
			return &res, nil
		}
		if p.Empty() && try == 1 && opt.How != Full { // that look was the proof
			v, err := t.judge(seen.Now, seen.Problems, opt.Within)
			return res.with(v), err
		}
		if p.Empty() {
			break
		}
		if opt.Keep != nil {
			err := opt.Keep(ctx, p)
			if errors.Is(err, ErrAgain) && try < restoreTries {
				continue
			}
			if err != nil {
				return &res, fmt.Errorf("save what would be overwritten: %w", err)
			}
		}
		err = t.Apply(ctx, p)
		moved, unsteady := errors.AsType[*treecopy.MovedError](err)
		if unsteady && try < restoreTries {
			continue
		}
		if unsteady {
			lost = &LostError{}
			for _, path := range moved.ErrorPaths() {
				lost.Problems = append(lost.Problems, snapshot.Problem{Path: superqode.RelPath(path), Err: errUnsteady})
			}
			break
		}
		if err != nil && !errors.As(err, &lost) {
			return &res, err
		}
		if opt.How != Full && len(seen.Problems) == 0 && time.Since(seen.Now.Taken) < fresh {
			verify = func() (*Verified, error) { return t.verifyApplied(ctx, p, opt.Within) }
		}
		break
	}
	v, err := verify()
	if err == nil && lost != nil {
		v.explain(lost)
	}
	return res.with(v), err
}

// explain adds to the differences why they could not be undone.
func (v *Verified) explain(lost *LostError) {
	for _, p := range lost.Problems {
		name := text.Printable(p.Path) + ": "
		for i, d := range v.Differences {
			if strings.HasPrefix(d, name) {
				v.Differences[i] = d + " (" + p.Err.Error() + ")"
			}
		}
	}
}

// with adds what a later check found; nil is none.
func (r *Restored) with(v *Verified) *Restored {
	if v != nil {
		r.Digest, r.Differences, r.Verified = v.Digest, v.Differences, len(v.Differences) == 0
	}
	return r
}

// firstLook is look, or what the caller has seen.
func (t *Tree) firstLook(ctx context.Context, opt RestoreOptions, try int) (*Seen, error) {
	if opt.Seen != nil && try == 1 && len(opt.Seen.Problems) == 0 {
		more, err := t.readDoubtful(ctx, opt.Seen.Now)
		return &Seen{opt.Seen.Now, more}, err
	}
	now, problems, err := t.look(ctx, Stat)
	return &Seen{now, problems}, err
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
