package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestFolderInAnothersPlace moves a watched folder away and another one into its
// place, and looks at that before fsnotify has told anything.
func TestFolderInAnothersPlace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, d := range []string{"p", "q"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // nobody reads its events: it waits with the first one, and forgets nothing by itself
	n := &notifier{e: newEngine(Options{Root: root}, rootInfo(t)), w: w, wake: make(chan struct{}, 1), dirs: map[string]uint64{}, where: map[uint64]string{}}
	for _, d := range []string{"", "p", "q"} {
		if err := n.add(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range [][2]string{{"p", "r"}, {"q", "p"}} {
		if err := os.Rename(filepath.Join(root, m[0]), filepath.Join(root, m[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.add("p"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"p", "q"} {
		for _, again := range append(n.drop(d, true), d) {
			if err := n.add(again); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, watched := n.dirs["p"]; !watched {
		t.Error("p is not watched")
	}
}
