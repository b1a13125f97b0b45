package guard

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// sessionResolver is the Resolver of a session's shim and hooks: the real git,
// which also knows which repositories are the session's.
type sessionResolver struct {
	GitResolver
	st *SessionState
}

// Resolver returns the Resolver of this session, and the name under which Check
// knows a repository that is guarded (Context.Guarded). env is the environment
// of the command that is decided on.
func (st *SessionState) Resolver(env []string) (r Resolver, guarded string) {
	return newSessionResolver(st, string(st.Git.Bin), env), st.GuardedName()
}

func newSessionResolver(st *SessionState, bin string, env []string) *sessionResolver {
	res := &sessionResolver{*NewGitResolver(bin, env), st}
	res.place = res.private
	res.search += string(filepath.ListSeparator) + string(st.Git.ExecPath)
	return res
}

// GuardedName stands for every repository of the session's: Check compares one path
// (Context.Guarded).
func (st *SessionState) GuardedName() string {
	if len(st.GitDirs) > 0 {
		return string(st.GitDirs[0])
	}
	return st.dir
}

// Repository finds the repository that a command acts on, by its common directory
// and by its work tree: another repository's git dir may be pointed at the
// session's files. Where git finds no repository at all the answer is "", and git
// will say so itself.
func (r *sessionResolver) Repository(ctx context.Context, at At) (string, bool) {
	out, err := r.revParse(ctx, at, "--git-common-dir", "--show-toplevel")
	if err != nil && strings.Contains(err.Error(), "not a git repository") {
		return "", true
	}
	common, rest, _ := strings.Cut(out, "\n")
	top, rest, _ := strings.Cut(rest, "\n")
	if rest != "" { // a path holds a newline
		if common, err = r.revParse(ctx, at, "--git-common-dir"); err == nil {
			top, err = r.revParse(ctx, at, "--show-toplevel")
		}
		common, top = strings.TrimSuffix(common, "\n"), strings.TrimSuffix(top, "\n")
	}
	if common == "" || err != nil && top != "" {
		return "", false
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(at.Dir, common)
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return "", false
	}
	if top != "" {
		if top, err = filepath.EvalSymlinks(top); err != nil {
			return "", false
		}
	}
	if r.st.Guards(common, top) {
		return r.st.GuardedName(), true
	}
	return common, true
}

func (r *sessionResolver) revParse(ctx context.Context, at At, questions ...string) (string, error) {
	at = r.asked(at)
	args := append(append([]string{}, at.Globals...), "rev-parse")
	out, err := r.git.Output(ctx, git.Cmd{Dir: at.Dir, Args: append(args, questions...), Env: at.Env})
	return string(out), err
}

// private leads a question about the workspace to the git directory that the
// command itself will be led to.
func (r *sessionResolver) private(at At) At {
	if r.st.Private == nil || !r.st.Kernel || superqode.Getenv(at.Env, "GIT_DIR") != "" {
		return at
	}
	for _, g := range at.Globals {
		if g == "--git-dir" || strings.HasPrefix(g, "--git-dir=") {
			return at
		}
	}
	if realPath(walkUp(at.Dir).WorkTree) == string(r.st.Workspace) {
		at.Env = r.st.PrivateEnv(at.Env)
	}
	return at
}
