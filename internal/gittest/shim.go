package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ShimVariable names the superqode-shim for the processes that a test starts.
const ShimVariable = "SUPERQODE_TEST_SHIM"

// WithShim runs use, in TestMain, with the path of a superqode-shim for its sessions: the one
// of the test that started this process, or one that is built and lies in a folder that
// everybody may read. It returns what use returns, or 1.
func WithShim(use func(shim string) int) int {
	if shim := os.Getenv(ShimVariable); shim != "" {
		return use(shim)
	}
	dir, err := os.MkdirTemp("", "superqode-shim-*")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	shim := filepath.Join(dir, "superqode-shim")
	if err == nil {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", shim, "github.com/seed-2d964004/superqode/cmd/superqode-shim")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build superqode-shim:", err)
		return 1
	}
	return use(shim)
}
