package mode

import (
	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// FromWorking as OpenOptions.From means what the user sees now: staged,
// unstaged, deleted and untracked files, index state included.
const FromWorking = "working"

// Options say how a workspace is made. They were checked against the origin.
type Options struct {
	Mode     superqode.Mode
	From     string // FromWorking or a commit id
	Commit   string // what HEAD of the workspace will be; "" outside git
	Format   snapshot.Format
	Include  []string // gitignore patterns of ignored files to bring along
	Exclude  []string // snapshot mode: what is left out of the copy
	MaxBytes int64    // snapshot mode: a bigger copy is refused; 0: no limit
	Template string   // directory mode: a folder to start from; "": empty

	IgnoredBudget int64    // git_snapshot: bytes of ignored files that are kept copies of; 0: DefaultIgnoredBudget
	LeaveOut      []string // git_snapshot: patterns of ignored paths that are not protected
}
