package revert

import (
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// inode identifies a file whatever its paths.
type inode struct{ dev, ino uint64 }

func inodeOf(e *snapshot.Entry) inode { return inode{e.Stat.Dev, e.Stat.Ino} }

// joinHardLinks plans for paths that were hard links to one file and are
// separate files now, with the same content: all become links to the first one
// that is still the same.
func (p *Plan) joinHardLinks(t *Tree, within []superqode.RelPath) {
	names := map[inode][]*snapshot.Entry{}
	for i := range t.Base.Entries {
		if e := &t.Base.Entries[i]; e.Kind == snapshot.File && e.Stat.Nlink > 1 {
			names[inodeOf(e)] = append(names[inodeOf(e)], e)
		}
	}
	written := map[superqode.RelPath]bool{}
	for i := range p.Write {
		written[p.Write[i].Path] = true
	}
	for _, path := range p.Lost {
		written[superqode.RelPath(path)] = true
	}
	p.links = map[inode]*snapshot.Entry{}
	for file, list := range names {
		if len(list) < 2 { // its other links are elsewhere
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
		p.links[file] = keeper
		for _, e := range others {
			if inodeOf(p.Now.Find(e.Path)) != inodeOf(keeper) && inside(e.Path, within) {
				p.Write = append(p.Write, *e)
			}
		}
	}
	slices.SortFunc(p.Write, snapshot.ByPath)
}

// hardLink returns the entry, as it is now, of the file to which e was another
// hard link, or nil.
func (p *Plan) hardLink(e *snapshot.Entry) *snapshot.Entry { return p.links[inodeOf(e)] }
