package linked

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// TestCopyIndex asks git, which does not read a file whose stat data the index has.
func TestCopyIndex(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	for _, name := range []string{"a", "dir/b", "dirty", "gone"} {
		f.Write(name, "as committed\n")
	}
	f.Symlink("a", "link")
	f.Commit("one")
	f.Settle()
	index, later := filepath.Join(f.Dir, ".git/index"), time.Now().Add(time.Second) // no file changed as it was written
	if err := os.Chtimes(index, later, later); err != nil {
		t.Fatal(err)
	}
	f.Write("dirty", "AS COMMITTED\n") // of the same size
	f.Remove("gone")
	skip := func(path superqode.RelPath, _ snapshot.Kind) bool { return path == ".git" }
	origin, _, err := snapshot.Scan(t.Context(), f.Dir, snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly, Skip: skip})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	base, _, err := treecopy.Copy(t.Context(), origin, dir, treecopy.CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := CopyIndex(index, index, "sha1", "", origin, base); err != nil {
		t.Fatal(err)
	}
	if got := f.GitIn(dir, "--git-dir="+f.Dir+"/.git", "--work-tree="+dir, "diff-files", "--name-only"); got != "dirty\ngone" {
		t.Errorf("git would read %q", got)
	}
}
