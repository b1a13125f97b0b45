package linked

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Survey is what a repository's work tree holds, for sessions that work in it.
type Survey struct {
	// Tree is everything but the repository's own .git folder and .superqode, with ids
	// where the index, or the earlier look, confirms them.
	Tree     *snapshot.Snapshot
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
	c.read(gctx, g, true, previous)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := c.collectFacts(ctx); err != nil {
		return nil, err
	}
	ch := newChooser(c)
	ch.tracked()
	if err := ch.untracked(ctx); err != nil {
		return nil, err
	}
	return &Survey{Tree: c.origin, Ignored: ch.ignored(), Problems: c.problems, index: c.index}, nil
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
