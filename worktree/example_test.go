package worktree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/seed-2d964004/superqode/worktree"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	env := append(os.Environ(), "HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	repo := filepath.Join(dir, "repo")
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=you", "-c", "user.email=you@example.org", "commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Env = env
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, "untracked.txt"), []byte("what the user sees now\n"), 0o600); err != nil {
		panic(err)
	}

	ctx := context.Background()
	w, err := worktree.Create(ctx, worktree.Options{Repo: repo, Dir: filepath.Join(dir, "trees"), Env: env})
	if err != nil {
		panic(err)
	}
	data, err := os.ReadFile(filepath.Join(w.Path, "untracked.txt"))
	fmt.Print(string(data))
	if err != nil {
		panic(err)
	}
	fmt.Println(worktree.Remove(ctx, w))
	// Output:
	// what the user sees now
	// <nil>
}
