package superqode_test

import (
	"testing"

	"github.com/seed-2d964004/superqode"
)

func TestLookupEnv(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "AB=2", "A=3=4", "B=", "noise", "=x"}
	for key, want := range map[string]string{"A": "3=4", "AB": "2", "B": "", "noise": "", "C": ""} {
		if got := superqode.Getenv(env, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]bool{"A": true, "B": true, "noise": false, "C": false} {
		if _, ok := superqode.LookupEnv(env, key); ok != want {
			t.Errorf("%s: %v, want %v", key, ok, want)
		}
	}
}
