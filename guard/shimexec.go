package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/seed-2d964004/superqode"
)

func ownPID() int { return os.Getpid() }

// exec replaces this process by the real git.
func (c ShimCall) exec(bin string, env []string) int {
	argv := append([]string{"git"}, c.command()[1:]...)
	err := syscall.Exec(bin, argv, env)
	for tries := 0; errors.Is(err, syscall.EINTR) && tries < 10; tries++ {
		err = syscall.Exec(bin, argv, env)
	}
	fmt.Fprintf(c.Err, "superqode: cannot run %s: %v\n", bin, err)
	if errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return 126
}

// realGit finds the git to run: the one that the session was opened with, else
// the first in PATH and in the usual places that is no shim.
func realGit(known string, c ShimCall) (string, bool) {
	if known != "" && isProgram(known) {
		return known, true
	}
	self, err := os.Stat(c.Exe)
	if err != nil {
		self = nil
	}
	for _, dir := range append(filepath.SplitList(superqode.Getenv(c.Env, "PATH")), "/usr/bin", "/usr/local/bin", "/bin", "/opt/homebrew/bin") {
		bin := filepath.Join(dir, "git")
		if !filepath.IsAbs(dir) || !isProgram(bin) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, ShimMarker)); err == nil {
			continue
		}
		if st, err := os.Stat(bin); err == nil && (self == nil || !os.SameFile(st, self)) {
			return bin, true
		}
	}
	return "", false
}

// ShimMarker is the file that marks a folder whose git is a shim, for programs
// that look for the real one (internal/git does).
const ShimMarker = ".superqode-shim"

func isProgram(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// setEnv returns env with one variable set, or taken out when it is "".
func setEnv(env []string, key, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return len(kv) > len(key) && kv[len(key)] == '=' && kv[:len(key)] == key
	})
	if value == "" {
		return env
	}
	return append(env, key+"="+value)
}
