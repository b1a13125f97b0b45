package guard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

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
	// symbolic links, or false if there is none or it is not known.
	Repository(ctx context.Context, at At) (string, bool)
	// External reports whether git-name is a program in PATH.
	External(ctx context.Context, at At, name string) Answer
}

// GitResolver is the Resolver that asks the real git. Each question is one git
// process, except for those that the file system answers.
type GitResolver struct {
	git *git.Git
	// search is the PATH in which git-NAME programs are looked for.
	search string
	// place, when set, says where a question is asked; see sessionResolver.
	place func(At) At
}

// NewGitResolver returns a resolver that asks the git at bin, in an environment
// (KEY=VALUE).
func NewGitResolver(bin string, env []string) *GitResolver {
	return &GitResolver{git: git.At(bin, env), search: superqode.Getenv(env, "PATH")}
}

// asked is the place of a question.
func (r *GitResolver) asked(at At) At {
	if r.place == nil {
		return at
	}
	return r.place(at)
}

func (r *GitResolver) output(ctx context.Context, at At, args ...string) (string, bool, bool) {
	at = r.asked(at)
	all := append(append([]string{}, at.Globals...), args...)
	out, err := r.git.Output(ctx, git.Cmd{Dir: at.Dir, Args: all, Env: at.Env})
	if err == nil {
		return strings.TrimSuffix(string(out), "\n"), true, true
	}
	// Status 1 is git's "no"; anything else is no answer.
	exit, ok := errors.AsType[*git.ExitError](err)
	return "", false, ok && exit.Code == 1
}

// Config reads one key.
func (r *GitResolver) Config(ctx context.Context, at At, key string) (string, bool) {
	out, ok, _ := r.output(ctx, at, "config", "--get", key)
	return out, ok
}

func answer(yes, sure bool) Answer {
	switch {
	case yes:
		return Yes
	case sure:
		return No
	}
	return NotKnown
}

// Revision asks rev-parse.
func (r *GitResolver) Revision(ctx context.Context, at At, name string) Answer {
	if strings.HasPrefix(name, "-") {
		return No
	}
	_, yes, sure := r.output(ctx, at, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	return answer(yes, sure)
}

// Branch asks show-ref.
func (r *GitResolver) Branch(ctx context.Context, at At, name string) Answer {
	_, yes, sure := r.output(ctx, at, "show-ref", "--verify", "--quiet", "refs/heads/"+name)
	return answer(yes, sure)
}

// Path looks at the file system, and then into the index for what was deleted.
func (r *GitResolver) Path(ctx context.Context, at At, name string) Answer {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(at.Dir, name)
	}
	if _, err := os.Lstat(full); err == nil {
		return Yes
	}
	out, ok, sure := r.output(ctx, at, "ls-files", "-z", "--", name)
	if !ok && filepath.IsAbs(name) && FindRepository(at.Dir, at.Env, "", "").GitDir != "" {
		return No // git refuses a path outside of its tree; the file is not there
	}
	return answer(ok && out != "", ok || sure)
}

// Repository asks for the common directory.
func (r *GitResolver) Repository(ctx context.Context, at At) (string, bool) {
	if st, err := os.Stat(at.Dir); err != nil || !st.IsDir() {
		return "", false
	}
	out, ok, _ := r.output(ctx, at, "rev-parse", "--git-common-dir")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(at.Dir, out)
	}
	real, err := filepath.EvalSymlinks(out)
	return real, err == nil
}

// External looks for a program git-NAME.
func (r *GitResolver) External(_ context.Context, _ At, name string) Answer {
	if strings.ContainsAny(name, "/\x00") {
		return No
	}
	for _, dir := range filepath.SplitList(r.search) {
		if st, err := os.Stat(filepath.Join(dir, "git-"+name)); err == nil && st.Mode().IsRegular() &&
			st.Mode()&0o111 != 0 {
			return Yes
		}
	}
	return No
}

// LinkedWorktree looks for a .git file that leads into a worktrees folder.
func (r *GitResolver) LinkedWorktree(_ context.Context, path string) Answer {
	text, err := atomicfile.Read(filepath.Join(path, ".git"))
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	return answer(err == nil && ok && filepath.Base(filepath.Dir(dir)) == "worktrees", true)
}
