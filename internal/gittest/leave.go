package gittest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LeaveSession takes what an enclosing session has put into the environment out of
// it: the git in front of git, the hooks, the session's own variables. Tests that make
// sessions call it first in TestMain, so that they find what they find outside of one.
func LeaveSession() {
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, ".superqode-shim"))
		return err == nil
	})
	// a name and a value without a NUL can be set
	_ = os.Setenv("PATH", strings.Join(dirs, string(filepath.ListSeparator)))
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		switch {
		case key == "GIT_EXEC_PATH", strings.HasPrefix(key, "GIT_CONFIG_"),
			strings.HasPrefix(key, "SUPERQODE_") && !strings.HasPrefix(key, "SUPERQODE_TEST_") && !strings.HasPrefix(key, "SUPERQODE_FAILPOINT"):
			_ = os.Unsetenv(key)
		}
	}
}
