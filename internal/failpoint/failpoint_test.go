//go:build !failpoint

package failpoint_test

import (
	"testing"

	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// TestOffDoesNothing holds that a release binary cannot be told to fail.
func TestOffDoesNothing(t *testing.T) {
	t.Setenv("SUPERQODE_FAILPOINT", "x=error")
	failpoint.Hit("x")
	if err := failpoint.Err("x"); err != nil {
		t.Error(err)
	}
}
