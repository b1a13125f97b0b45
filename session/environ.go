package session

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/layers"
)

// runPaths are the places of one command of a session.
type runPaths struct {
	number   int    // of the run, from 1
	cwd      string // where the command starts
	runDir   string // fresh for this command
	socket   string
	log      string // all of its output
	logIndex string // which of it is stderr's
	lock     string // held while the run is under way
}

// environ builds the environment of a session's program; docs/formats.md has
// the table. Variables that would point git at another repository, or at
// another session, are not passed on.
func (s *Program) environ(opt ExecOptions, r runPaths) []string {
	env := slices.DeleteFunc(git.CleanEnv(s.Env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(k, "GIT_CONFIG_") || k == "OLDPWD" || strings.HasPrefix(k, "SUPERQODE_FAILPOINT")
	})
	if opt.CleanEnv || len(opt.EnvAllow) > 0 {
		env = slices.DeleteFunc(env, func(kv string) bool {
			k, _, _ := strings.Cut(kv, "=")
			return !opt.allowed(k)
		})
	}
	set := append([]string{
		"SUPERQODE_HOME=" + s.Home,
		"SUPERQODE_SESSION_ID=" + s.PublicID().String(),
		"SUPERQODE_AGENT_ID=" + s.Actor().String(),
		"SUPERQODE_RUNNER_ID=" + s.Actor().String(),
		"SUPERQODE_CASE_ID=" + string(s.Rec.Case),
		"SUPERQODE_WORKSPACE=" + string(s.Rec.Workspace),
		"SUPERQODE_ORIGIN=" + string(s.Rec.Origin),
		"SUPERQODE_MODE=" + string(s.Rec.Mode),
		"SUPERQODE_OUTPUT_DIR=" + s.OutputDir(),
		"SUPERQODE_ARTIFACT_DIR=" + s.ArtifactDir(),
		"SUPERQODE_RUN_DIR=" + r.runDir,
		"SUPERQODE_SOCKET=" + r.socket,
		"TMPDIR=" + s.TmpDir(),
		"PWD=" + r.cwd,
		"PATH=" + filepath.Join(s.Folder, "bin") + string(filepath.ListSeparator) + superqode.Getenv(env, "PATH"),
	}, append(append(s.portEnv(), addGitConfig(layers.Of(s.Site).Environ(), s.gitConfig(env))...), opt.Env...)...)
	return superqode.Override(env, set)
}

// cleanNames are the variables that --clean-env leaves: what a program needs to
// find other programs, its user's home and the terminal.
func cleanNames() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}
}
