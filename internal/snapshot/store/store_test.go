package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

func TestOpenStoreAtOnce(t *testing.T) {
	t.Parallel()
	g, err := git.Find(t.Context(), snaptest.GitEnv(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	src := t.TempDir()
	snaptest.Spec{"a": "1\n", "b/c": "2\n"}.Write(t, src)
	snap := snaptest.Walk(t, src, true)
	dir := filepath.Join(t.TempDir(), "p/store.git")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s, err := Open(t.Context(), g, dir, "", snapshot.SHA1)
			if err == nil {
				err = s.WriteBlobs(t.Context(), src, snap.Entries)
			}
			if err == nil {
				_, err = s.Commit(t.Context(), "refs/superqode/s/base"+string(rune('a'+i)), snap, CommitOptions{When: time.Unix(int64(i), 0)})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	snaptest.Git(t, dir, "--git-dir", dir, "fsck", "--strict")
	names, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Error(st, err)
	}
	if _, err := Open(t.Context(), g, dir, "", snapshot.SHA256); err == nil {
		t.Error("opened with another object format")
	}
}

func TestStoreBorrowsFromOrigin(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "odd \"name\"\nhere")
	far := filepath.Join(t.TempDir(), "far")
	for _, d := range []string{odd, far} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		snaptest.Git(t, d, "init", "-q")
	}
	snaptest.Spec{"f": "far\n"}.Write(t, far)
	farID, err := snapshot.ParseID(strings.TrimSpace(snaptest.Git(t, far, "hash-object", "-w", "f")))
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(filepath.Join(odd, ".git/objects"), filepath.Join(far, ".git/objects"))
	if err != nil {
		t.Fatal(err)
	}
	snaptest.Write(t, odd, ".git/objects/info/alternates", rel+"\n", 0o644)
	tree := snaptest.Spec{"a": "1\n", "d/b": "2\n"}
	for i := range fewTrees { // more folders than are written without asking
		tree[fmt.Sprintf("d%d/f", i)] = fmt.Sprintln(i)
	}
	tree.Write(t, odd)
	snaptest.Git(t, odd, "add", "-A")
	snaptest.Git(t, odd, "commit", "-q", "-m", "x")
	s := testStore(t, filepath.Join(odd, ".git/objects"), snapshot.SHA1)
	snap := snaptest.Walk(t, odd, true)
	for _, id := range []snapshot.ID{farID, snap.Find("a").ID} {
		var b bytes.Buffer
		if err := s.ReadBlob(t.Context(), id, &b); err != nil || snapshot.SHA1.HashBlob(b.Bytes()) != id {
			t.Error(id, err, b.String())
		}
	}
	if err := s.ReadBlob(t.Context(), snapshot.SHA1.HashBlob([]byte("nobody has this")), &bytes.Buffer{}); !errors.Is(err, superqode.ErrNotFound) {
		t.Error(err)
	}
	id, err := s.Commit(t.Context(), "refs/superqode/s/base", snap, CommitOptions{Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if n := snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "count-objects", "-v"); !strings.Contains(n, "in-pack: 1\n") {
		t.Errorf("more than the commit was written:\n%s", n)
	}
	if a, b := snaptest.Git(t, odd, "rev-parse", "HEAD^{tree}"), snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "rev-parse", id+"^{tree}"); a != b {
		t.Errorf("tree %s, git's is %s", b, a)
	}
}

func TestStoreRefs(t *testing.T) {
	t.Parallel()
	s := testStore(t, "", snapshot.SHA1)
	one, two := superqode.NewSessionID(time.Now()), superqode.NewSessionID(time.Now())
	snap := &snapshot.Snapshot{Format: snapshot.SHA1}
	for _, ref := range []string{one.String() + "/base", one.String() + "/salvage/x", two.String() + "/base"} {
		if _, err := s.Commit(t.Context(), "refs/superqode/"+ref, snap, CommitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, unfinished := range []string{"/.final.tmp-1", "/salvage/x.lock"} {
		if err := os.WriteFile(filepath.Join(s.Dir(), "refs/superqode", one.String()+unfinished), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refs, err := s.Refs(one)
	if err != nil || len(refs) != 2 || refs["base"] == "" || refs["salvage/x"] == "" {
		t.Error(refs, err)
	}
	snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "pack-refs", "--all")
	for range 2 {
		if err := s.DeleteRefs(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	refs, err = s.Refs(one)
	refs2, err2 := s.Refs(two)
	if err != nil || err2 != nil || len(refs) != 0 || len(refs2) != 1 {
		t.Error(refs, err, refs2, err2)
	}
	if left, err := filepath.Glob(filepath.Join(s.Dir(), "refs/superqode", one.String()+"*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	for _, bad := range []string{"refs/heads/x", "refs/superqode/a", "refs/superqode/../../x/y", "refs/superqode/a/b.lock", "refs/superqode/a//b", "refs/superqode/a/-b", "refs/superqode/a/b c"} {
		if _, err := s.Commit(t.Context(), bad, snap, CommitOptions{}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestWriteBlobs(t *testing.T) {
	t.Parallel()
	for _, f := range []snapshot.Format{snapshot.SHA1, snapshot.SHA256} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			src := t.TempDir()
			big := strings.Repeat("big and bigger ", 1<<17)
			snaptest.Spec{"a": "1\n", "b": "1\n", "e": "", "link": "-> a", "big": big, "edge": big[:packSmall], "edge1": big[:packSmall+1], "d": "DIR"}.Write(t, src)
			snap := rehash(t, snaptest.Walk(t, src, true), f)
			s := testStore(t, "", f)
			for range 2 {
				if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
					t.Fatal(err)
				}
				s.packs.known = map[snapshot.ID]bool{} // as another process
			}
			if packs, _ := filepath.Glob(s.Dir() + "/objects/pack/*"); len(packs) != 2 {
				t.Errorf("not one pack: %v", packs)
			}
			snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "fsck", "--strict")
			for _, e := range snap.Entries {
				var b bytes.Buffer
				if e.Kind == snapshot.Dir {
					continue
				}
				if err := s.ReadBlob(t.Context(), e.ID, &b); err != nil || f.HashBlob(b.Bytes()) != e.ID {
					t.Errorf("%s: %v", e.Path, err)
				}
			}
		})
	}
}

func TestWriteBlobsNamesWhatChanged(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	big := strings.Repeat("x", 1<<20)
	snaptest.Spec{"gone": "1\n", "changed": "2\n", "grown": "3\n", "big": big, "kept": "4\n", "fifo": "5\n", "linked": "6\n"}.Write(t, src)
	snap := snaptest.Walk(t, src, true)
	for _, p := range []string{"gone", "fifo", "linked"} {
		if err := os.Remove(filepath.Join(src, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(filepath.Join(src, "fifo"), 0o644), os.Symlink("kept", filepath.Join(src, "linked"))); err != nil {
		t.Fatal(err)
	}
	snaptest.Spec{"changed": "two\n", "grown": big + big, "big": big[1:]}.Write(t, src)
	s := testStore(t, "", snapshot.SHA1)
	err := s.WriteBlobs(t.Context(), src, snap.Entries)
	changed, ok := errors.AsType[*ChangedError](err)
	if !ok || fmt.Sprint(changed.Paths) != "[big changed fifo gone grown linked]" {
		t.Fatal(err)
	}
	snaptest.Git(t, s.Dir(), "--git-dir", s.Dir(), "fsck", "--strict")
	for _, id := range []snapshot.ID{snap.Find("kept").ID, snapshot.SHA1.HashBlob([]byte("two\n")), snapshot.SHA1.HashBlob([]byte(big + big))} {
		if err := s.ReadBlob(t.Context(), id, &bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	}
}
