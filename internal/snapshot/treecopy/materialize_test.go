package treecopy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

func TestMaterialize(t *testing.T) {
	t.Parallel()
	src := copyTree(t)
	if err := unix.Mkfifo(filepath.Join(src, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	snap := snaptest.Walk(t, src, true)
	s := openStore(t, "", snapshot.SHA1)
	if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	t.Cleanup(func() { snaptest.Unlock(dst) })
	snaptest.Write(t, dst, "others/own", "kept", 0o600)
	for i := range 2 {
		problems, err := Materialize(t.Context(), snap, s, dst, MaterializeOptions{Replace: i == 1})
		if err != nil || len(problems) != 1 || problems[0].Path != "pipe" || !errors.Is(problems[0], ErrSpecial) {
			t.Fatal(err, problems)
		}
		got := snaptest.Walk(t, dst, true)
		want := *snap
		want.Entries = nil
		for _, e := range snap.Entries {
			if e.Kind != snapshot.Other {
				want.Entries = append(want.Entries, e)
			}
		}
		mine := got.Entries[:0]
		for _, e := range got.Entries {
			if !strings.HasPrefix(string(e.Path), "others") {
				mine = append(mine, e)
			}
		}
		got.Entries = mine
		snaptest.Same(t, &want, got, true)
		snaptest.Write(t, dst, "a/x", "damaged", 0o777)
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
	snaptest.Spec{"d/f": "1\n", "l": "2\n"}.Write(t, src)
	snap := snaptest.Walk(t, src, true)
	s := openStore(t, "", snapshot.SHA1)
	if err := s.WriteBlobs(t.Context(), src, snap.Entries); err != nil {
		t.Fatal(err)
	}
	snaptest.Write(t, out, "victim", "safe", 0o600)
	snaptest.Write(t, dst, "inside/keep", "safe", 0o600)
	for _, target := range []string{out, "inside"} {
		snaptest.Spec{"d": "-> " + target, "l": "-> " + filepath.Join(out, "victim")}.Write(t, dst)
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

func openStore(tb testing.TB, objects string, f snapshot.Format) *store.Store {
	tb.Helper()
	g, err := git.Find(tb.Context(), snaptest.GitEnv(tb.TempDir()))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := store.Open(tb.Context(), g, filepath.Join(tb.TempDir(), "project/store.git"), objects, f)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
