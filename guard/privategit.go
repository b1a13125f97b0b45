package guard

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// PrivateGit is the git directory that a session's programs use in the workspace
// while the kernel layer makes the repository's own read-only. Its HEAD, index,
// refs and new objects are the session's; all other objects are the repository's.
// Whatever the policy lets through happens here, and no ref of the user's moves.
//
// The programs may write to it, so nothing in it is believed: superqode's own git
// never runs there.
type PrivateGit struct {
	Dir superqode.HostPath `json:"dir"` // GIT_DIR, links resolved
}

// Index is the file that git keeps the session's index in.
func (p *PrivateGit) Index() string { return filepath.Join(string(p.Dir), "index") }

// Objects is the folder of the objects that the session made.
func (p *PrivateGit) Objects() string { return filepath.Join(string(p.Dir), "objects") }

// holds reports whether a path lies in the private git directory.
func (p *PrivateGit) holds(path string) bool {
	return p != nil && superqode.Within(path, string(p.Dir))
}

// privateEnv leads git in the workspace to the session's own git directory, unless
// the program has named another one.
func (st *SessionState) privateEnv(env []string) []string {
	if superqode.Getenv(env, "GIT_DIR") != "" {
		return env
	}
	env = setEnv(env, "GIT_DIR", string(st.Private.Dir))
	return setEnv(env, "GIT_WORK_TREE", string(st.Workspace))
}

// withoutPrivate takes the session's own git directory out again: git hands its
// variables down, and what it has started may work in another repository. Where a
// command acts is decided anew from the place where it stands.
func (st *SessionState) withoutPrivate(env []string) []string {
	if st.Private == nil || superqode.Getenv(env, "GIT_DIR") != string(st.Private.Dir) {
		return env
	}
	env = setEnv(env, "GIT_DIR", "")
	if superqode.Getenv(env, "GIT_WORK_TREE") == string(st.Workspace) {
		env = setEnv(env, "GIT_WORK_TREE", "")
	}
	if superqode.Getenv(env, "GIT_INDEX_FILE") == st.Private.Index() {
		env = setEnv(env, "GIT_INDEX_FILE", "")
	}
	return env
}

// makesRepository reports whether the command makes a repository of its own: it
// must not find the session's in the environment.
func (c ShimCall) makesRepository(ctx context.Context) bool {
	k := newChecker(ctx, Context{Dir: c.Dir, Env: c.Env})
	return slices.Contains([]string{"init", "init-db", "clone"}, k.readGlobals(k.newState(), c.command()).command)
}
