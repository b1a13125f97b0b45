package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

func TestCompareKindsAndUnknown(t *testing.T) {
	t.Parallel()
	file := snapshot.Entry{Path: "p", Kind: snapshot.File, Perm: 0o644, Size: 1, ID: snapshot.SHA1.HashBlob([]byte("1")), Stat: snapshot.Stat{Ino: 1}}
	with := func(change func(*snapshot.Entry)) snapshot.Entry {
		e := file
		change(&e)
		return e
	}
	dir := snapshot.Entry{Path: "p", Kind: snapshot.Dir, Perm: 0o755}
	link := snapshot.Entry{Path: "p", Kind: snapshot.Link, Link: "1", Size: 1, ID: file.ID}
	unknown := with(func(e *snapshot.Entry) { e.ID = snapshot.ID{} })
	for name, c := range map[string]struct {
		old, now snapshot.Entry
		dirs     bool
		want     superqode.ChangeType
	}{
		"same":                 {file, file, true, ""},
		"other stat":           {file, with(func(e *snapshot.Entry) { e.Stat.Ino = 2 }), true, ""},
		"mode":                 {file, with(func(e *snapshot.Entry) { e.Perm = 0o4644 }), false, superqode.ChangeMode},
		"file to folder":       {file, dir, false, superqode.ChangeDeleted},
		"file to folder, dirs": {file, dir, true, superqode.ChangeKind},
		"folder to file":       {dir, file, false, superqode.ChangeCreated},
		"file to link":         {file, link, false, superqode.ChangeKind},
		"bits of a link":       {link, snapshot.Entry{Path: "p", Kind: snapshot.Link, Link: "1", Size: 1, Perm: 0o700}, false, ""},
		"target of a link":     {link, snapshot.Entry{Path: "p", Kind: snapshot.Link, Link: "2", Size: 1}, false, superqode.ChangeModified},
		"mode of a folder":     {dir, snapshot.Entry{Path: "p", Kind: snapshot.Dir, Perm: 0o700}, false, ""},
		"the same, with dirs":  {dir, snapshot.Entry{Path: "p", Kind: snapshot.Dir, Perm: 0o700}, true, superqode.ChangeMode},
		"unknown, same state":  {unknown, unknown, false, ""},
		"unknown, other state": {unknown, with(func(e *snapshot.Entry) { e.ID, e.Stat.Mtime = snapshot.ID{}, 5 }), false, superqode.ChangeModified},
		"one unknown, state":   {file, unknown, false, ""},
	} {
		got := snapshot.Compare(&snapshot.Snapshot{Entries: []snapshot.Entry{c.old}}, &snapshot.Snapshot{Entries: []snapshot.Entry{c.now}}, snapshot.CompareOptions{Dirs: c.dirs, Renames: true})
		switch {
		case c.want == "" && len(got) == 0:
		case len(got) != 1 || got[0].Type != c.want || got[0].Path.String() != "p":
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// Exact renames, modes and types are those of git diff -M100%.
func TestCompareAsGit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 12 {
		f := gittest.Repo(t)
		write := func(n int) {
			for range n {
				p := filepath.Join(f.Dir, fmt.Sprintf("d%d/n%d", rng.IntN(4), rng.IntN(5)))
				snaptest.Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
				_ = os.Remove(p)
				if rng.IntN(8) == 0 {
					snaptest.Must(t, os.Symlink(fmt.Sprint(rng.IntN(3)), p))
					continue
				}
				snaptest.Must(t, os.WriteFile(p, fmt.Appendf(nil, "%d", rng.IntN(4)), []os.FileMode{0o644, 0o755}[rng.IntN(2)]))
			}
		}
		skip := func(p superqode.RelPath, _ snapshot.Kind) bool { return p == ".git" }
		write(12)
		f.Git("add", "-A")
		base := snaptest.Scan(t, f.Dir, snapshot.ScanOptions{Skip: skip})
		tree := strings.TrimSpace(f.Git("write-tree"))
		for _, e := range base.Entries {
			if e.Kind != snapshot.Dir && rng.IntN(2) == 0 {
				snaptest.Must(t, os.Remove(e.Path.In(f.Dir)))
			}
		}
		write(8)
		f.Git("add", "-A")
		final := snaptest.Scan(t, f.Dir, snapshot.ScanOptions{Skip: skip})
		var got []string
		for _, c := range snapshot.Compare(base, final, snapshot.CompareOptions{Renames: true}) {
			letter := map[superqode.ChangeType]string{superqode.ChangeCreated: "A", superqode.ChangeDeleted: "D", superqode.ChangeModified: "M", superqode.ChangeMode: "M", superqode.ChangeKind: "T", superqode.ChangeRenamed: "R100"}[c.Type]
			if c.Type == superqode.ChangeRenamed {
				letter += "\t" + string(c.OldPath)
			}
			got = append(got, letter+"\t"+string(c.Path))
		}
		want := strings.Split(strings.TrimSpace(f.Git("diff", "--cached", "--name-status", "-M100%", "-l0", tree)), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) && len(got)+len(want[0]) > 0 {
			t.Errorf("round %d:\n got %q\nwant %q", round, got, want)
		}
	}
}
