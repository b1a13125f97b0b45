package snapshot

import (
	"strconv"
	"strings"
)

// treeNode is one git tree object.
type treeNode struct {
	id      ID
	content []byte
	subs    []*treeNode
}

// buildTree makes git's trees of the files and links in entries, bottom-up, and
// returns the root. Folders exist by what is in them only, as git has it.
//
// Entries are sorted by the bytes of their whole paths, and that is git's order
// within each tree too: a folder sorts as if its name ended in a slash. So one
// pass with a stack of open folders does.
func buildTree(f Format, entries []Entry) *treeNode {
	b := treeBuilder{format: f, stack: []openTree{{node: &treeNode{}}}}
	for i := range entries {
		if e := &entries[i]; e.InTree() {
			b.enter(e.Path)
			b.item(e)
		}
	}
	b.close(0)
	root := b.stack[0].node
	b.sum(root)
	return root
}

type treeBuilder struct {
	format Format
	stack  []openTree // stack[0] is the root
}

type openTree struct {
	node   *treeNode
	prefix string // path with a slash at its end; "" for the root
}

// enter closes the folders that path is not in and opens those it is in.
func (b *treeBuilder) enter(path string) {
	n := len(b.stack) - 1
	for !strings.HasPrefix(path, b.stack[n].prefix) {
		n--
	}
	b.close(n)
	for {
		have := len(b.stack[len(b.stack)-1].prefix)
		i := strings.IndexByte(path[have:], '/')
		if i < 0 {
			return
		}
		b.stack = append(b.stack, openTree{&treeNode{}, path[:have+i+1]})
	}
}

// close ends the open trees above the n-th and puts each into its parent.
func (b *treeBuilder) close(n int) {
	for len(b.stack)-1 > n {
		top := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		up := b.stack[len(b.stack)-1]
		b.sum(top.node)
		up.node.add("40000", top.prefix[len(up.prefix):len(top.prefix)-1], top.node.id)
		up.node.subs = append(up.node.subs, top.node)
	}
}

func (b *treeBuilder) item(e *Entry) {
	top := b.stack[len(b.stack)-1]
	top.node.add(e.gitMode(), e.Path[len(top.prefix):], e.ID)
}

func (b *treeBuilder) sum(n *treeNode) {
	h := b.format.newHash()
	h.Write(append(strconv.AppendInt([]byte("tree "), int64(len(n.content)), 10), 0))
	h.Write(n.content)
	n.id = IDFrom(h.Sum(nil))
}

func (n *treeNode) add(mode, name string, id ID) {
	n.content = append(n.content, mode...)
	n.content = append(n.content, ' ')
	n.content = append(n.content, name...)
	n.content = append(n.content, 0)
	n.content = append(n.content, id.Bytes()...)
}

// gitMode is what git keeps of a mode: link, or whether the owner may execute.
func (e *Entry) gitMode() string {
	switch {
	case e.Kind == Link:
		return "120000"
	case e.Perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// InTree reports whether git's trees hold the entry: a file or link without a
// name in its path that git apply and git add refuse.
func (e *Entry) InTree() bool {
	if e.Kind != File && e.Kind != Link {
		return false
	}
	for name := range strings.SplitSeq(e.Path, "/") {
		if refusedName(name) || e.Kind == Link && strings.EqualFold(name, ".gitmodules") {
			return false
		}
	}
	return true
}

// refusedName reports whether git takes name for its own folder on some system:
// .git in any case, its short form git~1, either followed by what Windows drops
// (dots, spaces, a stream's name). See is_ntfs_dotgit in git's path.c.
func refusedName(name string) bool {
	if len(name) < 4 || name[0] != '.' && name[0]|0x20 != 'g' {
		return false
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}
