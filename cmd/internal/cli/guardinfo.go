package cli

import (
	"fmt"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// guardInfoJSON is the guard of a session in workspace info.
type guardInfoJSON struct {
	Layers artifacts.Layers `json:"layers"`
	Off    bool             `json:"allow_git_operations"`
}

// guardLine tells in one line what guards a session.
func guardLine(r state.Record) string {
	if r.Guard.Off {
		return "off (--allow-git-operations)"
	}
	l := r.Layers()
	return text.Printable(fmt.Sprintf("shim %s; hooks %s; kernel %s", l.Shim, l.Hooks, l.Kernel))
}
