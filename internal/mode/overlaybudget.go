package mode

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// overlayBudget is how many bytes of ignored files an overlay brings along where a copy
// takes room.
const overlayBudget = 2 << 30

// leaveIgnored returns the entries of the origin that do not come along into an overlay:
// ignored files that the caller leaves out and, beyond the budget, the biggest of those
// that neither the caller nor .worktreeinclude names.
func leaveIgnored(ctx context.Context, s *site.Site, opt Options, now *snapshot.Snapshot) (map[superqode.RelPath]bool, error) {
	budget := cmp.Or(opt.IgnoredBudget, overlayBudget)
	_, all := now.Count()
	if all <= budget && len(opt.LeaveOut) == 0 || s.Source.Repo == nil {
		return nil, nil
	}
	index, err := originIndex(s)
	if err != nil {
		return nil, err
	}
	tree, err := linked.IgnoreTree(ctx, s.Source.Repo, s.Source.Top)
	if err != nil {
		return nil, err
	}
	sizes, total := ignoredSizes(now, linked.IgnoredIn(now, index, tree))
	if opt.IgnoredBudget == 0 && total > budget && treecopy.CanClone(s.Source.Top, s.Folder) {
		budget = math.MaxInt64
	}
	unwanted := func(superqode.RelPath) bool { return false }
	if len(opt.LeaveOut) > 0 {
		unwanted = excluded(opt.LeaveOut)
	}
	named := linked.Includes(s.Source.Top, opt.Include, false)
	left := map[superqode.RelPath]bool{}
	for _, f := range sizes {
		out := unwanted(f.name)
		if !out && total <= budget {
			continue
		}
		size, whole := leaveBelow(left, now, f.name, func(e *snapshot.Entry) bool {
			return !out && named != nil && named(e.Path, e.Kind == snapshot.Dir)
		})
		if total -= size; size == 0 || out {
			continue
		}
		what := text.Printable(f.name)
		if !whole {
			what = "most of " + what
		}
		s.Warn(fmt.Sprintf("%s (%s), which git ignores, stayed behind: --ignored-budget %dM brings it along, --include PATTERN a part of it",
			what, text.Size(size), (total+size)>>20+1))
	}
	return left, nil
}

// leaveBelow marks the entries at and below top that are not named, nor lie below or
// above what is, and returns their size and whether they are all.
func leaveBelow(left map[superqode.RelPath]bool, sn *snapshot.Snapshot, top superqode.RelPath, named func(*snapshot.Entry) bool) (size int64, whole bool) {
	entries, keep := sn.Below(top), pathSet{}
	if e := sn.Find(top); e != nil {
		entries = append([]snapshot.Entry{*e}, entries...)
	}
	above := pathSet{}
	for i := range entries {
		if e := &entries[i]; keep.covers(e.Path) || named(e) {
			keep[e.Path] = true
			for p := e.Path.Parent(); p != "" && !above[p]; p = p.Parent() {
				above[p] = true
			}
		}
	}
	for i := range entries {
		if e := &entries[i]; !keep[e.Path] && !above[e.Path] {
			left[e.Path] = true
			size += e.Size
		}
	}
	return size, len(keep) == 0
}
