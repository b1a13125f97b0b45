package watch

import (
	"errors"
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

// TestGoneWithoutWatch removes a file from a folder that has lost its watch: it was
// moved, and found at its new place before that was told.
func TestGoneWithoutWatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "p", "in", "f")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n := &notifier{e: newEngine(Options{Root: root}, rootInfo(t)), w: w, wake: make(chan struct{}, 1), dirs: map[string]uint64{}, where: map[uint64]string{}}
	if err := errors.Join(n.e.sweep(t.Context(), true, nil), os.Remove(file), n.tree(t.Context(), "p")); err != nil {
		t.Fatal(err)
	}
	if _, told := n.e.dirty["p/in/f"]; !told {
		t.Errorf("hints %v", n.e.dirty)
	}
}
