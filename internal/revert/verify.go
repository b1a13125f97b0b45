package revert

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Verified is the result of comparing a directory with its base.
type Verified struct {
	Digest      superqode.Digest // of what is there now; zero if some of it is unknown
	Differences []string         // one line each, sorted by path; none if the directory is as in the base
}

// Verify compares the directory with the base and changes nothing. within
// limits it to some paths; then the digest covers only these.
func (t *Tree) Verify(ctx context.Context, how Method, within []superqode.RelPath) (*Verified, error) {
	now, problems, err := t.Scan(ctx, how)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", t.Dir, err)
	}
	return t.judge(now, problems, within)
}

// verifyApplied is Verify after a plan was applied: it looks at the folders in which the
// plan changed something. Of the others the look that the plan was made from is the
// proof, as it is for all where there is nothing to do.
func (t *Tree) verifyApplied(ctx context.Context, p *Plan, within []superqode.RelPath) (*Verified, error) {
	look := map[superqode.RelPath]bool{"": true}
	for _, list := range [][]snapshot.Entry{p.Write, p.Adjust, p.Remove} {
		for i := range list {
			for dir := list[i].Path; !look[dir]; dir = dir.Parent() {
				look[dir] = true
			}
		}
	}
	part := *t
	part.Skip = func(path superqode.RelPath, kind snapshot.Kind) bool {
		return kind == snapshot.Dir && !look[path] || t.Skip != nil && t.Skip(path, kind)
	}
	now, problems, err := part.Scan(ctx, Stat)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", t.Dir, err)
	}
	for _, e := range p.Now.Entries {
		if !look[e.Path.Parent()] || e.Kind == snapshot.Dir && !look[e.Path] {
			now.Entries = append(now.Entries, e)
		}
	}
	slices.SortStableFunc(now.Entries, snapshot.ByPath)
	now.Entries = slices.CompactFunc(now.Entries, func(a, b snapshot.Entry) bool { return a.Path == b.Path })
	return t.judge(now, problems, within)
}

// judge compares the result of a scan with the base.
func (t *Tree) judge(now *snapshot.Snapshot, problems []snapshot.Problem, within []superqode.RelPath) (*Verified, error) {
	v := &Verified{Differences: []string{}}
	told := map[superqode.RelPath]bool{}
	p := t.Plan(now, within)
	for _, name := range slices.Concat(p.Paths(), p.Lost) {
		path := superqode.RelPath(name)
		told[path] = true
		v.Differences = append(v.Differences, Describe(t.Base.Find(path), now.Find(path)))
	}
	for _, q := range problems {
		if old := t.Base.Find(q.Path); !told[q.Path] && inside(q.Path, within) && (old == nil || !old.ID.IsZero() || old.Kind == snapshot.Dir && len(t.Base.Below(q.Path)) > 0) {
			v.Differences = append(v.Differences, text.Printable(q.Path)+": cannot be read: "+q.Err.Error())
		}
	}
	slices.Sort(v.Differences)
	if len(v.Differences) > 0 {
		return v, nil
	}
	return v, t.prove(v, now, within)
}

// prove compares the digests, which cover every field of every entry and so
// decide.
func (t *Tree) prove(v *Verified, now *snapshot.Snapshot, within []superqode.RelPath) error {
	was, is := part(t.Base, within), part(now, within)
	if slices.ContainsFunc(was.Entries, func(e snapshot.Entry) bool { return e.Kind == snapshot.File && e.ID.IsZero() }) {
		return nil // compared entry by entry, but what was never read has no digest
	}
	want, err := was.Digest()
	if err != nil {
		return err
	}
	if v.Digest, err = is.Digest(); err != nil {
		return err
	}
	if v.Digest != want {
		v.Differences = append(v.Differences, fmt.Sprintf("the digest is %s and not %s", v.Digest, want))
	}
	return nil
}

func part(s *snapshot.Snapshot, within []superqode.RelPath) *snapshot.Snapshot {
	if len(within) == 0 {
		return s
	}
	return s.Only(func(e *snapshot.Entry) bool { return inside(e.Path, within) })
}

// Describe says in one line how a path differs; nil is a missing entry.
func Describe(old, now *snapshot.Entry) string {
	switch {
	case old == nil && now == nil:
		return "nothing"
	case old == nil:
		return text.Printable(now.Path) + ": created"
	case now == nil:
		return text.Printable(old.Path) + ": deleted"
	}
	path := text.Printable(old.Path)
	switch {
	case old.Kind != now.Kind:
		return path + ": type changed"
	case !same(old, now):
		return path + ": modified"
	case old.Perm != now.Perm:
		return fmt.Sprintf("%s: mode changed from %04o to %04o", path, old.Perm, now.Perm)
	}
	return path + ": changed"
}
