package revert

import (
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// inode names a file whatever its paths.
type inode struct{ dev, ino uint64 }

func inodeOf(e *snapshot.Entry) inode { return inode{e.Stat.Dev, e.Stat.Ino} }

// joinTwins plans for paths that were names of one file and are names of several
// by now, although these hold the same: the first that is still what it was is
// the file of them all.
func (p *Plan) joinTwins(t *Tree, within []superqode.RelPath) {
	names := map[inode][]*snapshot.Entry{}
	for i := range t.Base.Entries {
		if e := &t.Base.Entries[i]; e.Kind == snapshot.File && e.Stat.Nlink > 1 {
			names[inodeOf(e)] = append(names[inodeOf(e)], e)
		}
	}
	written := map[string]bool{}
	for i := range p.Write {
		written[p.Write[i].Path] = true
	}
	for _, path := range p.Lost {
		written[path] = true
	}
	p.twins = map[inode]*snapshot.Entry{}
	for file, list := range names {
		if len(list) < 2 { // its other names are somewhere else
			continue
		}
		var keeper *snapshot.Entry
		var others []*snapshot.Entry
		for _, e := range list {
			now := p.Now.Find(e.Path)
			if now == nil || now.Kind != snapshot.File || written[e.Path] || !same(e, now) {
				continue
			}
			others = append(others, e)
			if keeper == nil || inodeOf(now) == file && inodeOf(keeper) != file {
				keeper = now
			}
		}
		if keeper == nil {
			continue
		}
		p.twins[file] = keeper
		for _, e := range others {
			if inodeOf(p.Now.Find(e.Path)) != inodeOf(keeper) && inside(e.Path, within) {
				p.Write = append(p.Write, *e)
			}
		}
	}
	slices.SortFunc(p.Write, snapshot.ByPath)
}

// twin returns the entry, as it is now, of the file of which e was another name,
// or nil.
func (p *Plan) twin(e *snapshot.Entry) *snapshot.Entry { return p.twins[inodeOf(e)] }
