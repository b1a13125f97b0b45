package report

import (
	"html/template"
	"strings"
)

// treeNode is a folder or a changed path of the file tree.
type treeNode struct {
	Name     template.HTML
	File     *fileView // nil for a folder
	Children []*treeNode
	Count    int // changed paths below
	raw      string
}

// compareTree orders paths as the tree shows them: in each folder the folders
// first.
func compareTree(a, b string) int {
	for {
		x, restA, deepA := strings.Cut(a, "/")
		y, restB, deepB := strings.Cut(b, "/")
		if deepA != deepB {
			if deepA {
				return -1
			}
			return 1
		}
		if x != y || !deepA {
			return strings.Compare(x, y)
		}
		a, b = restA, restB
	}
}

// tree builds the folders of files that are in compareTree's order. Folders that
// hold one folder and nothing else are shown as one.
func tree(files []fileView) []*treeNode {
	root := &treeNode{}
	for i := range files {
		node := root
		parts := strings.Split(files[i].Path, "/")
		for depth, part := range parts {
			node.Count++
			if depth == len(parts)-1 || depth == maxDepth {
				node.Children = append(node.Children, &treeNode{Name: shown(strings.Join(parts[depth:], "/")), File: &files[i], Count: 1})
				break
			}
			last := len(node.Children) - 1
			if last < 0 || node.Children[last].File != nil || node.Children[last].raw != part {
				node.Children = append(node.Children, &treeNode{raw: part})
				last++
			}
			node = node.Children[last]
		}
	}
	for _, c := range root.Children {
		c.join()
	}
	return root.Children
}

// maxDepth bounds the nesting: below it a path is shown whole.
const maxDepth = 24

func (n *treeNode) join() {
	if n.File != nil {
		return
	}
	for len(n.Children) == 1 && n.Children[0].File == nil {
		n.raw += "/" + n.Children[0].raw
		n.Children = n.Children[0].Children
	}
	n.Name = shown(n.raw)
	for _, c := range n.Children {
		c.join()
	}
}
