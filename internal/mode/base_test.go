package mode

import (
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
)

// git 2.39 says of a patch of 1 GiB: "git apply: failed to read".
func TestRefused(t *testing.T) {
	t.Parallel()
	deep := superqode.RelPath(strings.Repeat("d/", 3000))
	for _, tt := range []struct {
		size int64
		deep superqode.RelPath
		want string
	}{
		{1 << 20, "", ""},
		{maxPatch - 1, "", ""},
		{maxPatch, "", "patch of 1023 MiB"},
		{1 << 20, deep, "path of 6000 bytes (" + strings.Repeat("d/", 30) + "…)"},
	} {
		if got := refused(tt.size, tt.deep); got != tt.want {
			t.Errorf("refused(%d, %d bytes) = %q, want %q", tt.size, len(tt.deep), got, tt.want)
		}
	}
}
