package artifacts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/text"
)

// plan decides first where every item goes, without touching a file, and renames
// afterwards; what it did is undone when a later rename fails.
type plan struct {
	root     *os.Root
	m        *manifest
	taken    map[string]bool // paths that this plan fills
	moves    []move
	warnings []Problem
	changed  bool
}

// move renames from to to in folder; item is nil where a stranger's file is set
// aside.
type move struct {
	folder, from, to string
	item             *item
	over             bool // replaces our own earlier content
}

func (p *plan) add(it *item) (Artifact, error) {
	if it.saved {
		return p.save(it)
	}
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		rel := path.Join(it.folder, numbered(base, n))
		var err error
		if it.Path, err = superqode.ParseRelPath(rel); err != nil {
			return Artifact{}, err
		}
		e := p.m.byPath(rel)
		onDisk, sum, err := p.look(rel)
		if err != nil {
			return Artifact{}, err
		}
		taken := p.taken[rel]
		sameEntry := e != nil && e.Session == it.Session && e.SHA256 == it.SHA256 && e.Size == it.Size
		switch {
		case sameEntry && (taken || sum == it.SHA256): // added before
			return e.Artifact, nil
		case sameEntry && !onDisk: // recorded and lost: repaired
			p.put(it, false)
			return e.Artifact, nil
		case e == nil && sum == it.SHA256: // in place, but the manifest was not written
			p.taken[rel] = true
			return p.enter(it), nil
		case e == nil && !onDisk:
			p.put(it, false)
			return p.enter(it), nil
		case it.replace && (taken || e != nil && e.Session != it.Session):
			return Artifact{}, superqode.Errorf(superqode.ErrConflict, "artifact path %s belongs to %s", text.Printable(rel), e.ID)
		case it.replace:
			return p.replace(it, e, onDisk, sum)
		}
	}
}

// look returns whether something is at rel and the sum of its content, "" when it
// is no regular file.
func (p *plan) look(rel string) (onDisk bool, sum string, err error) {
	sum, _, err = hashBelow(p.root, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if _, ok := errors.AsType[*kindError](err); ok {
		return true, "", nil
	}
	return true, sum, err
}

// replace puts it where an earlier artifact of its session, or a stranger's file,
// is. What is there is overwritten only when it is what the manifest recorded,
// or when the manifest knows nothing of it and its name carries the session's
// id: then it is our own attempt, which was killed before the manifest was
// written.
func (p *plan) replace(it *item, e *entry, onDisk bool, sum string) (Artifact, error) {
	rel := it.Path.String()
	ours := e == nil && strings.Contains(rel, it.Session.String())
	if onDisk && sum != it.SHA256 && !ours && (e == nil || e.SHA256 != sum) {
		aside, err := p.asideName(it)
		if err != nil {
			return Artifact{}, err
		}
		p.moves = append(p.moves, move{folder: it.folder, from: path.Base(rel), to: aside})
		p.warnings = append(p.warnings, Problem{rel, "was not what the manifest says; kept as " + text.Printable(aside)})
		onDisk = false
	}
	p.put(it, onDisk)
	if e == nil {
		return p.enter(it), nil
	}
	a := it.Artifact
	a.ID = e.ID
	e.change(a)
	return a, nil
}

func (p *plan) asideName(it *item) (string, error) {
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		c := fmt.Sprint(base[:min(len(base), 200)], ".replaced-", n)
		if onDisk, _, err := p.look(path.Join(it.folder, c)); err != nil || !onDisk {
			return c, err
		}
	}
}

func (p *plan) put(it *item, over bool) {
	rel := it.Path.String()
	p.taken[rel], p.changed = true, true
	p.moves = append(p.moves, move{folder: it.folder, from: it.tmp, to: path.Base(rel), item: it, over: over})
}

func (p *plan) enter(it *item) Artifact {
	p.changed = true
	return p.m.add(it.Artifact)
}

// run makes the moves. On an error the files that had no predecessor are taken
// away again and what was set aside comes back.
func (p *plan) run() (err error) {
	var undo []move
	folders := map[string]bool{}
	defer func() {
		if err == nil {
			return
		}
		for _, mv := range slices.Backward(undo) {
			err = errors.Join(err, p.rename(mv.folder, mv.to, mv.from))
			if mv.item != nil {
				mv.item.tmp = mv.from // commit drops it
			}
		}
	}()
	// What replaces our own earlier content can not be undone, so it comes last.
	slices.SortStableFunc(p.moves, func(a, b move) int { return cmp.Compare(btoi(a.over), btoi(b.over)) })
	for _, mv := range p.moves {
		if err := failpoint.Err("artifacts.place"); err != nil {
			return err
		}
		if err := p.rename(mv.folder, mv.from, mv.to); err != nil {
			return err
		}
		if mv.item != nil {
			mv.item.tmp = ""
		}
		if !mv.over {
			undo = append(undo, mv)
		}
		for d := mv.folder; d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	for d := range folders {
		if err := p.sync(d); err != nil {
			return err
		}
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *plan) rename(folder, from, to string) error {
	dir, err := openFolders(p.root, folder, false)
	if err != nil {
		return err
	}
	return errors.Join(dir.Rename(from, to), dir.Close())
}

func (p *plan) sync(folder string) error {
	dir, err := openFolders(p.root, folder, false)
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(dir), dir.Close())
}
