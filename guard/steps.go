package guard

import (
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// steps are the commands that git starts by itself while it carries out one that is
// denied unless somebody has allowed it, by the sources of git 2.28 to 2.55: parent
// first. An editor, a hook or an alias that starts git is no step, however its
// command came to run: of a commit there are none. "" stands for every command: those
// parents are scripts around git. A command that the user names on a parent's line
// (rebase --exec) is the user's to allow where the step has no other sign.
func steps() [][2]string {
	return [][2]string{
		{"pull", "merge"}, {"pull", "rebase"}, {"pull", "fetch"}, {"pull", "stash"},
		{"merge", "stash"}, {"merge", "read-tree"}, {"merge", "merge-ours"}, {"merge", "merge-octopus"},
		{"merge", "merge-resolve"}, {"merge", "merge-recursive"}, {"merge", "merge-subtree"},
		{"rebase", "commit"}, {"rebase", "merge"}, {"rebase", "am"}, {"rebase", "stash"}, {"rebase",
			"cherry-pick"}, {"rebase", "checkout"},
		{"cherry-pick", "commit"}, {"revert", "commit"}, {"am", "merge-recursive"},
		{"stash", "reset"}, {"stash", "clean"}, {"stash", "checkout"}, {"stash", "checkout-index"}, {"stash",
			"read-tree"},
		{"stash", "apply"}, {"stash", "merge-recursive"}, {"stash", "update-ref"}, {"stash", "restore"},
		{"filter-branch", ""}, {"subtree", ""}, {"quiltimport", ""}, {"svn", ""}, {"p4", ""},
		{"gc", ""}, {"maintenance", ""}, {"remote", ""}, {"sparse-checkout", ""}, {"lfs", ""}, {"submodule", ""},
	}
}

// IsStep reports whether git starts the command child (its name alone) by itself
// while it carries out parent.
func IsStep(parent, child string) bool {
	return slices.ContainsFunc(steps(), func(s [2]string) bool {
		return s[0] == parent && (s[1] == child || s[1] == "")
	})
}

// PartOf reports whether an attempt is part of a command that was let through: the
// same operation, or a step of it, or a step of a step.
func (a Attempt) PartOf(through Attempt) bool {
	if a.Operation == through.Operation {
		return true
	}
	if a.Operation.Leaves() || covers("config.write", string(a.Operation)) || a.Operation == "gitdir.write" {
		return false
	}
	reached := []string{CommandName(through.Command)}
	for i := 0; i < len(reached) && i < 16; i++ {
		for _, s := range steps() {
			if s[0] != reached[i] {
				continue
			}
			if s[1] == "" || s[1] == CommandName(a.Command) {
				return true
			}
			if !slices.Contains(reached, s[1]) {
				reached = append(reached, s[1])
			}
		}
	}
	return false
}

// CommandName is git's command of an argument list that begins with git, the global
// options passed over.
func CommandName(argv []string) string {
	name, _ := SplitCommand(argv)
	return name
}

// SplitCommand is CommandName with the command's arguments.
func SplitCommand(argv []string) (name string, args []string) {
	for i := 1; i < len(argv); i++ {
		switch w := argv[i]; {
		case cmdline.In(globalsWithValue, w):
			i++
		case !strings.HasPrefix(w, "-"):
			return w, argv[i+1:]
		}
	}
	return "", nil
}
