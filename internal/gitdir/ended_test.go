package gitdir_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/site"
)

// TestEndedBefore holds that a context that has ended is an error, also where there is
// nothing to do.
func TestEndedBefore(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for name, call := range map[string]func() error{
		"KeepCommits": func() error { _, err := gitdir.KeepCommits(ctx, new(site.Site)); return err },
		"Make":        func() error { return gitdir.Make(ctx, new(site.Site)) },
	} {
		if err := call(); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
