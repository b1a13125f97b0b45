package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
)

// session is what the shim knows of its session.
type session struct{ *guard.SessionState }

// gitEnv is the environment in which the real git runs; c.Env holds nothing of the
// private git directory. A git that was started
// without the session's own variables (env -i, a test suite that makes an
// environment of its own) gets them back: git's children find the shim first,
// and in a guarded repository the hooks are in force. Any other repository is
// left as the program wants it, but for pushes, on which what stands behind the
// addresses decides.
func (st session) gitEnv(c Call, v guard.Verdict) (env []string) {
	env = c.Env
	exec := filepath.Join(st.Dir(), "exec")
	if superqode.Getenv(env, "GIT_EXEC_PATH") != exec && isProgram(filepath.Join(exec, "git")) {
		env = setEnv(env, "GIT_EXEC_PATH", exec)
	}
	env = st.withVeto(env)
	if looksOnly(c.command()) && !st.monitored() {
		defer func() { env = st.withoutVeto(env) }()
	}
	private := st.Kernel && st.Private != nil
	hooked := !st.unhooked(env)
	if hooked && !private {
		return env
	}
	f, name := guard.RepositoryOf(c.command(), c.Dir, c.Env)
	guarded := f.GitDir != "" && st.Guards(f.CommonDir, f.WorkTree)
	if !hooked && (guarded || v.Operation == "push") {
		env = st.hookEnv(env)
	}
	if private && guarded && f.WorkTree == string(st.Workspace) &&
		!slices.Contains([]string{"init", "init-db", "clone"}, name) {
		env = st.PrivateEnv(env)
	}
	return env
}

// looksOnly reports commands that read the work tree and write at most the index.
// The veto of the hooks would decide on them what was decided a moment ago, and cost
// a process.
func looksOnly(argv []string) bool {
	switch guard.CommandName(argv) {
	case "status", "diff", "diff-files", "diff-index", "describe", "ls-files", "add":
		return true
	}
	return false
}

// manyFiles is the size in bytes of an index, of some 5,000 files, from which on it takes
// git longer to look at them all than to start the monitor.
const manyFiles = 1 << 19

// monitored reports whether the monitor spares git that look, see hooks.MonitorToken.
func (st session) monitored() bool {
	if st.Private == nil || st.Private.Overlay == "" {
		return false
	}
	index, err := os.Stat(st.Private.Index())
	return err == nil && index.Size() >= manyFiles
}

// noVeto is the end of GIT_CONFIG_PARAMETERS for such a command. An empty value is
// no monitor in every version of git; before 2.36 "false" would be a program.
const noVeto = ` 'core.fsmonitor'=''`

// withoutVeto adds noVeto where the hooks are in force.
func (st session) withoutVeto(env []string) []string {
	have := superqode.Getenv(env, "GIT_CONFIG_PARAMETERS")
	if len(st.HookEnv) == 0 || have == "" || superqode.Getenv(env, "GIT_CONFIG_COUNT") == "" {
		return env // before git 2.31 it is written otherwise
	}
	return setEnv(env, "GIT_CONFIG_PARAMETERS", have+noVeto)
}

// withVeto takes noVeto out again, for a git that such a command has started.
func (st session) withVeto(env []string) []string {
	have := superqode.Getenv(env, "GIT_CONFIG_PARAMETERS")
	if !strings.HasSuffix(have, noVeto) {
		return env
	}
	return setEnv(env, "GIT_CONFIG_PARAMETERS", strings.TrimSuffix(have, noVeto))
}

// unhooked reports whether a variable of the hooks' is missing. A program may have
// added entries of its own behind them.
func (st session) unhooked(env []string) bool {
	for _, kv := range st.HookEnv {
		key, want, _ := strings.Cut(kv, "=")
		have := superqode.Getenv(env, key)
		switch key {
		case "GIT_CONFIG_PARAMETERS":
			if !strings.Contains(have, want) {
				return true
			}
		case "GIT_CONFIG_COUNT":
			n, _ := strconv.Atoi(have)
			if least, _ := strconv.Atoi(want); n < least {
				return true
			}
		default:
			if have != want {
				return true
			}
		}
	}
	return false
}

// hookEnv gives the hooks' variables back, behind what the program has set under
// the same names: of two values git takes the last.
func (st session) hookEnv(env []string) []string {
	env = slices.Clone(env)
	n, _ := strconv.Atoi(superqode.Getenv(env, "GIT_CONFIG_COUNT"))
	if n < 0 || n > 1<<16 {
		n = 0
	}
	own := 0
	for _, kv := range st.HookEnv {
		key, value, _ := strings.Cut(kv, "=")
		switch i, counted := strings.CutPrefix(key, "GIT_CONFIG_KEY_"); {
		case key == "GIT_CONFIG_PARAMETERS":
			if have := superqode.Getenv(env, key); !strings.Contains(have, value) {
				env = setEnv(env, key, strings.TrimSpace(value+" "+have))
			}
		case key == "GIT_CONFIG_COUNT":
			own, _ = strconv.Atoi(value)
		case counted:
			at, _ := strconv.Atoi(i)
			env = setEnv(env, "GIT_CONFIG_KEY_"+strconv.Itoa(n+at), value)
		default:
			if i, ok := strings.CutPrefix(key, "GIT_CONFIG_VALUE_"); ok {
				at, _ := strconv.Atoi(i)
				key = "GIT_CONFIG_VALUE_" + strconv.Itoa(n+at)
			}
			env = append(setEnv(env, key, ""), key+"="+value)
		}
	}
	if own == 0 { // before git 2.31
		return env
	}
	return setEnv(env, "GIT_CONFIG_COUNT", strconv.Itoa(n+own))
}

// withoutPrivate takes the session's own git directory out again: git hands its
// variables down, and what it has started may work in another repository. Where a
// command acts is decided anew from the place where it stands.
func (st session) withoutPrivate(env []string) []string {
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
