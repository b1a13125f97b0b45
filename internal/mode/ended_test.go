package mode_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-2d964004/superqode/internal/mode"
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
		"KeepBase":      func() error { return mode.KeepBase(ctx, new(site.Site), nil) },
		"SaveLarge":     func() error { return mode.SaveLarge(ctx, new(site.Site), nil, nil) },
		"TakeAway":      func() error { return mode.TakeAway(ctx, new(site.Site), false) },
		"FreeArtifacts": func() error { return mode.FreeArtifacts(ctx, new(site.Site)) },
		"MoveOut":       func() error { return mode.MoveOut(ctx, new(site.Site), nil) },
	} {
		if err := call(); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
