package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a tree in memory, without links, empty at first. It is safe for concurrent use.
type Mem struct {
	methods
	mu   sync.RWMutex
	root *node
}

// NewMem returns an empty tree in memory.
func NewMem() *Mem {
	m := &Mem{root: newNode()}
	m.doer = m
	return m
}

// Capabilities implements CapabilityReporter.
func (m *Mem) Capabilities() Capabilities {
	return Capabilities{AtomicRename: true, CaseSensitive: true}
}

// node is a file, or a directory that has children.
type node struct {
	children map[string]*node
	data     []byte
	mode     fs.FileMode
	changed  time.Time
}

func newNode() *node {
	return &node{children: map[string]*node{}, mode: fs.ModeDir | 0o755, changed: time.Now()}
}

// find returns what stands at a path.
func (m *Mem) find(name string) (*node, error) {
	n := m.root
	for _, part := range components(name) {
		if n.children == nil {
			return nil, syscall.ENOTDIR
		}
		if n = n.children[part]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// parent returns the directory of a path. It makes the missing ones only where nothing
// stands in the way of the last.
func (m *Mem) parent(name string, create bool) (*node, error) {
	n := m.root
	for _, part := range components(path.Dir(name)) {
		sub := n.children[part]
		switch {
		case sub == nil && !create:
			return nil, syscall.ENOENT
		case sub == nil:
			sub = newNode()
			n.children[part] = sub
		case sub.children == nil:
			return nil, syscall.ENOTDIR
		}
		n = sub
	}
	return n, nil
}

func (m *Mem) do(ctx context.Context, c call) (r reply, err error) {
	if c.op.writes() {
		m.mu.Lock()
		defer m.mu.Unlock()
	} else {
		m.mu.RLock()
		defer m.mu.RUnlock()
	}
	p, err := c.allowed(lexical)
	if err != nil {
		return reply{}, err
	}
	if c.op.opens() {
		return reply{}, ErrNotAvailable
	}
	if c.op.writes() {
		return reply{}, m.change(ctx, c, p)
	}
	n, err := m.find(p.target)
	if err != nil {
		return reply{}, err
	}
	switch c.op {
	case opRead:
		if n.children != nil {
			return reply{}, syscall.EISDIR
		}
		return reply{data: slices.Clone(n.data), info: n.info(p.target)}, nil
	case opList:
		list, err := m.list(ctx, p.target)
		return reply{entries: p.visible(c, list)}, err
	}
	return reply{info: n.info(path.Base(c.name))}, nil
}

func (m *Mem) list(_ context.Context, dir string) ([]fs.DirEntry, error) {
	n, err := m.find(dir)
	if err == nil && n.children == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	list := []fs.DirEntry{}
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		list = append(list, fs.FileInfoToDirEntry(n.children[name].info(name)))
	}
	return list, nil
}

// change does what a writing call asks for.
func (m *Mem) change(ctx context.Context, c call, p place) error {
	switch c.op {
	case opRename:
		return m.rename(ctx, c, p)
	case opDelete, opRemove:
		return m.remove(ctx, c, p)
	}
	dir, err := m.parent(p.target, true)
	if err != nil {
		return err
	}
	n := dir.children[path.Base(p.target)]
	switch {
	case n == nil:
		n = &node{mode: cmp.Or(c.mode, 0o644)}
		dir.children[path.Base(p.target)] = n
	case n.children != nil:
		return syscall.EISDIR
	}
	if c.op != opAppend {
		n.data = nil
	}
	n.data, n.changed = append(n.data, c.data...), time.Now()
	return nil
}

func (m *Mem) remove(ctx context.Context, c call, p place) error {
	n, err := m.find(p.target)
	switch {
	case err != nil:
		return err
	case n.children != nil && c.op == opDelete:
		return syscall.EISDIR
	}
	if err := p.tree(ctx, c, nil, m.list); err != nil {
		return err
	}
	dir, err := m.parent(p.target, false)
	if err == nil {
		delete(dir.children, path.Base(p.target))
	}
	return err
}

func (m *Mem) rename(ctx context.Context, c call, p place) error {
	n, err := m.find(p.target)
	if err != nil {
		return err
	}
	to, err := c.renames(ctx, p, n.children != nil, lexical, m.list)
	if err != nil || to.target == p.target {
		return err
	}
	dir, err := m.parent(to.target, true)
	if err != nil {
		return err
	}
	switch old := dir.children[path.Base(to.target)]; {
	case old == nil:
	case old.children == nil && n.children != nil:
		return syscall.ENOTDIR
	case old.children != nil && n.children == nil:
		return syscall.EISDIR
	case len(old.children) > 0:
		return syscall.ENOTEMPTY
	}
	dir.children[path.Base(to.target)] = n
	from, err := m.parent(p.target, false)
	if err == nil {
		delete(from.children, path.Base(p.target))
	}
	return err
}

// info describes a node as it is now.
func (n *node) info(name string) fs.FileInfo {
	return memInfo{path.Base(name), int64(len(n.data)), n.mode, n.changed}
}

type memInfo struct {
	name    string
	size    int64
	mode    fs.FileMode
	changed time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.changed }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }

// foreign is somebody else's FS, below our views: it says nothing of its links, so that
// rules hold for the paths as they are given.
type foreign struct{ FS }

func (f foreign) do(ctx context.Context, c call) (r reply, err error) {
	p, err := c.allowed(lexical)
	if err != nil {
		return reply{}, err
	}
	name := p.target
	switch c.op {
	case opRead:
		r.data, err = f.Read(ctx, name)
	case opWrite:
		err = f.Write(ctx, name, c.data)
	case opAtomic:
		err = f.replace(ctx, name, c.data)
	case opAppend:
		err = f.Append(ctx, name, c.data)
	case opRename:
		var to place
		if to, err = c.renames(ctx, p, false, lexical, f.List); err == nil {
			err = f.Rename(ctx, name, to.target)
		}
	case opDelete:
		err = f.Delete(ctx, name)
	case opRemove:
		if err = p.tree(ctx, c, nil, f.List); err == nil {
			err = f.RemoveAll(ctx, name)
		}
	case opList:
		r.entries, err = f.List(ctx, name)
		r.entries = p.visible(c, r.entries)
	case opExists, opStat:
		r.info, err = f.Stat(ctx, name)
	case opExec, opClone, opPull:
		err = ErrNotAvailable
	}
	return r, err
}

// replace is the best that an FS can do which has a rename.
func (f foreign) replace(ctx context.Context, name string, data []byte) error {
	tmp := path.Join(path.Dir(name), tempName(path.Base(name)))
	err := f.Write(ctx, tmp, data)
	if err == nil {
		err = f.Rename(ctx, tmp, name)
	}
	if err != nil {
		_ = f.Delete(context.WithoutCancel(ctx), tmp) // the first error is the one to report
	}
	return err
}

// Capabilities implements CapabilityReporter.
func (f foreign) Capabilities() Capabilities { return CapabilitiesOf(f.FS) }

// doerOf returns what is behind an FS. Types of others that embed one of ours have
// methods of their own, which are called.
func doerOf(f FS) doer {
	switch f := f.(type) {
	case *Dir:
		return f
	case *Mem:
		return f
	case methods:
		return f.doer
	}
	return foreign{f}
}

// tempName is a new name for a file that will be renamed to name.
func tempName(name string) string {
	return "." + strings.ToValidUTF8(name[:min(len(name), maxName)], "") + ".tmp-" + rand.Text()
}
