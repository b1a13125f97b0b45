package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/site"
)

func TestEnviron(t *testing.T) {
	t.Parallel()
	m := &site.Host{Home: "/h", Env: []string{
		"PATH=/usr/bin", "HOME=/u", "SECRET=1", "GIT_DIR=/elsewhere", "GIT_INDEX_FILE=x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=alias.x", "GIT_CONFIG_VALUE_0=reset",
		"GIT_AUTHOR_NAME=me", "SUPERQODE_SESSION_ID=outer", "SUPERQODE_SOCKET=outer", "OLDPWD=/x", "PWD=/y", "TMPDIR=/tmp", "EMPTY=",
	}}
	s := &Program{Site: &site.Site{Host: m, Folder: "/h/s"}}
	r := runPaths{cwd: "/ws/sub", runDir: "/h/s/tmp/run-1", socket: "/h/s/sock-1"}
	env := (&run{s, ExecOptions{Env: []string{"A=1", "A=2", "TMPDIR=/mine"}}, r}).environ()
	for _, want := range []string{"PATH=/h/s/bin:/usr/bin", "HOME=/u", "SECRET=1", "GIT_AUTHOR_NAME=me", "SUPERQODE_SESSION_ID=", "SUPERQODE_SOCKET=/h/s/sock-1", "A=2", "TMPDIR=/mine", "PWD=/ws/sub", "EMPTY=", "SUPERQODE_RUN_DIR=/h/s/tmp/run-1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%q is missing in %q", want, env)
		}
	}
	seen := map[string]bool{}
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		if seen[k] {
			t.Errorf("%s stands there twice", k)
		}
		seen[k] = true
	}
	for _, gone := range []string{"GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "OLDPWD"} {
		if seen[gone] {
			t.Errorf("%s was passed on", gone)
		}
	}
	for _, kv := range env {
		if key, _, _ := strings.Cut(kv, "="); strings.HasPrefix(key, "SUPERQODE_") && config.CheckVariable(key) == nil {
			t.Errorf("--env %s would be taken", key)
		}
	}
	mine := (&run{s, ExecOptions{Env: []string{"PATH=/mine"}}, r}).environ()
	if !slices.Contains(mine, "PATH=/h/s/bin:/mine") {
		t.Errorf("a person's PATH leaves the session's own out: %q", mine)
	}
	clean := (&run{s, ExecOptions{CleanEnv: true, EnvAllow: []string{"EMPTY"}}, r}).environ()
	if slices.Contains(clean, "SECRET=1") || !slices.Contains(clean, "HOME=/u") || !slices.Contains(clean, "EMPTY=") {
		t.Errorf("clean environment is %q", clean)
	}
}
