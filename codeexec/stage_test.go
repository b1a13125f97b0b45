package codeexec_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/codeexec"
	"github.com/seed-2d964004/superqode/workspace"
)

// tree makes a directory with a script, a link inside it and an odd name.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "skill")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.WriteFile(filepath.Join(dir, "bin", "run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o755),
		os.WriteFile(filepath.Join(dir, "-n \n..x"), nil, 0o640), os.Symlink("bin/run.sh", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStage holds that a tree arrives whole, that it can be staged again over itself, and that
// a workspace with a read-only tree can be released.
func TestStage(t *testing.T) {
	t.Parallel()
	r, w := acquire(t)
	dir := tree(t)
	for range 2 {
		if err := w.StageDirectory(t.Context(), dir, "skills/a", true); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]fs.FileMode{"": 0o555, "bin": 0o555, "bin/run.sh": 0o555, "-n \n..x": 0o440} {
		if st, err := os.Stat(filepath.Join(w.Dir.Root(), "skills/a", name)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, st, err)
		}
	}
	staged, err := w.StageInputs(t.Context(), codeexec.Input{From: "skill://a/bin"}, codeexec.Input{From: "host://" + dir, To: "work/b"},
		codeexec.Input{From: "workspace://work/b/link", To: "out/link"})
	if err != nil || len(staged) != 3 {
		t.Errorf("%+v, %v", staged, err)
	}
	res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", "work/inputs/bin/run.sh && work/b/link && out/link"}})
	if err != nil || res.Stdout != "ran\nran\nran\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := r.Release(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

// TestStageArtifact holds that the version that a name had can be taken again.
func TestStageArtifact(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	r := registry(dir)
	w, err := r.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifacts.Open(filepath.Join(dir, "origin"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := codeexec.Input{From: "artifact://log", To: "work/pinned"}
	for _, data := range []string{"first", "second"} {
		if _, err := store.Add(t.Context(), artifacts.New{Type: artifacts.TypeLog, Name: "log", Path: "logs/" + data, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
		staged, err := w.StageInputs(t.Context(), codeexec.Input{From: "artifact://log"}, pinned)
		if err != nil {
			t.Fatal(err)
		}
		pinned.From = "artifact://" + staged[1].Resolved
	}
	for name, want := range map[string]string{"work/inputs/log": "second", "work/pinned": "first"} {
		if got, err := w.Dir.Read(t.Context(), name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestStageAttacks holds that nothing is read or written outside by a name or a link.
func TestStageAttacks(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	dir, outside := tree(t), t.TempDir()
	for _, link := range [][2]string{{outside, "work/out"}, {"/etc/passwd", "work/passwd"}} {
		if err := os.Symlink(link[0], filepath.Join(w.Dir.Root(), link[1])); err != nil {
			t.Fatal(err)
		}
	}
	for in, field := range map[codeexec.Input]string{
		{From: "nothing"}: "from", {From: "ftp://x"}: "from", {From: "host://rel"}: "from", {From: "host://" + dir, To: "../x"}: "to",
		{From: "workspace://../x"}: "from", {From: "skill://../work"}: "from", {From: "skill://.."}: "from",
		{From: "host://" + dir, To: "work/out/x"}: "from", {From: "workspace://work/passwd"}: "from", {From: "artifact://no"}: "from",
	} {
		_, err := w.StageInputs(t.Context(), in)
		if err == nil || !strings.HasPrefix(err.Error(), "inputs[0]."+field+": ") {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(w.Dir.Root(), "work", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.StageInputs(t.Context(), codeexec.Input{From: "workspace://work/fifo"}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("a FIFO: %v", err)
	}
	if err := os.Symlink("../../etc", filepath.Join(dir, "evil")); err != nil {
		t.Fatal(err)
	}
	if err := w.StageDirectory(t.Context(), dir, "work/c", false); !errors.Is(err, workspace.ErrPathTraversal) {
		t.Errorf("a link that leads out: %v", err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside are %v, %v", left, err)
	}
	if _, err := w.StageInputs(t.Context(), codeexec.Input{From: "ftp://x"}); !errors.Is(err, superqode.ErrUsage) {
		t.Error(err)
	}
}

// TestStageHoles holds that a large file that holds nothing stays one.
func TestStageHoles(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	const size = 1 << 40
	res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", "printf begin >out/holes && truncate -s 549755813888 out/holes && printf middle >>out/holes && truncate -s 1099511627776 out/holes && truncate -s 1G out/empty"}})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := w.StageInputs(t.Context(), codeexec.Input{From: "workspace://out", To: "work/copy"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(w.Dir.Root(), "work/copy/holes"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() != size || st.Sys().(*syscall.Stat_t).Blocks > 1<<10 {
		t.Errorf("%+v, %v", st, err)
	}
	got := make([]byte, 12)
	if _, err := f.ReadAt(got, size/2-3); err != nil || string(got) != "\x00\x00\x00middle\x00\x00\x00" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := f.ReadAt(got[:6], 0); err != nil || string(got[:6]) != "begin\x00" {
		t.Errorf("%q, %v", got, err)
	}
	if st, err := os.Stat(filepath.Join(w.Dir.Root(), "work/copy/empty")); err != nil || st.Size() != 1<<30 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := w.Dir.Read(t.Context(), "work/copy/holes"); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("Read: %v", err)
	}
}
