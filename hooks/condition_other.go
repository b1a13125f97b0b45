//go:build !darwin

package hooks

// condition includes a file where the git dir matches.
const condition = "includeIf.gitdir:"
