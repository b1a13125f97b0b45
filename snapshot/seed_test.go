package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// The index answers for what git add has seen, and for nothing else.
func TestIndexSeed(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	for _, name := range []string{"clean", "changed", "assumed", "crlf.txt", "d/deep", "racy"} {
		f.Write(name, name+"\r\n")
	}
	must(t, os.Symlink("clean", filepath.Join(f.Dir, "link")))
	f.Git("add", "-A")
	f.Write("intended", "new\n")
	f.Git("add", "-N", "intended")
	f.Git("update-index", "--assume-unchanged", "assumed")
	f.Write("changed", "CHANGED\r\n") // the same size
	x, err := git.ReadIndex(filepath.Join(f.Dir, ".git", "index"), "sha1")
	must(t, err)
	now := x.ModTime
	x.ModTime = now.Add(time.Hour) // nothing is racy
	raw := func(p string) bool { return filepath.Ext(p) != ".txt" }
	s := scan(t, f.Dir, ScanOptions{Skip: func(p string, _ Kind) bool { return p == ".git" }})
	want := map[string]bool{"clean": true, "d/deep": true, "racy": true}
	check := func(seed *IndexSeed, want map[string]bool) {
		t.Helper()
		for i := range s.Entries {
			e := s.Entries[i]
			id, ok := seed.Lookup(e.Path, &e)
			if ok != want[e.Path] || ok && id != e.ID {
				t.Errorf("%s: %v %v, want %v %v", e.Path, ok, id, want[e.Path], e.ID)
			}
		}
	}
	check(NewIndexSeed(x, raw), want)
	if _, ok := NewIndexSeed(x, raw).Lookup("none", &Entry{Kind: File}); ok {
		t.Error("a path that is not in the index was known")
	}
	x.ModTime = now
	for i := range s.Entries {
		s.Entries[i].Stat.Ctime = now.UnixNano()
	}
	check(NewIndexSeed(x, raw), nil)
	check(NewIndexSeed(&git.Index{}, raw), nil)
}
