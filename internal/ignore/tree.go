package ignore

import "github.com/seed-2d964004/superqode"

// File is the name of the files of patterns in a tree.
const File = ".gitignore"

// Tree answers for the paths of one tree.
type Tree struct {
	read    func(dir superqode.RelPath) Patterns
	folders map[superqode.RelPath]folder // those met so far
}

// folder is what is known of a folder: what is in it is ignored, or it is for the
// patterns to say.
type folder struct {
	ignored bool
	lists   []scoped // the nearest first
}

// scoped are patterns that hold below the folder whose path, with its slash, has
// that many bytes.
type scoped struct {
	dir int
	Patterns
}

// NewTree returns the tree of which read reads the folders' files. The patterns
// outside of it come after those, the strongest first.
func NewTree(read func(dir superqode.RelPath) Patterns, outside ...Patterns) *Tree {
	t := &Tree{read: read, folders: map[superqode.RelPath]folder{}}
	var root folder
	for _, list := range outside {
		root.lists = append(root.lists, scoped{0, list})
	}
	t.folders[""] = t.within("", root)
	return t
}

// Ignored reports whether git ignores a path, or a folder above it, were it not
// tracked.
func (t *Tree) Ignored(path superqode.RelPath, isDir bool) bool {
	parent := t.folder(path.Parent())
	return parent.ignored || parent.ignores(path, isDir)
}

func (f folder) ignores(path superqode.RelPath, isDir bool) bool {
	for _, l := range f.lists {
		if p := l.last(string(path[l.dir:]), isDir); p != nil {
			return !p.negated
		}
	}
	return false
}

func (t *Tree) folder(dir superqode.RelPath) folder {
	f, known := t.folders[dir]
	if !known {
		f = t.folder(dir.Parent())
		if f.ignored = f.ignored || f.ignores(dir, true); !f.ignored {
			f = t.within(dir, f)
		}
		t.folders[dir] = f
	}
	return f
}

// within adds the folder's own patterns to those of its parent.
func (t *Tree) within(dir superqode.RelPath, f folder) folder {
	if own := t.read(dir); len(own) > 0 {
		at := len(dir)
		if at > 0 {
			at++
		}
		f.lists = append([]scoped{{at, own}}, f.lists...)
	}
	return f
}
