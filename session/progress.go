package session

import (
	"github.com/seed-2d964004/superqode"
)

// openStep says what the making of a workspace is.
func openStep(mode superqode.Mode) string {
	if mode.InPlace() {
		return "taking a snapshot"
	}
	return "making the workspace"
}
