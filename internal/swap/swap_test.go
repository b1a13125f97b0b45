package swap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// tree makes a directory that every kind of step has something to do in.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		"replaced": "old\n", "removed": "gone\n", "bits": "same\n", "was-dir/one": "1", "was-dir/two": "2", "was-file": "f", "deep/a/b/last": "l", "full/stays": "s", "full/goes": "g",
	} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
	}
	must(t, os.Link(filepath.Join(dir, "replaced"), filepath.Join(dir, "other-name")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	must(t, os.Chmod(filepath.Join(dir, "deep/a"), 0o750))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// facts describes every path by what must survive: inode, bits, size, time and
// contents.
func facts(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			out[rel] = fmt.Sprintf("dir %o", st.Mode)
			return nil
		}
		target, _ := os.Readlink(path)
		data, _ := os.ReadFile(path)
		out[rel] = fmt.Sprintf("%d %o %d %d %s %q", st.Ino, st.Mode, st.Size, st.Mtim.Nano(), target, data)
		return nil
	}))
	return out
}

func differ(a, b map[string]string) []string {
	var out []string
	for k, v := range a {
		if b[k] != v {
			out = append(out, fmt.Sprintf("%s: %q → %q", k, v, b[k]))
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			out = append(out, fmt.Sprintf("%s: new %q", k, v))
		}
	}
	slices.Sort(out)
	return out
}

// everything is a plan with each kind of step, as a caller would make it.
func everything(t *testing.T, d *Dir) *Plan {
	t.Helper()
	was := func(path string) *State {
		st, err := d.state(0, path)
		must(t, err)
		if st == nil {
			t.Fatalf("%s is not there", path)
		}
		return st
	}
	p := &Plan{Phase: Staging, Nonce: "abcdefgh"}
	add := func(s Step) { p.Steps = append(p.Steps, s) }
	for _, path := range []string{"removed", "was-dir/one", "was-dir/two", "was-file", "deep/a/b/last", "full/goes"} {
		side := filepath.Dir(path)
		switch {
		case side == "." || side == "was-dir":
			side = ""
		case strings.HasPrefix(side, "deep"):
			side = "deep"
		}
		add(Step{Op: Remove, Path: superqode.HostPath(path), Side: superqode.HostPath(side), Was: was(path)})
	}
	add(Step{Op: Rmdir, Path: "was-dir", Was: was("was-dir")})
	add(Step{Op: Rmdir, Path: "deep/a/b", Was: was("deep/a/b"), Optional: true})
	add(Step{Op: Rmdir, Path: "deep/a", Was: was("deep/a"), Optional: true})
	add(Step{Op: Rmdir, Path: "full", Was: was("full"), Optional: true})
	add(Step{Op: Mkdir, Path: "was-file", Perm: 0o555})
	add(Step{Op: Mkdir, Path: "made", Perm: 0o755})
	add(Step{Op: Mkdir, Path: "made/deeper", Perm: 0o700})
	add(Step{Op: Put, Path: "was-file/inner", Perm: 0o600, Data: "inner\n"})
	add(Step{Op: Put, Path: "made/deeper/file", Perm: 0o755, Data: "fresh\n"})
	add(Step{Op: Put, Path: "made/link", Link: "deeper/file"})
	add(Step{Op: Put, Path: "was-dir", Perm: 0o644, Data: "a file now\n"})
	add(Step{Op: Put, Path: "replaced", Perm: 0o640, Data: "new\n", Was: was("replaced")})
	add(Step{Op: Put, Path: "link", Link: "elsewhere", Was: was("link")})
	add(Step{Op: Chmod, Path: "bits", Perm: 0o755, Was: was("bits")})
	return p
}

func fill(_ context.Context, s *Step, w io.Writer) error {
	_, err := io.WriteString(w, s.Data)
	return err
}

func open(t *testing.T, dir string, plain bool) *Dir {
	t.Helper()
	d, err := Open(dir)
	must(t, err)
	d.plain = plain
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func never(string, *Step) error { return errors.New("nothing was written to") }

// both runs a test with and without a file system that can exchange names.
func both(t *testing.T, f func(t *testing.T, plain bool)) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%t", plain), func(t *testing.T) { t.Parallel(); f(t, plain) })
	}
}

func checkDone(t *testing.T, dir string) {
	t.Helper()
	got := facts(t, dir)
	for path, want := range map[string]string{
		"replaced": "100640 4", "link": "120777 9", "bits": "100755 5", "was-dir": "100644 11", "was-file": "dir 40555", "was-file/inner": "100600 6",
		"made": "dir 40755", "made/deeper/file": "100755 6", "made/link": "120777", "full/stays": "100644 1", "other-name": "100644 4", "deep": "dir 40755",
	} {
		if !strings.Contains(got[path], want) {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
		delete(got, path)
	}
	for _, path := range []string{".", "made/deeper", "full"} {
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("left over: %v", got)
	}
}

func TestAllSteps(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		dir := tree(t)
		d := open(t, dir, plain)
		p := everything(t, d)
		must(t, d.Stage(t.Context(), p, fill))
		must(t, d.Commit(t.Context(), p))
		must(t, d.Commit(t.Context(), p)) // what was done is not done again
		must(t, d.Clean(p, never))
		must(t, d.Clean(p, never))
		checkDone(t, dir)
	})
}

// After any number of steps everything can be taken back, to the very files
// that were there; and from there, or from the middle, it can go forward.
func TestUndoFromAnyStep(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		for n := 0; ; n++ {
			dir := tree(t)
			before := facts(t, dir)
			d := open(t, dir, plain)
			p := everything(t, d)
			must(t, d.Stage(t.Context(), p, fill))
			for i := range min(n, len(p.Steps)) {
				must(t, d.do(p, i))
			}
			if n > len(p.Steps) {
				must(t, d.Commit(t.Context(), p))
			}
			for range 2 { // repeated after a crash
				left, err := d.Undo(p)
				if err != nil || len(left) > 0 {
					t.Fatalf("after %d steps: %v, left %v", n, err, left)
				}
			}
			must(t, d.Clean(p, never))
			if diff := differ(before, facts(t, dir)); len(diff) > 0 {
				t.Fatalf("after %d steps and back:\n%s", n, strings.Join(diff, "\n"))
			}
			if n > len(p.Steps) {
				return
			}
		}
	})
}

func TestForwardFromAnyStep(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		dir := tree(t)
		for n := range everything(t, open(t, dir, plain)).Steps {
			dir := tree(t)
			d := open(t, dir, plain)
			p := everything(t, d)
			must(t, d.Stage(t.Context(), p, fill))
			for i := range n {
				must(t, d.do(p, i))
			}
			must(t, d.Commit(t.Context(), p))
			must(t, d.Clean(p, never))
			checkDone(t, dir)
		}
	})
}

// Whatever somebody did to a path meanwhile stops the commit, stays, and is all
// that differs after the undo.
func TestMoved(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		for name, c := range map[string]struct {
			do   func(dir string) error
			path string
		}{
			"edited":          {func(dir string) error { return os.WriteFile(dir+"/replaced", []byte("mine\n"), 0o644) }, "replaced"},
			"replaced":        {func(dir string) error { return replace(dir+"/replaced", "own\n") }, "replaced"},
			"deleted":         {func(dir string) error { return os.Remove(dir + "/removed") }, "removed"},
			"removed, edited": {func(dir string) error { return os.WriteFile(dir+"/removed", []byte("mine\n"), 0o644) }, "removed"},
			"in the way":      {func(dir string) error { return os.MkdirAll(dir+"/made/deeper/file", 0o755) }, "made/deeper/file"},
			"file for folder": {func(dir string) error { return os.WriteFile(dir+"/made", nil, 0o644) }, "made"},
			"folder filled":   {func(dir string) error { return os.WriteFile(dir+"/was-dir/three", nil, 0o644) }, "was-dir"},
			"bits":            {func(dir string) error { return os.Chmod(dir+"/bits", 0o600) }, "bits"},
			"link":            {func(dir string) error { return errors.Join(os.Remove(dir+"/link"), os.Symlink("x", dir+"/link")) }, "link"},
			"parent linked": {func(dir string) error {
				return errors.Join(os.Rename(dir+"/full", dir+"/f2"), os.Symlink("f2", dir+"/full"))
			}, "full/goes"},
		} {
			t.Run(name, func(t *testing.T) {
				dir := tree(t)
				d := open(t, dir, plain)
				p := everything(t, d)
				must(t, d.Stage(t.Context(), p, fill))
				d.leave() // the caller that looked is another process than the one that commits, at worst
				must(t, c.do(dir))
				err := d.Commit(t.Context(), p)
				moved, ok := errors.AsType[*MovedError](err)
				if !ok || moved.Path != c.path || !errors.Is(err, superqode.ErrConflict) {
					t.Fatalf("%v, want %s moved", err, c.path)
				}
				left, err := d.Undo(p)
				if err != nil || len(left) > 0 {
					t.Fatalf("undo: %v, left %v", err, left)
				}
				must(t, d.Clean(p, never))
				after := facts(t, dir)
				clean := tree(t)
				must(t, c.do(clean))
				want := facts(t, clean)
				for _, m := range []map[string]string{after, want} {
					for k, v := range m { // other inodes and times in another folder
						f := strings.SplitN(v, " ", 5)
						if f[0] != "dir" {
							m[k] = f[1] + f[2] + f[4]
						}
					}
				}
				if diff := differ(want, after); len(diff) > 0 {
					t.Errorf("not as it was:\n%s", strings.Join(diff, "\n"))
				}
			})
		}
	})
}

func replace(path, text string) error {
	return errors.Join(os.WriteFile(path+"~", []byte(text), 0o644), os.Rename(path+"~", path))
}

// What somebody changed between commit and undo is left to them and named.
func TestUndoLeavesEdits(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		dir := tree(t)
		d := open(t, dir, plain)
		p := everything(t, d)
		must(t, d.Stage(t.Context(), p, fill))
		must(t, d.Commit(t.Context(), p))
		must(t, os.WriteFile(dir+"/replaced", []byte("edited since\n"), 0o640))
		must(t, os.WriteFile(dir+"/made/deeper/file", []byte("edited too\n"), 0o755))
		must(t, os.WriteFile(dir+"/removed", []byte("back again\n"), 0o644))
		left, err := d.Undo(p)
		must(t, err)
		var paths []string
		for _, l := range left {
			paths = append(paths, l.Path)
		}
		slices.Sort(paths)
		if want := []string{"made/deeper/file", "removed", "replaced"}; !slices.Equal(paths, want) {
			t.Errorf("left %q, want %q", paths, want)
		}
		must(t, d.Clean(p, never))
		for path, want := range map[string]string{"replaced": "edited since\n", "made/deeper/file": "edited too\n", "removed": "back again\n", "was-file": "f", "bits": "same\n"} {
			if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", path, got, err)
			}
		}
	})
}

// A program that has the old file open and writes to it after it was replaced
// loses nothing.
func TestCleanKeepsLateWrites(t *testing.T) {
	both(t, func(t *testing.T, plain bool) {
		dir := tree(t)
		d := open(t, dir, plain)
		p := everything(t, d)
		f, err := os.OpenFile(dir+"/replaced", os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		defer f.Close()
		must(t, d.Stage(t.Context(), p, fill))
		must(t, d.Commit(t.Context(), p))
		_, err = f.WriteString("late\n")
		must(t, err)
		kept := ""
		must(t, d.Clean(p, func(path string, s *Step) error {
			data, err := os.ReadFile(filepath.Join(dir, path))
			kept += string(s.Path) + ": " + string(data)
			return err
		}))
		if kept != "replaced: old\nlate\n" {
			t.Errorf("kept %q", kept)
		}
	})
}

func TestStageFailsWhole(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	before := facts(t, dir)
	d := open(t, dir, false)
	p := everything(t, d)
	n := 0
	err := d.Stage(t.Context(), p, func(ctx context.Context, s *Step, w io.Writer) error {
		if n++; n == 4 {
			_, _ = io.WriteString(w, strings.Repeat("x", 200_000)) // reaches the disk before the error
			return unix.ENOSPC
		}
		return fill(ctx, s, w)
	})
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if diff := differ(before, facts(t, dir)); len(diff) > 0 {
		t.Errorf("something stayed:\n%s", strings.Join(diff, "\n"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Stage(ctx, p, fill); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, d.Stage(t.Context(), p, fill))
	if err := d.Commit(ctx, p); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := d.Undo(p); err != nil {
		t.Error(err)
	}
	must(t, d.Clean(p, never))
	if diff := differ(before, facts(t, dir)); len(diff) > 0 {
		t.Errorf("something stayed:\n%s", strings.Join(diff, "\n"))
	}
}

// TestCheckRefuses holds that a plan from disk cannot lead out of the directory
// or name files that are not the plan's own.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	ok := Plan{Phase: Committing, Nonce: "abcdefgh", Steps: []Step{{Op: Put, Path: "a"}}}
	must(t, ok.Check())
	for name, spoil := range map[string]func(*Plan){
		"phase":     func(p *Plan) { p.Phase = "" },
		"nonce":     func(p *Plan) { p.Nonce = "../../../x" },
		"no nonce":  func(p *Plan) { p.Nonce = "" },
		"path":      func(p *Plan) { p.Steps[0].Path = "../a" },
		"absolute":  func(p *Plan) { p.Steps[0].Path = "/a" },
		"side":      func(p *Plan) { p.Steps[0].Side = "a/../.." },
		"operation": func(p *Plan) { p.Steps[0].Op = "write" },
		"was":       func(p *Plan) { p.Steps[0].Op = Remove },
	} {
		p := ok
		p.Steps = slices.Clone(ok.Steps)
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A big file of zeros takes no room.
func TestHoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir, false)
	const size = 300 << 20
	p := &Plan{Phase: Staging, Nonce: "abcdefgh", Steps: []Step{{Op: Put, Path: "big", Perm: 0o644}, {Op: Put, Path: "small", Perm: 0o644, Data: strings.Repeat("\x00", 100)}}}
	must(t, d.Stage(t.Context(), p, func(ctx context.Context, s *Step, w io.Writer) error {
		if s.Path == "small" {
			return fill(ctx, s, w)
		}
		zeros := make([]byte, 1<<20)
		for i := range size >> 20 {
			zeros[5000] = byte(i / 150) // the second half has something in it
			if _, err := w.Write(zeros); err != nil {
				return err
			}
		}
		_, err := io.WriteString(w, "end")
		return err
	}))
	must(t, d.Commit(t.Context(), p))
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(dir, "big"), &st))
	if st.Size != size+3 || st.Blocks*512 > 100<<20 {
		t.Errorf("%d bytes take %d", st.Size, st.Blocks*512)
	}
	f, err := os.Open(filepath.Join(dir, "big"))
	must(t, err)
	defer f.Close()
	buf := make([]byte, 6000)
	for _, c := range []struct {
		at   int64
		want byte
	}{{149 << 20, 0}, {150 << 20, 1}, {299 << 20, 1}} {
		if _, err := f.ReadAt(buf, c.at); err != nil || buf[5000] != c.want || buf[4999] != 0 {
			t.Errorf("at %d: %d, %v", c.at, buf[5000], err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "small")); err != nil || string(data) != strings.Repeat("\x00", 100) {
		t.Errorf("%q, %v", data, err)
	}
}

// A context that ended before the call ends the call, however little there is to
// do.
func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := Open(t.TempDir())
	must(t, err)
	defer d.Close()
	if err := d.Stage(ctx, &Plan{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stage: %v", err)
	}
	if err := d.Commit(ctx, &Plan{}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
}
