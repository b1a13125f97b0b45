package hooks

// condition includes a file where the git dir matches. macOS writes a path in the
// case in which it was typed.
const condition = "includeIf.gitdir/i:"
