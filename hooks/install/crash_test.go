//go:build failpoint

package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestInstallCrashes kills install and uninstall at every point. Afterwards git
// works, the user's hooks are there, and both can be repeated: an uninstall leaves
// what was there before.
func TestInstallCrashes(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	setups := hookSetups()
	for _, name := range []string{"hand-made", "links", "husky", "no folder", "included path"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(s *site, how, point, log string) error {
				cmd := exec.Command(exe)
				cmd.Dir, cmd.Env = s.Dir, s.Env("SUPERQODE_TEST_INSTALLER="+how, "SUPERQODE_FAILPOINT="+point, "SUPERQODE_FAILPOINT_LOG="+log)
				out, err := cmd.CombinedOutput()
				if err != nil && point == "" {
					t.Fatalf("%s: %v\n%s", how, err, out)
				}
				return err
			}
			log := filepath.Join(t.TempDir(), "log")
			s := newSite(t, setups[name])
			before := s.gitDir()
			points := map[string][]string{}
			for _, how := range []string{"install", "uninstall"} {
				if err := os.WriteFile(log, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				_ = start(s, how, "", log)
				points[how] = numbered(t, log)
			}
			gittest.Same(t, before, s.gitDir())
			if len(points["install"]) < 2 || len(points["uninstall"]) < 3 {
				t.Fatalf("%v", points)
			}
			for _, how := range []string{"install", "uninstall"} {
				for _, point := range points[how] {
					if how == "uninstall" {
						_ = start(s, "install", "", log)
					}
					if err := start(s, how, point+"=kill", log); err == nil {
						t.Errorf("%s survived %s", how, point)
					}
					s.Remove(".git/config.lock") // what git leaves behind when it is killed, too
					checkUserHooks(t, s, name, how+" "+point)
					if slices.Contains([]string{"install"}, how) { // and forwards
						_ = start(s, "install", "", log)
						if st := s.status(); !st.Firing {
							t.Errorf("%s %s: %+v", how, point, st)
						}
					}
					_ = start(s, "uninstall", "", log)
					if d := before.Diff(s.gitDir()); len(d) > 0 {
						t.Fatalf("%s killed at %s:\n%s", how, point, strings.Join(d, "\n"))
					}
				}
			}
		})
	}
}

// numbered names each hit of a point: "name:2".
func numbered(t *testing.T, log string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	count, list := map[string]int{}, []string{}
	for _, p := range strings.Fields(string(data)) {
		count[p]++
		list = append(list, fmt.Sprintf("%s:%d", p, count[p]))
	}
	return list
}

// checkUserHooks: wherever install or uninstall was ended, the user's own hook runs
// when git goes on.
func checkUserHooks(t *testing.T, s *site, how, when string) {
	t.Helper()
	own := slices.Contains([]string{"hand-made", "links", "husky", "included path"}, how)
	file := filepath.Join(filepath.Dir(s.Dir), "seen")
	_ = os.Remove(file)
	cmd := exec.Command("git", "--no-optional-locks", "status")
	cmd.Dir, cmd.Env = s.Dir, s.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", when, err, out)
	}
	path := s.Git("rev-parse", "--git-path", "hooks/pre-commit")
	cmd = exec.Command("sh", "-c", `"$0"`, path)
	if !filepath.IsAbs(path) {
		cmd = exec.Command("sh", "-c", `"$0"`, "./"+path)
	}
	cmd.Dir, cmd.Env = s.Dir, s.Env("GIT_DIR="+s.Path(".git"))
	out, _ := cmd.CombinedOutput()
	if data, _ := os.ReadFile(file); own && len(data) == 0 && !strings.Contains(string(out), "superqode: refused") {
		t.Errorf("%s: the user's hook was passed over: %s", when, out)
	}
}
