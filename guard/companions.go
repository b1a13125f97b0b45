package guard

import (
	"slices"
	"strings"
)

// companion knows programs that do git's work under another name.
func (c *checker) companion(st *state, base string, words []string) (string, bool) {
	args := words[1:]
	sub, rest := first(args)
	switch base {
	case "hub": // hub COMMAND is git COMMAND
		if isGitCommand(sub) {
			return c.git(st, append([]string{"git"}, args...)), true
		}
	case "jj":
		switch {
		case sub == "git" && len(rest) > 0 && rest[0] == "push":
			c.operation("push", words, nil)
		case sub == "commit" || sub == "ci":
			c.operation("commit", words, nil)
		}
	case "npm", "pnpm":
		if sub == "version" && len(rest) > 0 && !c.versionOnly(args) {
			c.operation("commit", words, nil)
		}
	case "yarn": // the first yarn; the second takes words, and commits nothing
		if sub == "version" && !slices.Contains(args, "--no-git-tag-version") && slices.ContainsFunc(args, isVersionFlag) {
			c.operation("commit", words, nil)
		}
	}
	return "", false
}

func isVersionFlag(arg string) bool {
	switch name, _, _ := strings.Cut(arg, "="); name {
	case "--new-version", "--major", "--minor", "--patch", "--premajor", "--preminor", "--prepatch", "--prerelease":
		return true
	}
	return false
}

// versionOnly reports whether npm version prints, or changes package.json
// without committing and tagging it.
func (c *checker) versionOnly(args []string) bool {
	p := newSpec("json h/help m/message= no-git-tag-version git-tag-version? f/force preid= w/workspace=").parse(args, false)
	return p.help || len(p.args) < 2 || p.has("help") ||
		slices.Contains(args, "--no-git-tag-version") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--git-tag-version=f") })
}
