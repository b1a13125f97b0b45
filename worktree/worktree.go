// Package worktree makes linked worktrees of a git repository that hold what the user
// sees now, lists them, and removes them again.
//
//	w, err := worktree.Create(ctx, worktree.Options{Repo: ".", Dir: "/var/tmp/trees"})
//	if err != nil {
//		return err
//	}
//	defer worktree.Remove(ctx, w)
//	// work in w.Path
//
// Such a worktree holds modified, staged, deleted and untracked files as the
// repository's own work tree does, with the same git status. Create and Remove only
// read the repository, but for the folder .git/worktrees/<id>, which Remove deletes.
// Nothing keeps what was changed in a worktree that is removed: package session does.
package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Options says which worktree to make.
type Options struct {
	Repo    string   // a folder in the repository, which must have a work tree and a commit
	Dir     string   // the folder in which the worktree is made; made if it is missing
	From    string   // a revision: that commit's clean tree; "" is what the user sees now
	Include []string // patterns (gitignore syntax) of ignored files to bring along
	Env     []string // KEY=VALUE, with PATH and git's variables; nil is this process's environment
}

// Worktree is a linked worktree that Create made.
type Worktree struct {
	ID       superqode.SessionID // the name of its folder, and of its folder in .git/worktrees
	Path     string              // absolute
	GitDir   string              // the repository's git directory, the common one
	Head     string              // the id of the commit that HEAD names; "" in a list where it names none
	Warnings []string            // what could not come along, from Create only

	repo *git.Repo
}

// Create makes a worktree. On an error, and when ctx ends, nothing of it stays. The
// error wraps superqode.ErrUsage where the repository is bare or has no commit, and
// superqode.ErrNotFound for an unknown revision.
func Create(ctx context.Context, opt Options) (*Worktree, error) {
	repo, err := open(ctx, opt.Repo, opt.Env)
	if err != nil {
		return nil, err
	}
	format, err := snapshot.ParseFormat(repo.ObjectFormat)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	from := linked.Working
	if opt.From != "" {
		if from, err = repo.Commit(ctx, opt.From); err != nil {
			return nil, err
		}
	}
	id := superqode.NewSessionID(time.Now())
	path := filepath.Join(dir, id.String())
	res, err := linked.Create(ctx,
		linked.Options{Repo: repo, ID: id, Path: path, From: from, Include: opt.Include, Format: format})
	if err != nil {
		return nil, err
	}
	return &Worktree{ID: id, Path: path, GitDir: repo.CommonDir, Head: res.Head, Warnings: res.Warnings,
		repo: repo}, nil
}

// List returns the worktrees of the repository around dir that Create or a session
// made, in the order of their ids, which is that of their making. env is as in Options.
func List(ctx context.Context, dir string, env []string) ([]*Worktree, error) {
	repo, err := open(ctx, dir, env)
	if err != nil {
		return nil, err
	}
	admins := filepath.Join(repo.CommonDir, "worktrees")
	entries, err := os.ReadDir(admins)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var list []*Worktree
	for _, e := range entries {
		id, err := superqode.ParseSessionID(e.Name())
		if err != nil {
			continue // the user's own
		}
		admin := filepath.Join(admins, e.Name())
		back := atomicfile.ReadLine(filepath.Join(admin, "gitdir"))
		if back == "" {
			continue // half made, or half removed
		}
		w := &Worktree{ID: id, Path: filepath.Dir(superqode.Under(admin, back)), GitDir: repo.CommonDir, repo: repo}
		own := &git.Repo{Git: repo.Git, TopLevel: w.Path, GitDir: admin, CommonDir: repo.CommonDir,
			ObjectFormat: repo.ObjectFormat}
		w.Head, _ = own.Head(ctx) // damaged, perhaps: it can be removed all the same
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *Worktree) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return list, nil
}

// Remove deletes a worktree, with all that was changed in it, and its folder in
// .git/worktrees. What is gone already is no error. The error wraps
// superqode.ErrLocked where somebody locked it (git worktree lock), and
// superqode.ErrConflict where .git/worktrees says that it is another worktree's.
func Remove(ctx context.Context, w *Worktree) (err error) {
	if w == nil || w.repo == nil {
		return superqode.Errorf(superqode.ErrUsage, "not a worktree of Create or List")
	}
	gone, err := os.MkdirTemp(filepath.Dir(w.Path), ".removed-*") // a rename stays in one file system
	if errors.Is(err, os.ErrNotExist) {
		return linked.Remove(ctx, w.repo, w.admin(), w.Path, "")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trash.RemoveTree(context.WithoutCancel(ctx), gone)) }()
	return linked.Remove(ctx, w.repo, w.admin(), w.Path, gone)
}

func (w *Worktree) admin() string { return filepath.Join(w.GitDir, "worktrees", w.ID.String()) }

func open(ctx context.Context, dir string, env []string) (*git.Repo, error) {
	if env == nil {
		env = os.Environ()
	}
	g, err := git.Find(ctx, env, git.Top(dir))
	if err != nil {
		return nil, err
	}
	return g.Discover(ctx, dir)
}
