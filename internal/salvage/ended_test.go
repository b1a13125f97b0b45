package salvage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-2d964004/superqode/internal/salvage"
)

// TestEndedBefore holds that a context that has ended is an error, also where there is
// nothing to do.
func TestEndedBefore(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	for name, call := range map[string]func() error{
		"Keep": func() error { _, err := new(salvage.Keeper).Keep(ctx, ""); return err },
	} {
		if err := call(); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
