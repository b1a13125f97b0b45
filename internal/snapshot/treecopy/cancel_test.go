package treecopy

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// A context that ended before the call ends the call, however little there is to
// do.
func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	dir := snaptest.Tree(t, map[string]string{"a": "1"})
	full := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	for _, s := range []*snapshot.Snapshot{full, full.With(nil)} {
		for name, call := range map[string]func() error{
			"copy":        func() error { _, _, err := Copy(ctx, s, t.TempDir(), CopyOptions{}); return err },
			"materialize": func() error { _, err := Materialize(ctx, s, nil, t.TempDir(), MaterializeOptions{}); return err },
			"erase":       func() error { return Erase(ctx, dir, s.Entries) },
			"adjust":      func() error { return Adjust(ctx, dir, s.Entries) },
			"move out":    func() error { return MoveOut(ctx, dir, t.TempDir(), s.Format, s.Entries) },
		} {
			if err := call(); !errors.Is(err, why) {
				t.Errorf("%s of %d: %v", name, len(s.Entries), err)
			}
		}
	}
	snaptest.Same(t, full, snaptest.Scan(t, dir, snapshot.ScanOptions{}), true)
}
