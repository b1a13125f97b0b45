package gittest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildShim builds superqode-shim into dir, for a test of sessions that are
// guarded: call it once, in TestMain, before the environment is changed.
func BuildShim(dir string) (string, error) {
	bin := filepath.Join(dir, "superqode-shim")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin,
		"github.com/seed-2d964004/superqode/cmd/superqode-shim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build superqode-shim: %w\n%s", err, out)
	}
	return bin, nil
}
