package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// packFixture is a store that borrows from an origin and has kept the contents
// of two sessions.
type packFixture struct {
	store        *Store
	origin       string
	stays, goes  superqode.SessionID
	first, later *snapshot.Snapshot
}

func newPackFixture(t *testing.T, format snapshot.Format) *packFixture {
	t.Helper()
	f := &packFixture{origin: t.TempDir()}
	snaptest.Git(t, f.origin, "init", "-q", "--object-format="+format.String())
	snaptest.Spec{"a": "in the origin\n", "d/b": "this too\n"}.Write(t, f.origin)
	snaptest.Git(t, f.origin, "add", "-A")
	snaptest.Git(t, f.origin, "commit", "-q", "-m", "x")
	g, err := git.Find(t.Context(), snaptest.GitEnv(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	f.store, err = Open(t.Context(), g, filepath.Join(t.TempDir(), "store.git"), filepath.Join(f.origin, ".git/objects"), format)
	if err != nil {
		t.Fatal(err)
	}
	scan := func() *snapshot.Snapshot {
		sn, _, err := snapshot.Scan(t.Context(), f.origin, snapshot.ScanOptions{Format: format, Skip: func(p superqode.RelPath, _ snapshot.Kind) bool { return p == ".git" }})
		if err != nil {
			t.Fatal(err)
		}
		return sn
	}
	f.stays, f.goes = superqode.NewSessionID(time.Unix(1, 0)), superqode.NewSessionID(time.Unix(2, 0))
	snaptest.Spec{"only/here": "nowhere else\n"}.Write(t, f.origin)
	f.first = scan()
	f.keep(t, f.stays, f.first)
	snaptest.Spec{"gone": strings.Repeat("of no use\n", 1000)}.Write(t, f.origin)
	f.later = scan()
	f.keep(t, f.goes, f.later)
	return f
}

func (f *packFixture) keep(t *testing.T, id superqode.SessionID, sn *snapshot.Snapshot) {
	t.Helper()
	if err := f.store.WriteBlobs(t.Context(), f.origin, sn.Entries); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Commit(t.Context(), "refs/superqode/"+id.String()+"/base", sn, CommitOptions{When: time.Unix(3, 0)}); err != nil {
		t.Fatal(err)
	}
}

// age makes every pack look a day old.
func (f *packFixture) age(t *testing.T) {
	t.Helper()
	names, err := os.ReadDir(f.store.packs.packDir())
	if err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-24 * time.Hour)
	for _, n := range names {
		if err := os.Chtimes(filepath.Join(f.store.packs.packDir(), n.Name()), then, then); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *packFixture) pack(t *testing.T) Packed {
	t.Helper()
	p, err := f.store.Pack(t.Context(), PackOptions{Now: time.Now(), Idle: func() (bool, error) { return true, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// owns reports which contents of sn the store has itself.
func (f *packFixture) owns(t *testing.T, sn *snapshot.Snapshot) (own, all int) {
	t.Helper()
	fresh, err := OpenExisting(f.store.git, f.store.dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []snapshot.ID
	for _, e := range sn.Entries {
		if e.Kind == snapshot.File {
			ids = append(ids, e.ID)
		}
	}
	have, err := fresh.packs.find(ids)
	if err != nil {
		t.Fatal(err)
	}
	return len(have), len(ids)
}

func TestPackDropsWhatNoRefLeadsTo(t *testing.T) {
	t.Parallel()
	for _, format := range []snapshot.Format{snapshot.SHA1, snapshot.SHA256} {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			f := newPackFixture(t, format)
			f.age(t)
			if p := f.pack(t); p.Done {
				t.Errorf("packed although all is of use: %+v", p)
			}
			if err := f.store.DeleteRefs(t.Context(), f.goes); err != nil {
				t.Fatal(err)
			}
			if p := f.pack(t); !p.Done || p.Dropped != 3 || p.Freed <= 0 { // a blob, a tree, a commit
				t.Errorf("packed %+v", p)
			}
			if own, all := f.owns(t, f.first); own != all { // also what the origin has: it may lose it
				t.Errorf("of %d contents that are of use the store has %d itself", all, own)
			}
			if own, all := f.owns(t, f.later); own != all-1 {
				t.Errorf("of the %d contents of the other session %d are left", all, own)
			}
			snaptest.Git(t, f.store.dir, "--git-dir", f.store.dir, "fsck", "--full", "--strict")
			// The origin goes, and the session's contents are still there.
			if err := os.RemoveAll(f.origin); err != nil {
				t.Fatal(err)
			}
			for _, e := range f.first.Entries {
				var out bytes.Buffer
				if e.Kind == snapshot.File {
					if err := f.store.ReadBlob(t.Context(), e.ID, &out); err != nil || int64(out.Len()) != e.Size {
						t.Errorf("%s: %d bytes, %v", e.Path, out.Len(), err)
					}
				}
			}
			// What the process knew to be there is asked for again.
			snaptest.Spec{"gone": strings.Repeat("of no use\n", 1000)}.Write(t, f.origin)
			if err := f.store.WriteBlobs(t.Context(), f.origin, []snapshot.Entry{*f.later.Find("gone")}); err != nil {
				t.Fatal(err)
			}
			if own, _ := f.owns(t, &snapshot.Snapshot{Entries: []snapshot.Entry{*f.later.Find("gone")}}); own != 1 {
				t.Error("a content that was dropped was not written again")
			}
		})
	}
}

func TestPackLeavesAlone(t *testing.T) {
	t.Parallel()
	never := func() (bool, error) { return false, nil }
	always := func() (bool, error) { return true, nil }
	for name, c := range map[string]struct {
		prepare func(*testing.T, *packFixture)
		idle    func() (bool, error)
		fails   bool
	}{
		"young packs":     {func(*testing.T, *packFixture) {}, always, false},
		"an open session": {func(t *testing.T, f *packFixture) { f.age(t) }, never, false},
		"a broken list":   {func(t *testing.T, f *packFixture) { f.age(t) }, func() (bool, error) { return true, os.ErrPermission }, true},
		"a kept pack": {func(t *testing.T, f *packFixture) {
			f.age(t)
			idx, err := filepath.Glob(f.store.packs.packDir() + "/*.idx")
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range idx {
				snaptest.Write(t, f.store.packs.packDir(), strings.TrimSuffix(filepath.Base(i), ".idx")+".keep", "", 0o600)
			}
		}, always, false},
		"a writer": {func(t *testing.T, f *packFixture) {
			f.age(t)
			unlock, err := lockfile.TryShare(f.store.lockPath())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unlock() })
		}, always, false},
		"a missing object": {func(t *testing.T, f *packFixture) {
			f.age(t)
			snaptest.Write(t, f.store.dir, "refs/superqode/"+f.stays.String()+"/bad", strings.Repeat("1", 40)+"\n", 0o600)
		}, always, true},
		"a torn index": {func(t *testing.T, f *packFixture) {
			idx, err := filepath.Glob(f.store.packs.packDir() + "/*.idx")
			if err != nil || len(idx) == 0 {
				t.Fatal(idx, err)
			}
			if err := os.Chmod(idx[0], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(idx[0], 1100); err != nil {
				t.Fatal(err)
			}
			f.age(t)
		}, always, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPackFixture(t, snapshot.SHA1)
			if err := f.store.DeleteRefs(t.Context(), f.goes); err != nil {
				t.Fatal(err)
			}
			c.prepare(t, f)
			before := fmt.Sprint(os.ReadDir(f.store.packs.packDir()))
			p, err := f.store.Pack(t.Context(), PackOptions{Now: time.Now(), Idle: c.idle})
			if p.Done || (err != nil) != c.fails {
				t.Errorf("%+v, %v", p, err)
			}
			if after := fmt.Sprint(os.ReadDir(f.store.packs.packDir())); after != before {
				t.Errorf("before %s\nafter %s", before, after)
			}
		})
	}
}

func TestPackClearsRests(t *testing.T) {
	t.Parallel()
	f := newPackFixture(t, snapshot.SHA1)
	for _, name := range []string{"tmp_pack_abc", "tmp_idx_abc", "pack-1234.pack"} {
		snaptest.Write(t, f.store.packs.packDir(), name, "half", 0o600)
	}
	f.age(t)
	snaptest.Write(t, f.store.packs.packDir(), "tmp_pack_young", "someone writes this", 0o600)
	for i := range packMany {
		snaptest.Spec{"more": fmt.Sprintln(i)}.Write(t, f.origin)
		e := snapshot.Entry{Path: "more", Kind: snapshot.File, Size: int64(len(fmt.Sprintln(i))), ID: snapshot.SHA1.HashBlob([]byte(fmt.Sprintln(i)))}
		f.keep(t, superqode.NewSessionID(time.Unix(int64(i), 0)), &snapshot.Snapshot{Root: f.origin, Format: snapshot.SHA1, Entries: []snapshot.Entry{e}})
	}
	f.age(t)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(f.store.packs.packDir(), "tmp_pack_young"), now, now); err != nil {
		t.Fatal(err)
	}
	if p := f.pack(t); !p.Done || p.Dropped != 0 {
		t.Errorf("%+v", p)
	}
	names, err := os.ReadDir(f.store.packs.packDir())
	if err != nil || len(names) != 3 {
		t.Errorf("left: %v (%v)", names, err)
	}
	snaptest.Git(t, f.store.dir, "--git-dir", f.store.dir, "fsck", "--full", "--strict")
}
