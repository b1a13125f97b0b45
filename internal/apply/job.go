package apply

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Job is what an apply has to know about the session whose changes it brings
// into the origin.
type Job struct {
	ID      superqode.SessionID
	Agent   superqode.AgentID // the agent to report the changes as
	Dir     string            // the session's folder: the intent, and the folders of its scratch folders
	Origin  superqode.HostPath
	Store   *store.Store // nil, like git, if an apply is only finished
	Git     *git.Git
	Now     func() time.Time
	Salvage func(ctx context.Context, why string, parts ...salvage.Part) (*salvage.Record, error)
	Warn    func(line string)
}

// Options says which of a session's changes to bring into the origin.
type Options struct {
	// relative to the origin's root, taken literally; a folder covers what is below it; none: all
	Paths   []string
	Hunks   []merge.HunkRange // only these hunks of the diff of Paths; none: all
	Agent   superqode.AgentID // only what this agent changed; zero: all
	Check   bool              // decide only
	Reverse bool              // take the changes out again
	// an absolute path: this folder is not removed even if it becomes empty, because the caller is in it
	Stay string

	// what claims hold back; nil: nothing
	Refuse func(ctx context.Context, list []merge.Change) ([]artifacts.ApplyConflict, error)
}

// Error says that changes conflict with the origin, which was not touched.
// It wraps superqode.ErrConflict.
type Error struct {
	Conflicts []artifacts.ApplyConflict
	Reverse   bool // the changes were to be taken out of the origin
}

// Error counts the conflicts; each has a line of its own in Conflicts.
func (e *Error) Error() string {
	word := "applied"
	if e.Reverse {
		word = "undone"
	}
	return text.Plural(len(e.Conflicts), "conflict") + "; nothing was " + word
}

// Unwrap returns superqode.ErrConflict.
func (*Error) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths that conflict.
func (e *Error) ErrorPaths() []string {
	paths := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		paths[i] = c.Path.String()
	}
	return paths
}

// Apply brings the difference of two states into the origin: everything that
// was asked for or, with an error that wraps ErrConflict, nothing. Nobody else
// may do that, or work in the origin itself, at the same time.
//
// The result is not nil once it is decided what happens.
func (j *Job) Apply(ctx context.Context, e merge.Ends, opt Options) (res *artifacts.Applied, err error) {
	b, err := merge.Open(ctx, merge.Options{Git: j.Git, Store: j.Store, Dir: j.Dir, Origin: string(j.Origin)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	list, err := j.wanted(ctx, &e, b, opt)
	if err != nil {
		return nil, err
	}
	var refused []artifacts.ApplyConflict
	if opt.Refuse != nil {
		if refused, err = opt.Refuse(ctx, list); err != nil {
			return nil, err
		}
	}
	view, err := merge.Look(ctx, string(j.Origin), b.Format, list)
	if err == nil {
		err = view.Err()
	}
	if err != nil {
		return nil, err
	}
	d := &merge.Decider{Now: view.Now, Merge: b.Merge(ctx), Similar: b.Similar}
	if opt.Reverse {
		d.Theirs = "undo"
	}
	steps, err := d.Decide(list)
	if err != nil {
		return nil, err
	}
	res = j.outcome(steps, e.Left)
	res.Checked, res.Conflicts = opt.Check, append(refused, res.Conflicts...)
	switch {
	case len(res.Conflicts) > 0:
		return res, j.conflictError(&Error{res.Conflicts, opt.Reverse})
	case opt.Check || len(res.Applied) == 0:
		return res, nil
	}
	return res, j.carryOut(ctx, view, steps, b, opt, res)
}

// wanted returns the changes that were asked for.
func (j *Job) wanted(ctx context.Context, e *merge.Ends, b *merge.Scratch, opt Options) ([]merge.Change, error) {
	list, err := e.Pairs(ctx, j.Store, opt.Paths)
	if err != nil {
		return nil, err
	}
	if err := j.checkPaths(list, opt.Paths); err != nil {
		return nil, err
	}
	if len(opt.Hunks) > 0 {
		if list, err = b.OnlyHunks(ctx, e, opt.Paths, opt.Hunks); err != nil {
			return nil, err
		}
	}
	list = e.WithoutOwn(list)
	for i := range list {
		if c := &list[i]; opt.Reverse {
			c.Old, c.New, c.Added, c.Removed = c.New, c.Old, c.Removed, c.Added
		}
	}
	return list, nil
}

// checkPaths refuses a path without any change.
func (j *Job) checkPaths(list []merge.Change, paths []string) error {
	for _, p := range paths {
		one := []string{p}
		if !slices.ContainsFunc(list, func(c merge.Change) bool {
			return c.New != nil && merge.InPaths(c.New.Path, one) || c.Old != nil && merge.InPaths(c.Old.Path, one)
		}) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s did not change %s", j.ID,
				text.Printable(p)), "superqode workspace changes --session %s", j.ID)
		}
	}
	return nil
}

// outcome sums up the steps.
func (j *Job) outcome(steps []merge.Step, left []string) *artifacts.Applied {
	res := &artifacts.Applied{LeftOut: left}
	for i := range steps {
		switch st := &steps[i]; {
		case st.Conflict != nil:
			res.Conflicts = append(res.Conflicts,
				artifacts.ApplyConflict{Path: st.Conflict.Path, Kind: string(st.Conflict.Kind), Message: st.Conflict.Message})
		case st.Done():
			res.Already = append(res.Already, j.tell(st))
		default:
			res.Applied = append(res.Applied, j.tell(st))
		}
	}
	return res
}

// tell describes a step as the session's change.
func (j *Job) tell(st *merge.Step) artifacts.AppliedPath {
	p := artifacts.AppliedPath{Merged: st.Merged}
	p.Path = st.Path()
	p.LinesAdded, p.LinesRemoved, p.Binary, p.Agent = st.Added, st.Removed, st.Binary, j.Agent
	if st.Old != nil {
		p.OldMode = st.Old.Mode()
	}
	if st.New != nil {
		p.NewMode = st.New.Mode()
	}
	switch {
	case st.Old == nil:
		p.Type = superqode.ChangeCreated
	case st.New == nil:
		p.Type = superqode.ChangeDeleted
	case st.Renamed():
		p.Type = superqode.ChangeRenamed
		p.OldPath = st.Old.Path
	case st.Old.Kind != st.New.Kind:
		p.Type = superqode.ChangeKind
	case st.Old.SameContent(st.New):
		p.Type = superqode.ChangeMode
	default:
		p.Type = superqode.ChangeModified
	}
	return p
}

func (j *Job) conflictError(e *Error) error {
	return superqode.WithHint(e, "superqode workspace diff --session %s -- PATH shows what the session did there; the others: %s PATH…",
		j.ID, j.again(e.Reverse))
}

// again is the command that does the same once more.
func (j *Job) again(reverse bool) string {
	if reverse {
		return "superqode undo --session " + j.ID.String()
	}
	return "superqode workspace apply --session " + j.ID.String()
}
