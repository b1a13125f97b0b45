package install_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/seed-2d964004/superqode/hooks/install"
)

func Example() {
	repo, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(repo)
	env := append(os.Environ(), "HOME="+repo, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd := exec.Command("git", "init", "-q", repo)
	cmd.Env = env
	if err := cmd.Run(); err != nil {
		panic(err)
	}

	ctx := context.Background()
	in, err := install.Open(ctx, repo, env)
	if err != nil {
		panic(err)
	}
	in.Helper = "/usr/local/bin/superqode-shim"
	changed, err := in.Install(ctx, install.Options{})
	fmt.Println(changed, in.IsInstalled(), err)
	removed, err := in.Uninstall(ctx)
	fmt.Println(removed.Installed, in.IsInstalled(), err)
	// Output:
	// true true <nil>
	// true false <nil>
}
