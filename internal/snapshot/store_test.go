package snapshot

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
)

func TestOpenStoreAtOnce(t *testing.T) {
	t.Parallel()
	g, err := git.Find(t.Context(), gitEnv(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	src := t.TempDir()
	spec{"a": "1\n", "b/c": "2\n"}.write(t, src)
	snap := testWalk(t, src, true)
	dir := filepath.Join(t.TempDir(), "p/store.git")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s, err := OpenStore(t.Context(), g, dir, "", SHA1)
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
	benchGit(t, dir, "--git-dir", dir, "fsck", "--strict")
	names, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Error(st, err)
	}
	if _, err := OpenStore(t.Context(), g, dir, "", SHA256); err == nil {
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
		benchGit(t, d, "init", "-q")
	}
	spec{"f": "far\n"}.write(t, far)
	farID, err := ParseID(strings.TrimSpace(benchGit(t, far, "hash-object", "-w", "f")))
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(filepath.Join(odd, ".git/objects"), filepath.Join(far, ".git/objects"))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, odd, ".git/objects/info/alternates", rel+"\n", 0o644)
	tree := spec{"a": "1\n", "d/b": "2\n"}
	for i := range fewTrees { // more folders than are written without asking
		tree[fmt.Sprintf("d%d/f", i)] = fmt.Sprintln(i)
	}
	tree.write(t, odd)
	benchGit(t, odd, "add", "-A")
	benchGit(t, odd, "commit", "-q", "-m", "x")
	s := testStore(t, filepath.Join(odd, ".git/objects"), SHA1)
	snap := testWalk(t, odd, true)
	for _, id := range []ID{farID, snap.Find("a").ID} {
		var b bytes.Buffer
		if err := s.ReadBlob(t.Context(), id, &b); err != nil || SHA1.HashBlob(b.Bytes()) != id {
			t.Error(id, err, b.String())
		}
	}
	if err := s.ReadBlob(t.Context(), SHA1.HashBlob([]byte("nobody has this")), &bytes.Buffer{}); !errors.Is(err, superqode.ErrNotFound) {
		t.Error(err)
	}
	id, err := s.Commit(t.Context(), "refs/superqode/s/base", snap, CommitOptions{Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if n := benchGit(t, s.Dir(), "--git-dir", s.Dir(), "count-objects", "-v"); !strings.Contains(n, "in-pack: 1\n") {
		t.Errorf("more than the commit was written:\n%s", n)
	}
	if a, b := benchGit(t, odd, "rev-parse", "HEAD^{tree}"), benchGit(t, s.Dir(), "--git-dir", s.Dir(), "rev-parse", id+"^{tree}"); a != b {
		t.Errorf("tree %s, git's is %s", b, a)
	}
}

func TestStoreRefs(t *testing.T) {
	t.Parallel()
	s := testStore(t, "", SHA1)
	one, two := superqode.NewSessionID(time.Now()), superqode.NewSessionID(time.Now())
	snap := &Snapshot{Format: SHA1}
	for _, ref := range []string{one.String() + "/base", one.String() + "/salvage/x", two.String() + "/base"} {
		if _, err := s.Commit(t.Context(), "refs/superqode/"+ref, snap, CommitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refs, err := s.Refs(t.Context(), one)
	if err != nil || len(refs) != 2 || refs["base"] == "" || refs["salvage/x"] == "" {
		t.Error(refs, err)
	}
	benchGit(t, s.Dir(), "--git-dir", s.Dir(), "pack-refs", "--all")
	for range 2 {
		if err := s.DeleteRefs(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	refs, err = s.Refs(t.Context(), one)
	refs2, err2 := s.Refs(t.Context(), two)
	if err != nil || err2 != nil || len(refs) != 0 || len(refs2) != 1 {
		t.Error(refs, err, refs2, err2)
	}
	for _, bad := range []string{"refs/heads/x", "refs/superqode/a", "refs/superqode/../../x/y", "refs/superqode/a/b.lock", "refs/superqode/a//b", "refs/superqode/a/-b", "refs/superqode/a/b c"} {
		if _, err := s.Commit(t.Context(), bad, snap, CommitOptions{}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestWriteBlobs(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{SHA1, SHA256} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			src := t.TempDir()
			big := strings.Repeat("big and bigger ", 1<<17)
			spec{"a": "1\n", "b": "1\n", "e": "", "link": "-> a", "big": big, "edge": big[:packSmall], "edge1": big[:packSmall+1], "d": "DIR"}.write(t, src)
			snap := rehash(t, testWalk(t, src, true), f)
			s := testStore(t, "", f)
			for range 2 {
				if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
					t.Fatal(err)
				}
				s.mine = map[ID]bool{} // as another process
			}
			if packs, _ := filepath.Glob(s.Dir() + "/objects/pack/*"); len(packs) != 2 {
				t.Errorf("not one pack: %v", packs)
			}
			benchGit(t, s.Dir(), "--git-dir", s.Dir(), "fsck", "--strict")
			for _, e := range snap.Entries {
				var b bytes.Buffer
				if e.Kind == Dir {
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
	spec{"gone": "1\n", "changed": "2\n", "grown": "3\n", "big": big, "kept": "4\n", "fifo": "5\n", "linked": "6\n"}.write(t, src)
	snap := testWalk(t, src, true)
	for _, p := range []string{"gone", "fifo", "linked"} {
		if err := os.Remove(filepath.Join(src, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(filepath.Join(src, "fifo"), 0o644), os.Symlink("kept", filepath.Join(src, "linked"))); err != nil {
		t.Fatal(err)
	}
	spec{"changed": "two\n", "grown": big + big, "big": big[1:]}.write(t, src)
	s := testStore(t, "", SHA1)
	err := s.WriteBlobs(t.Context(), src, snap.Entries)
	changed, ok := errors.AsType[*ChangedError](err)
	if !ok || strings.Join(changed.Paths, " ") != "big changed fifo gone grown linked" {
		t.Fatal(err)
	}
	benchGit(t, s.Dir(), "--git-dir", s.Dir(), "fsck", "--strict")
	for _, id := range []ID{snap.Find("kept").ID, SHA1.HashBlob([]byte("two\n")), SHA1.HashBlob([]byte(big + big))} {
		if err := s.ReadBlob(t.Context(), id, &bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	}
}

func TestMaterialize(t *testing.T) {
	t.Parallel()
	src := copyTree(t)
	if err := unix.Mkfifo(filepath.Join(src, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	snap := testWalk(t, src, true)
	s := testStore(t, "", SHA1)
	if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	t.Cleanup(func() { unlock(dst) })
	mustWrite(t, dst, "others/own", "kept", 0o600)
	for i := range 2 {
		problems, err := Materialize(t.Context(), snap, s, dst, MaterializeOptions{Replace: i == 1})
		if err != nil || len(problems) != 1 || problems[0].Path != "pipe" || !errors.Is(problems[0], ErrSpecial) {
			t.Fatal(err, problems)
		}
		got := testWalk(t, dst, true)
		want := *snap
		want.Entries = nil
		for _, e := range snap.Entries {
			if e.Kind != Other {
				want.Entries = append(want.Entries, e)
			}
		}
		mine := got.Entries[:0]
		for _, e := range got.Entries {
			if !strings.HasPrefix(e.Path, "others") {
				mine = append(mine, e)
			}
		}
		got.Entries = mine
		sameTree(t, &want, got, true)
		mustWrite(t, dst, "a/x", "damaged", 0o777)
		if err := errors.Join(os.Remove(filepath.Join(dst, "link")), os.WriteFile(filepath.Join(dst, "link"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Materialize(t.Context(), snap, s, dst, MaterializeOptions{}); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
}

func TestMaterializeFollowsNoLink(t *testing.T) {
	t.Parallel()
	src, dst, out := t.TempDir(), t.TempDir(), t.TempDir()
	spec{"d/f": "1\n", "l": "2\n"}.write(t, src)
	snap := testWalk(t, src, true)
	s := testStore(t, "", SHA1)
	if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, out, "victim", "safe", 0o600)
	mustWrite(t, dst, "inside/keep", "safe", 0o600)
	for _, target := range []string{out, "inside"} {
		spec{"d": "-> " + target, "l": "-> " + filepath.Join(out, "victim")}.write(t, dst)
		if _, err := Materialize(t.Context(), snap, s, dst, MaterializeOptions{Replace: true}); err == nil {
			t.Errorf("went through the link to %s", target)
		}
		if err := errors.Join(os.Remove(filepath.Join(dst, "d")), os.Remove(filepath.Join(dst, "l"))); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(out, "victim")); string(b) != "safe" {
		t.Error(string(b), err)
	}
	if l, _ := os.ReadDir(filepath.Join(dst, "inside")); len(l) != 1 {
		t.Error(l)
	}
}
