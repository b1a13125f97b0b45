package guard

import "context"

// Answer is what a Resolver knows; the zero value is "not known".
type Answer int

// The answers of a Resolver.
const (
	NotKnown Answer = iota
	No
	Yes
)

// At tells for which git command a Resolver is asked: the directory after cd and
// -C, the global options that choose a repository or add configuration, and the
// GIT_* variables that the text sets.
type At struct {
	Dir     string // absolute
	Globals []string
	Env     []string
}

// worktreeResolver is a Resolver that knows linked worktrees by their path.
type worktreeResolver interface {
	// LinkedWorktree reports whether path is the root of a linked worktree.
	LinkedWorktree(ctx context.Context, path string) Answer
}

// Resolver answers what only the repository knows. Implementations must not
// change anything and must answer NotKnown rather than fail.
//
// Without a Resolver (nil) the words decide: a name that looks like a path (an
// extension, a slash at its end, a glob, a well-known folder) is a path, other
// names are revisions; -B, -C and a fetch target count as existing branches;
// unknown subcommands are let through with Certainty Unknown. So work is
// protected, and a plain "git checkout NAME" passes.
type Resolver interface {
	// Config returns the last value of a configuration key (an alias is
	// "alias.NAME"), from every source that git would read.
	Config(ctx context.Context, at At, key string) (string, bool)
	// Revision reports whether name resolves to a commit.
	Revision(ctx context.Context, at At, name string) Answer
	// Branch reports whether refs/heads/name exists.
	Branch(ctx context.Context, at At, name string) Answer
	// Path reports whether name is a file or folder of the work tree or index.
	Path(ctx context.Context, at At, name string) Answer
	// Repository returns the common git directory, absolute and free of
	// symbolic links, or false when there is none or it can not be told.
	Repository(ctx context.Context, at At) (string, bool)
	// External reports whether git-name is a program in PATH.
	External(ctx context.Context, at At, name string) Answer
}
