package artifactcmd

import (
	"testing"

	"github.com/seed-2d964004/superqode/artifacts"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]artifacts.LineRange{"3": {Start: 3, End: 3}, "3-9": {Start: 3, End: 9}, "0": {}, "9-3": {}, "a": {}, "1-": {}} {
		if got, err := parseLines(in); got != want || (err == nil) != (want.Start > 0) {
			t.Errorf("lines %q: %v, %v", in, got, err)
		}
	}
}
