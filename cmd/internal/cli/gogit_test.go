package cli_test

import (
	"fmt"
	"os"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// goGit is a program for the scripts that does with a git library what a session may
// not do with git: no shim, no hook and no git binary is involved. Its arguments are
// repositories; it says what of it went through.
func goGit() {
	for _, dir := range os.Args[1:] {
		repo, err := gogit.PlainOpenWithOptions(dir, &gogit.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, "gogit:", err)
			continue
		}
		for name, err := range attack(repo) {
			if err == nil {
				fmt.Printf("went through: %s in %s\n", name, dir)
			}
		}
	}
}

func attack(repo *gogit.Repository) map[string]error {
	head, err := repo.Head()
	if err != nil {
		return nil
	}
	who := &object.Signature{Name: "lib", Email: "lib@example.com", When: time.Unix(1700000000, 0)}
	did := map[string]error{
		"branch":  repo.Storer.SetReference(plumbing.NewHashReference("refs/heads/library", head.Hash())),
		"feature": repo.Storer.RemoveReference("refs/heads/feature"),
		"stash":   repo.Storer.RemoveReference("refs/stash"),
	}
	_, did["tag"] = repo.CreateTag("library", head.Hash(), nil)
	if cfg, err := repo.Config(); err == nil {
		cfg.User.Name = "library"
		did["config"] = repo.SetConfig(cfg)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return did
	}
	_, did["commit"] = tree.Commit("by a library", &gogit.CommitOptions{All: true, AllowEmptyCommits: true, Author: who, Committer: who})
	did["push"] = repo.Push(&gogit.PushOptions{RemoteName: "origin", RefSpecs: nil, Force: true})
	return did
}
