package site_test

import (
	"context"
	"errors"
	"testing"

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
		"Git":                func() error { _, err := new(site.Host).Git(ctx); return err },
		"OpenStore":          func() error { return new(site.Site).OpenStore(ctx) },
		"Salvage":            func() error { _, err := new(site.Site).Salvage(ctx, ""); return err },
		"MoveLargeArtifacts": func() error { return new(site.Site).MoveLargeArtifacts(ctx) },
		"MoveLarge":          func() error { _, err := new(site.Site).MoveLarge(ctx, "", nil); return err },
	} {
		if err := call(); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
