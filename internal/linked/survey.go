package linked

import (
	"context"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Survey is what a repository's work tree holds, for sessions that work in it.
type Survey struct {
	Tree     *snapshot.Snapshot // everything but the repository's own .git folder and .superqode; ids where the index, or the earlier look, confirms them
	Ignored  []string           // the topmost paths that git ignores, sorted; a folder covers everything in it
	Problems []snapshot.Problem // what could not be read
	index    *git.Index
}

// Look surveys the work tree of a repository without changing anything. previous
// is an earlier survey's tree, nil for none. Nested repositories and submodules
// are plain trees here, their .git included.
func Look(ctx context.Context, repo *git.Repo, format snapshot.Format, previous *snapshot.Snapshot) (*Survey, error) {
	c := &creation{Options: Options{Repo: repo, Format: format}}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		c.config, err = repo.Config(gctx)
		return err
	})
	g.Go(c.readOwnIndex)
	var problems []snapshot.Problem
	g.Go(func() (err error) {
		problems, err = c.scanWhole(gctx, previous)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := c.collectFacts(ctx); err != nil {
		return nil, err
	}
	ch := &chooser{c: c, entries: c.origin.Entries, keep: make([]verdict, len(c.origin.Entries))}
	ch.tracked()
	if err := ch.untracked(ctx); err != nil {
		return nil, err
	}
	return &Survey{Tree: c.origin, Ignored: ch.ignored(), Problems: problems, index: c.index}, nil
}

// scanWhole is scan for a session that works in the origin itself.
func (c *creation) scanWhole(ctx context.Context, previous *snapshot.Snapshot) ([]snapshot.Problem, error) {
	var mu sync.Mutex
	skip := func(p string, kind snapshot.Kind) bool {
		if SkipInPlace(p, kind) {
			return true
		}
		if dir, name := path.Split(p); dir != "" && isDotGit(name) {
			mu.Lock()
			c.nested = append(c.nested, nestedRepo{dir[:len(dir)-1], kind == snapshot.Dir})
			mu.Unlock()
		}
		return false
	}
	var err error
	var problems []snapshot.Problem
	c.origin, problems, err = snapshot.Scan(ctx, c.Repo.TopLevel, snapshot.ScanOptions{Format: c.Format, Previous: previous, Contents: snapshot.StatOnly, Skip: skip})
	return problems, err
}

// SkipInPlace leaves superqode's own folder and the repository itself out of a
// work tree's snapshot. A .git file is part of it.
func SkipInPlace(p string, kind snapshot.Kind) bool {
	return p == ownFolder || kind == snapshot.Dir && p == ".git"
}

// ignored lists what git ignores. A folder in which git ignores everything is
// not ignored itself: new files there may not be.
func (ch *chooser) ignored() []string {
	var list []string
	for i := range ch.entries {
		if ch.keep[i] == ignored {
			list = append(list, string(ch.entries[i].Path))
		}
	}
	return list
}

// Unsaved returns the files and links whose contents, according to the index,
// are not in the repository's object database. Their ids must be known.
func (s *Survey) Unsaved() []snapshot.Entry {
	return (&creation{index: s.index, base: s.Tree}).missing()
}
