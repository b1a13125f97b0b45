package snapshot_test

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
	s := snaptest.Scan(t, dir, snapshot.ScanOptions{})
	for name, call := range map[string]func() error{
		"scan": func() error {
			_, _, err := snapshot.Scan(ctx, dir, snapshot.ScanOptions{Format: snapshot.SHA1})
			return err
		},
		"hash nothing": func() error { _, err := snapshot.HashMissing(ctx, s); return err },
		"hash": func() error {
			_, err := snapshot.HashMissing(ctx, snaptest.Scan(t, dir, snapshot.ScanOptions{Contents: snapshot.StatOnly}))
			return err
		},
		"settle": func() error { return snaptest.Age(t, s).Settle(ctx) },
	} {
		if err := call(); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
