package guard

import (
	"slices"
	"strings"
	"sync"
)

// words is a list of words in a text. The text is split when somebody asks: the
// shim and the hooks start with every git command of a session, and need few of
// the lists.
type words struct {
	text string
	once sync.Once
	list []string
}

func (w *words) all() []string {
	w.once.Do(func() { w.list = strings.Fields(w.text) })
	return w.list
}

func (w *words) has(word string) bool { return slices.Contains(w.all(), word) }
