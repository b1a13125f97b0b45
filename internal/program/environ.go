package program

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/mode"
)

// environ builds the environment of a session's program; docs/formats.md has
// the table. Variables that would point git at another repository, or at
// another session, are not passed on.
func (r *run) environ() []string {
	env := slices.DeleteFunc(git.CleanEnv(r.Env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(k, "GIT_CONFIG_") || k == "OLDPWD" || strings.HasPrefix(k, "SUPERQODE_FAILPOINT")
	})
	if r.opt.CleanEnv || len(r.opt.EnvAllow) > 0 {
		env = slices.DeleteFunc(env, func(kv string) bool {
			k, _, _ := strings.Cut(kv, "=")
			return !r.opt.allowed(k)
		})
	}
	path, given := superqode.LookupEnv(r.opt.Env, "PATH")
	if !given {
		path = superqode.Getenv(env, "PATH")
	}
	set := append([]string{
		"SUPERQODE_HOME=" + r.Home,
		"SUPERQODE_SESSION_ID=" + r.PublicID().String(),
		"SUPERQODE_AGENT_ID=" + r.Actor().String(),
		"SUPERQODE_RUNNER_ID=" + cmp.Or(r.As.String(), r.Rec.RunnerID()),
		"SUPERQODE_CASE_ID=" + string(r.Rec.Case),
		"SUPERQODE_WORKSPACE=" + string(r.Rec.Inside()),
		"SUPERQODE_ORIGIN=" + string(r.Rec.Origin),
		"SUPERQODE_MODE=" + string(r.Rec.Mode),
		"SUPERQODE_OUTPUT_DIR=" + r.OutputDir(),
		"SUPERQODE_ARTIFACT_DIR=" + r.ArtifactDir(),
		"SUPERQODE_RUN_DIR=" + r.runDir,
		"SUPERQODE_SOCKET=" + r.socket,
		"TMPDIR=" + r.TmpDir(),
		"PWD=" + r.cwd,
		"PATH=" + filepath.Join(r.Folder, "bin") + string(filepath.ListSeparator) + path,
	}, addGitConfig(layers.Of(r.Site).Environ(), r.gitConfig(env))...)
	if !mode.Of(r.Rec.Mode).InPlace { // there the containers of the user's own project are meant
		set = append(set, "COMPOSE_PROJECT_NAME="+r.composeProject())
	}
	if r.Rec.Port != 0 {
		set = append(set, "SUPERQODE_PORT="+strconv.Itoa(r.Rec.Port))
	}
	own := slices.DeleteFunc(slices.Clone(r.opt.Env), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	return superqode.Override(env, append(set, own...))
}

// composeProject names what docker compose starts for the session: lower-case letters,
// digits, dashes and underscores, a letter or a digit first.
func (r *run) composeProject() string { return strings.ToLower(r.PublicID().String()) }

// cleanNames are the variables that --clean-env leaves: what a program needs to
// find other programs, its user's home and the terminal.
func cleanNames() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}
}

// What helps programs to live in a workspace that is not where they were written
// for: ports of their own, git's large files where git-lfs is not there, and the
// user's hooks where their folder did not come along.

// gitConfig is the configuration that the session's git gets besides the guard's.
func (r *run) gitConfig(env []string) [][2]string {
	if r.Rec.CommonDir == "" {
		return nil
	}
	var list [][2]string
	if !git.HasLFS(env) {
		list = append(list, git.WithoutLFS()...)
	}
	if dir := r.hooksPath(); dir != "" {
		list = append(list, [2]string{"core.hooksPath", dir})
	}
	return list
}

// hooksPath is where the user's core.hooksPath leads when it is relative and its
// folder, one that git ignores for example, is in the origin alone. Where the guard's
// hooks are active they call the user's, and core.hooksPath is theirs.
func (r *run) hooksPath() string {
	if mode.Of(r.Rec.Mode).InPlace || r.Rec.Guard.Hooks == kernel.Active {
		return ""
	}
	st, err := guard.LoadSessionState(r.Folder)
	if err != nil || st.HooksPath == "" || filepath.IsAbs(string(st.HooksPath)) {
		return ""
	}
	here, there := filepath.Join(r.WorkDir(), string(st.HooksPath)),
		filepath.Join(string(r.Rec.Origin), string(st.HooksPath))
	if atomicfile.Exists(here) || !atomicfile.Exists(there) {
		return ""
	}
	return there
}

// addGitConfig adds entries to the GIT_CONFIG_COUNT of env, which may have none.
func addGitConfig(env []string, list [][2]string) []string {
	if len(list) == 0 {
		return env
	}
	n, _ := strconv.Atoi(superqode.Getenv(env, "GIT_CONFIG_COUNT")) // 0 without one
	env = slices.DeleteFunc(slices.Clone(env),
		func(kv string) bool { return strings.HasPrefix(kv, "GIT_CONFIG_COUNT=") })
	for i, e := range list {
		at := strconv.Itoa(n + i)
		env = append(env, "GIT_CONFIG_KEY_"+at+"="+e[0], "GIT_CONFIG_VALUE_"+at+"="+e[1])
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n+len(list)), "GIT_LFS_SKIP_SMUDGE=1")
}
