package hooks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestEnv: git reads what Env says, in the way of its version, for paths of every
// kind, and in guarded repositories only.
func TestEnv(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"plain", "with space", `quote"s and 'others'`, `back\slash`, "glob[x]*?", "ünï", "per%cent=equal", "bang!", "new\nline", "semi;colon#hash"} {
		for _, version := range []string{"2.30.9", "2.39.5"} {
			t.Run(version+" "+odd, func(t *testing.T) {
				t.Parallel()
				if v := gitVersion(t); v[0] == 2 && v[1] < 31 && version != "2.30.9" {
					t.Skip("this git does not read what a later one does")
				}
				testEnv(t, filepath.Join(gittest.Plain(t).Dir, odd), version)
			})
		}
	}
}

func testEnv(t *testing.T, top, version string) {
	f := gittest.In(t, filepath.Join(top, "repo"))
	f.Git("init", "-q")
	f.Commit("one")
	f.Git("worktree", "add", "-q", "--detach", filepath.Join(top, "linked"))
	f.Git("init", "-q", filepath.Join(top, "other"))
	st := &guard.SessionState{
		ID: superqode.NewSessionID(testTime), WorkTree: true, Workspace: superqode.HostPath(f.Dir),
		GitDirs: []superqode.HostPath{superqode.HostPath(f.Path(".git"))}, Git: guard.RealGit{Bin: superqode.HostPath(realGit(t)), Version: version},
	}
	dir := filepath.Join(top, "session", "hooks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := st.Save(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it may be repeated
		if err := hooks.Populate(t.Context(), st, hooks.Folder{Dir: dir, Helper: filepath.Join(top, "session/bin/helper"), Config: userConfig(t, f)}); err != nil {
			t.Fatal(err)
		}
	}
	env := hooks.Env(st, dir)
	if counted := slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "GIT_CONFIG_COUNT=") }); counted != (version != "2.30.9") {
		t.Errorf("git %s: %q", version, env)
	}
	ask := func(where string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = filepath.Join(top, where), f.Env(env...)
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("git %q in %s: %v", args, where, err)
		}
		return strings.TrimSuffix(string(out), "\n")
	}
	for _, where := range []string{"repo", "linked", "repo/.git"} {
		if got := ask(where, "config", "--get", "core.hooksPath"); got != dir {
			t.Errorf("core.hooksPath in %s is %q", where, got)
		}
	}
	// A path that no key can hold: there the hooks run everywhere and find out
	// themselves whom they guard.
	everywhere := strings.Contains(top, "\n") || strings.Contains(top, "=") && version == "2.30.9"
	if got := ask("other", "config", "--get", "core.hooksPath"); (got != "") != everywhere {
		t.Errorf("core.hooksPath in another repository is %q", got)
	}
	ask("other", "remote", "add", "r", "/some/where")
	if got := ask("other", "remote", "get-url", "--push", "r"); got != "superqode-blocked:///some/where" {
		t.Errorf("a push goes to %q", got)
	}
	if got := ask("other", "remote", "get-url", "r"); got != "/some/where" {
		t.Errorf("a fetch comes from %q", got)
	}
}

// TestEnvOff: a session that guards nothing sets nothing, and one that may push
// leaves addresses alone.
func TestEnvOff(t *testing.T) {
	t.Parallel()
	st := &guard.SessionState{Off: true, GitDirs: []superqode.HostPath{"/r/.git"}}
	if env := hooks.Env(st, "/s/hooks"); len(env) > 0 {
		t.Error(env)
	}
	st = &guard.SessionState{Allow: []string{"push"}, GitDirs: []superqode.HostPath{"/r/.git"}}
	if env := strings.Join(hooks.Env(st, "/s/hooks"), " "); strings.Contains(env, "config.push") || !strings.Contains(env, "/r/.git") {
		t.Error(env)
	}
	st = &guard.SessionState{} // a session outside of git
	if env := strings.Join(hooks.Env(st, "/s/hooks"), " "); !strings.Contains(env, "config.push") || strings.Contains(env, "includeIf") {
		t.Error(env)
	}
}

// TestNothingOfTheUsers: opening a session writes nothing into the repository; not
// extensions.worktreeConfig either, with which go-git refuses to open it.
func TestNothingOfTheUsers(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	before := gittest.Fingerprint(t, f.Dir)
	newSession(t, f, f.Dir, nil)
	gittest.Same(t, before, gittest.Fingerprint(t, f.Dir))
}
