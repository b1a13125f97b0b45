package codeexec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/codeexec"
)

// TestSavedAndStagedAgain holds that a program's file comes back with its mode, at its path,
// in the version that was pinned, and that the metadata says so.
func TestSavedAndStagedAgain(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	spec := codeexec.Spec{Globs: []string{"out/**"}, Save: true, NameTemplate: "kit-"}
	for n := 1; n <= 2; n++ {
		script := fmt.Sprintf("mkdir -p out/bin && printf '#!/bin/sh\\necho %d\\n' >out/bin/run.sh && chmod 755 out/bin/run.sh", n)
		if res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", script}}); err != nil || res.ExitCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		c, err := w.CollectOutputs(t.Context(), spec)
		if err != nil || len(c.Files) != 1 || c.Files[0].SavedAs != "kit-run.sh" || c.Files[0].Version != n || c.Files[0].Content != nil {
			t.Fatalf("%+v, %v", c, err)
		}
		staged, err := w.StageInputs(t.Context(), codeexec.Input{From: "artifact://kit-run.sh"}, codeexec.Input{From: "artifact://kit-run.sh", To: "work/pinned", Pin: true})
		if err != nil || staged[0].To != "work/inputs/out/bin/run.sh" || staged[0].Version != n || staged[1].Version != 1 {
			t.Fatalf("%+v, %v", staged, err)
		}
	}
	res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", "work/inputs/out/bin/run.sh && work/pinned && stat -c %a work/pinned"}})
	if err != nil || res.Stdout != "2\n1\n755\n" {
		t.Errorf("%+v, %v", res, err)
	}
	m, err := w.Metadata(t.Context())
	if err != nil || m.Version != 1 || len(m.Inputs) != 4 || len(m.Outputs) != 2 || m.Outputs[1].SavedAs[0] != "kit-run.sh" || m.Outputs[1].Versions[0] != 2 || m.LastAccess.Before(m.Outputs[1].Time) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestNameTemplate holds that names that meet, or that no artifact has, become others.
func TestNameTemplate(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	if err := w.Put(t.Context(), codeexec.File{Path: "out/a/x.txt"}, codeexec.File{Path: "out/b/x.txt"}, codeexec.File{Path: "out/-odd \n"}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for template, want := range map[string]string{"": "", "r-{path}": "r-out-a-x.txt", "v1_{name}": "", "../{name}": ""} {
		c, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: []string{"out/**"}, Save: true, NameTemplate: template})
		if err != nil || len(c.Files) != 3 {
			t.Fatalf("%q: %+v, %v", template, c, err)
		}
		for _, f := range c.Files {
			if artifacts.CheckName(f.SavedAs) != nil || f.Version != 1 || seen[f.SavedAs] {
				t.Errorf("%q: %+v", template, f)
			}
			seen[f.SavedAs] = true
		}
		if want != "" && !seen[want] {
			t.Errorf("%q: %v", template, seen)
		}
	}
}

// TestLinkedInputs holds what a link leads to, and that an artifact is none.
func TestLinkedInputs(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	dir := tree(t)
	if err := w.StageDirectory(t.Context(), dir, "skills/a", false); err != nil {
		t.Fatal(err)
	}
	_, err := w.StageInputs(t.Context(), codeexec.Input{From: "host://" + dir, To: "work/h", Mode: "link"}, codeexec.Input{From: "skill://a/bin", To: "work/s", Mode: "link"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"h": dir, "s": "../skills/a/bin"} {
		if to, err := os.Readlink(filepath.Join(w.Dir.Root(), "work", name)); err != nil || to != want {
			t.Errorf("%s leads to %q, %v", name, to, err)
		}
	}
	for in, field := range map[codeexec.Input]string{{From: "artifact://a", Mode: "link"}: "mode", {From: "host://" + dir, Mode: "move"}: "mode", {From: "host://" + dir, To: ".", Mode: "link"}: "from", {From: "host://" + dir + "/none", Mode: "link"}: "from"} {
		if _, err := w.StageInputs(t.Context(), in); err == nil || !strings.HasPrefix(err.Error(), "inputs[0]."+field+": ") {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// TestMetadataAttacks: whatever a program puts in the place of the metadata, it is not
// followed, not waited for, and replaced by the next entry.
func TestMetadataAttacks(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	file, outside := filepath.Join(w.Dir.Root(), codeexec.MetadataFile), filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, attack := range map[string]func() error{
		"nothing": func() error { return nil }, "garbage": func() error { return os.WriteFile(file, []byte("{"), 0o600) },
		"null": func() error { return os.WriteFile(file, []byte(`{"version":1}`), 0o600) },
		"huge": func() error { return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<40)) },
		"link": func() error { return os.Symlink(outside, file) }, "fifo": func() error { return syscall.Mkfifo(file, 0o600) },
		"directory": func() error { return os.MkdirAll(file+"/x/y", 0o700) },
		"forged": func() error {
			return os.WriteFile(file, []byte(`{"version":1,"prepared":{},"inputs":[{"from":"artifact://a","to":"work/a","resolved":"../../x@1","version":1}]}`), 0o600)
		},
	} {
		if err := errors.Join(os.RemoveAll(file), attack()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: []string{"none"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m, err := w.Metadata(t.Context())
		if err != nil || len(m.Outputs) != 1 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if _, err := w.StageInputs(t.Context(), codeexec.Input{From: "artifact://a", To: "work/a", Pin: true}); !errors.Is(err, superqode.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "mine" {
		t.Errorf("%q, %v", data, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.Dir.Root(), ".metadata-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestMetadataAtOnce holds that no entry of many is lost, and that the file stays small.
func TestMetadataAtOnce(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			if _, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: []string{"none"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m, err := w.Metadata(t.Context()); err != nil || len(m.Outputs) != 24 {
		t.Errorf("%d, %v", len(m.Outputs), err)
	}
	long := make([]string, 3000)
	for i := range long {
		long[i] = strings.Repeat("x", 100)
	}
	for range 8 {
		if _, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: long}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := w.Metadata(t.Context())
	data, jerr := json.Marshal(m)
	if err = errors.Join(err, jerr); err != nil || len(m.Outputs) == 0 || len(data) > 1<<20 {
		t.Errorf("%d entries, %d bytes, %v", len(m.Outputs), len(data), err)
	}
}

// FuzzStage holds that whatever an input is called, nothing outside of the workspace is
// written, and an error names the field.
func FuzzStage(f *testing.F) {
	r := registry(scratch(f))
	w, err := r.Acquire(f.Context(), "one")
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Put(f.Context(), codeexec.File{Path: "skills/a/b", Content: []byte("b")}); err != nil {
		f.Fatal(err)
	}
	above := filepath.Dir(w.Dir.Root())
	before, err := os.ReadDir(above)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("skill://a/b", "work/b", "copy", true)
	f.Add("workspace://skills/../..", "../x", "link", false)
	f.Add("artifact://x@y", "", "", true)
	f.Add("skill://a", "skills/a/b/c", "link", false)
	f.Fuzz(func(t *testing.T, from, to, mode string, pin bool) {
		if strings.HasPrefix(from, "host:") {
			t.Skip("it would copy this machine")
		}
		if _, err := w.StageInputs(t.Context(), codeexec.Input{From: from, To: to, Mode: mode, Pin: pin}); err != nil && !strings.HasPrefix(err.Error(), "inputs[0].") {
			t.Errorf("%q, %q: %v", from, to, err)
		}
		if after, err := os.ReadDir(above); err != nil || len(after) != len(before) {
			t.Errorf("%q, %q: %v, %v", from, to, after, err)
		}
	})
}

// FuzzSpec holds that what is saved has a name that an artifact can have.
func FuzzSpec(f *testing.F) {
	r := registry(scratch(f))
	w, err := r.Acquire(f.Context(), "one")
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Put(f.Context(), codeexec.File{Path: "out/a.txt"}, codeexec.File{Path: "out/b/a.txt"}); err != nil {
		f.Fatal(err)
	}
	f.Add("out/**", "{path}", 0, int64(0))
	f.Add("{a,b", "../{name}{name}", -1, int64(1))
	f.Add("**/../../*", "", 1, int64(-1))
	f.Fuzz(func(t *testing.T, glob, template string, files int, bytes int64) {
		c, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: []string{glob}, NameTemplate: template, Save: true, MaxFiles: files, MaxTotalBytes: bytes})
		if err != nil {
			if !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("%q, %q: %v", glob, template, err)
			}
			return
		}
		for _, f := range c.Files {
			if artifacts.CheckName(f.SavedAs) != nil || !filepath.IsLocal(f.Name) {
				t.Errorf("%q, %q: %+v", glob, template, f)
			}
		}
	})
}

// TestSwappedWhileUsed: a program that puts links to the outside in the place of folders in a
// loop, while files are put, staged and collected, makes nobody write or read there.
func TestSwappedWhileUsed(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "s3cret"), []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Put(t.Context(), codeexec.File{Path: "skills/a/s3cret", Content: []byte("skill")}); err != nil {
		t.Fatal(err)
	}
	p, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"sh", "-c", `while :; do mkdir x 2>/dev/null; mv -T x out 2>/dev/null; ln -sfn "$0" l; rm -rf out work/inputs; mv -T l out; ln -sfn "$0" work/inputs; rm -rf out work/inputs; done`, outside}})
	if err != nil {
		t.Fatal(err)
	}
	for range 150 { // many of these fail, which is right
		_ = w.Put(t.Context(), codeexec.File{Path: "out/new", Content: []byte("x")})
		_, _ = w.StageInputs(t.Context(), codeexec.Input{From: "skill://a/s3cret"}, codeexec.Input{From: "workspace://out/s3cret", To: "work/read"})
		if c, err := w.Collect(t.Context(), "out/**"); err == nil {
			for _, f := range c.Files {
				if string(f.Content) == "s3cret" {
					t.Fatalf("%+v was read outside", f)
				}
			}
		}
		if data, err := w.Dir.Read(t.Context(), "work/read"); err == nil && string(data) == "s3cret" {
			t.Fatal("a file outside was staged")
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(outside)
	if data, rerr := os.ReadFile(filepath.Join(outside, "s3cret")); errors.Join(err, rerr) != nil || len(left) != 1 || string(data) != "s3cret" {
		t.Errorf("%v, %q, %v, %v", left, data, err, rerr)
	}
}
