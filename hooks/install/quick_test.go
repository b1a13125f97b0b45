package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/hooks/install"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestFewStarts holds how often the helper is started for a commit, that the user's
// hooks run all the same, and that they see the environment which git gave.
func TestFewStarts(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{"folder": ".git/hooks/", "path": "myhooks/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(f *gittest.Fixture) {
				for _, hook := range []string{"post-commit", "reference-transaction"} {
					f.WriteMode(folder+hook, "#!/bin/sh\ncat >/dev/null\necho \"${0##*/} $1 ${GOMAXPROCS-unset}\" >>\"$SEEN\"\n", 0o755)
				}
				if name == "path" {
					f.Git("config", "core.hooksPath", "myhooks")
				}
			})
			dir := t.TempDir()
			started, seen := filepath.Join(dir, "started"), filepath.Join(dir, "seen")
			helper := filepath.Join(dir, "helper")
			if err := os.WriteFile(helper, []byte("#!/bin/sh\necho \"$2\" >>\""+started+"\"\nexec \""+s.in.Helper+"\" \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s.in.Helper = helper
			lines := func(path string) string {
				data, err := os.ReadFile(path)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				_ = os.Remove(path)
				return strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", ", ")
			}
			s.install(install.Options{Allow: []string{"commit"}})
			for value, env := range map[string][]string{"unset": {"SEEN=" + seen}, "3": {"SEEN=" + seen, "GOMAXPROCS=3"}} {
				if out, err := s.run(env, "commit", "-q", "--allow-empty", "-m", "x"); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				if got := lines(started); got != "reference-transaction" {
					t.Errorf("the helper was started by %s", got)
				}
				if got := lines(seen); !strings.Contains(got, "post-commit  "+value) || !strings.Contains(got, "reference-transaction prepared "+value+", ") {
					t.Errorf("the user's hooks saw %s", got)
				}
			}
			s.refused("update-ref", "-d", "refs/tags/mark")
			s.install(install.Options{})
			s.refused("commit", "-q", "--allow-empty", "-m", "x")
			if got := lines(started); !strings.HasSuffix(got, "pre-commit") {
				t.Errorf("the commit was refused by %s", got)
			}
			s.uninstall()
		})
	}
}
