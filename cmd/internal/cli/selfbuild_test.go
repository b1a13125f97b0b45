package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
)

// selfAll makes TestBuildsItself build and test everything.
const selfAll = "SUPERQODE_TEST_SELF"

// TestBuildsItself builds and tests this project inside a session of itself, with the
// kernel layer in force: what a build needs can be written to. By default it is a part
// of the packages; SUPERQODE_TEST_SELF=all takes all of them.
func TestBuildsItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds for some seconds")
	}
	if apart, _, err := kernel.Probe(t.Context(), t.TempDir(), ""); err != nil || !apart.Active() {
		t.Skipf("no kernel layer: %s, %v", apart.State, err)
	}
	what := "go build ./cmd/superqode-shim ./internal/... && go test -count=1 ./internal/lockfile ./internal/atomicfile"
	if os.Getenv(selfAll) == "all" {
		what = "go build ./... && go test ./..."
	}
	f := gittest.Plain(t)
	copySource(t, f.Dir)
	f.Write("cmd/superqode-shim/fresh.go", fmt.Sprintf("package main\n\nconst _ = %d\n", time.Now().UnixNano())) // so that something has to be compiled and cached
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "source"}} {
		f.Git(args...)
	}
	superqode, err := exec.LookPath("superqode")
	if err != nil {
		t.Fatal(err)
	}
	before := gittest.Fingerprint(t, f.Dir, ".superqode")
	cmd := exec.Command(superqode, "run", "--enforce", "required", "--", "sh", "-c", what)
	cmd.Dir = f.Dir
	cmd.Env = f.Env("SUPERQODE_HOME="+filepath.Join(f.Home, "sq"), "SUPERQODE_TEST_SHIM="+scriptShim, "GOFLAGS=-p=2 -trimpath", "CGO_ENABLED=0") // as install.sh builds: most of it is in the cache
	for _, key := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN", "GOPATH"} {
		out, err := exec.Command("go", "env", key).Output()
		if err != nil {
			t.Skip("no go in PATH")
		}
		cmd.Env = append(cmd.Env, key+"="+strings.TrimSpace(string(out)))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out.String())
	}
	if !strings.Contains(out.String(), "kernel)") {
		t.Errorf("the kernel layer was not in force:\n%s", out.String())
	}
	gittest.Same(t, before, gittest.Fingerprint(t, f.Dir, ".superqode"))
}

// copySource copies the files of this module.
func copySource(t *testing.T, dir string) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if out, err := exec.Command("cp", "-R", filepath.Join(root, e.Name()), dir).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v %s", e.Name(), err, out)
		}
	}
}
