package frozen

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Look returns what an overlay of base shows, from its upper folder alone: that takes
// the time of what was written. What differs from base can be read below the result's
// Root, the upper folder. Nothing is asked of opt but Format, Skip, Known and Contents.
func Look(ctx context.Context, upper string, base *snapshot.Snapshot, opt snapshot.ScanOptions) (*snapshot.Snapshot, []snapshot.Problem, error) {
	opt.Previous = nil
	up, problems, err := snapshot.Scan(ctx, upper, opt)
	if err != nil {
		return nil, nil, err
	}
	if len(up.Entries) == 0 {
		out := up.With(base.Entries)
		out.Gits = up.Gits
		return out, problems, nil
	}
	out := up.With(make([]snapshot.Entry, 0, len(base.Entries)+len(up.Entries)))
	out.Gits = up.Gits
	at, err := openLayer(upper)
	if err != nil {
		return nil, nil, err
	}
	defer at.Close()
	hidden := map[superqode.RelPath]bool{} // below them nothing of the base shows
	for old, e := range snapshot.Join(base.Entries, up.Entries) {
		switch {
		case e == nil:
			if !covers(hidden, old.Path) {
				out.Entries = append(out.Entries, *old)
			}
		case isWhiteout(e):
			hidden[e.Path] = true
		default:
			if old != nil && old.Kind == snapshot.Dir && (e.Kind != snapshot.Dir || at.isOpaque(e.Path)) {
				hidden[e.Path] = true
			}
			out.Entries = append(out.Entries, *e)
		}
	}
	return out, problems, nil
}

func covers(hidden map[superqode.RelPath]bool, path superqode.RelPath) bool {
	if len(hidden) == 0 {
		return false
	}
	for p := path.Parent(); p != ""; p = p.Parent() {
		if hidden[p] {
			return true
		}
	}
	return false
}

// isWhiteout reports whether an entry of an upper folder stands for a name that was
// deleted.
func isWhiteout(e *snapshot.Entry) bool { return e.Kind == snapshot.Other && e.Link == "char 0:0" }

// isOpaque reports whether a folder hides what is below it.
func (l *layer) isOpaque(path superqode.RelPath) bool {
	buf := make([]byte, 1)
	dir, err := l.folder(path)
	if err != nil {
		return false
	}
	n, err := unix.Getxattr(dir, opaque, buf)
	return err == nil && n == 1 && buf[0] == 'y'
}
