package frozen_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// TestMain doubles as another process that asks for the current state of a project
// again and again, and changes the origin in between where it is told to.
func TestMain(m *testing.M) {
	at := os.Getenv("FROZEN_TEST_CURRENT")
	if at == "" {
		os.Exit(m.Run())
	}
	opt := project(at)
	for range 5 {
		st, err := frozen.Current(context.Background(), opt)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, dir := range st.Lower {
			if _, err := os.Stat(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		if os.Getenv("FROZEN_TEST_WRITE") != "" {
			name := filepath.Join(opt.Top, "d", fmt.Sprint(rand.IntN(20)))
			if err := errors.Join(os.RemoveAll(name), os.WriteFile(name, fmt.Append(nil, rand.Int()), 0o600)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	os.Exit(0)
}

func project(at string) frozen.Options {
	return frozen.Options{
		Dir: filepath.Join(at, "base"), Top: filepath.Join(at, "origin"), Format: snapshot.SHA1, Trash: filepath.Join(at, "trash"),
	}
}

func other(t *testing.T, at string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), "FROZEN_TEST_CURRENT="+at), env...)
	return cmd
}

// holds checks the law of a state: its layers show what its base says, which is the origin.
func holds(t *testing.T, opt frozen.Options) {
	t.Helper()
	st := current(t, opt)
	origin, _, err := snapshot.Scan(t.Context(), opt.Top, snapshot.ScanOptions{Format: snapshot.SHA1})
	must(t, err)
	agree(t, st.Number, origin, shown(t, st.Lower))
	agree(t, st.Number, origin, index(st.Base))
}

func filled(t *testing.T) frozen.Options {
	t.Helper()
	opt := project(t.TempDir())
	must(t, os.MkdirAll(filepath.Join(opt.Top, "d"), 0o755))
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(opt.Top, fmt.Sprint(i)), fmt.Append(nil, i), 0o644))
	}
	return opt
}

// TestKilled kills whoever makes a state, at any moment, and holds that the next one who
// asks is given a whole one.
func TestKilled(t *testing.T) {
	t.Parallel()
	opt := filled(t)
	opt.Used = func() (map[string]bool, bool) { return nil, true }
	killed := 0
	for round := range 40 {
		if round%8 == 0 { // and a whole copy is killed, too
			must(t, os.RemoveAll(opt.Dir))
		}
		cmd := other(t, filepath.Dir(opt.Dir), "FROZEN_TEST_WRITE=1")
		must(t, cmd.Start())
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err != nil {
			killed++
		}
		holds(t, opt)
	}
	if killed == 0 {
		t.Error("nobody was killed in time")
	}
	left, err := filepath.Glob(filepath.Join(opt.Dir, "*", "tree"))
	if st := current(t, opt); err != nil || len(left) > len(st.Lower) {
		t.Errorf("left: %q, used: %q (%v)", left, st.Lower, err)
	}
}

// TestManyAtOnce holds that processes that ask at the same time share one state, and that
// each gets a whole one while the origin changes.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"FROZEN_TEST_WRITE=", "FROZEN_TEST_WRITE=1"} {
		opt := filled(t)
		var all sync.WaitGroup
		for range 20 {
			cmd := other(t, filepath.Dir(opt.Dir), env)
			all.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		all.Wait()
		holds(t, opt)
		if trees, err := filepath.Glob(filepath.Join(opt.Dir, "*", "tree")); err != nil || env == "FROZEN_TEST_WRITE=" && len(trees) > 2 {
			t.Errorf("the origin did not change, and the states are %q (%v)", trees, err) // the first one may have been made right after it was
		}
	}
}

// TestLookIsTheMount holds that what Look finds in the upper folder is what the kernel shows.
func TestLookIsTheMount(t *testing.T) {
	t.Parallel()
	if os.Getenv("FROZEN_TEST_MOUNT") == "" {
		self, err := os.Executable()
		must(t, err)
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestLookIsTheMount$", "-test.v")
		cmd.Env = append(os.Environ(), "FROZEN_TEST_MOUNT=1", "TMPDIR="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || strings.Contains(string(out), "no overlays here") {
			t.Skipf("this machine refuses overlays in user namespaces: %v %s", err, out)
		}
		if err != nil || !strings.Contains(string(out), "PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for seed := range 12 {
		r := rand.New(rand.NewPCG(7, uint64(seed)))
		opt := options(t)
		for _, name := range []string{"a/new\nline", "b/\xff\xfe", "c/" + strings.Repeat("n", 255), strings.Repeat("deep/", 200) + "f"} {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(opt.Top, name)), 0o755), os.WriteFile(filepath.Join(opt.Top, name), []byte(name), 0o640))
		}
		var st *frozen.State
		for range 5 {
			for range 6 {
				change(t, r, opt.Top)
			}
			st = current(t, opt)
		}
		at := t.TempDir()
		in := func(name string) string { return filepath.Join(at, name) }
		must(t, os.Mkdir(in("u"), 0o755), os.Mkdir(in("w"), 0o755), os.Mkdir(in("m"), 0o755))
		data := "userxattr,lowerdir=" + strings.Join(st.Lower, ":") + ",upperdir=" + in("u") + ",workdir=" + in("w")
		if err := unix.Mount("overlay", in("m"), "overlay", 0, data); err != nil {
			t.Fatalf("no overlays here: %v", err)
		}
		for step := range 60 {
			looksLike(t, fmt.Sprintf("seed %d, step %d", seed, step), st, in("u"), in("m"))
			change(t, r, in("m"))
			if step == 30 {
				must(t, os.RemoveAll(in("m/deep")), os.WriteFile(in("m/\xfe\n"), nil, 0o604))
			}
		}
		must(t, unix.Unmount(in("m"), 0))
	}
}

func looksLike(t *testing.T, when string, st *frozen.State, upper, merged string) {
	t.Helper()
	scan := snapshot.ScanOptions{Format: snapshot.SHA1}
	want, problems, err := snapshot.Scan(t.Context(), merged, scan)
	if must(t, err); len(problems) > 0 {
		t.Fatal(problems)
	}
	got, problems, err := frozen.Look(t.Context(), upper, st.Base, scan)
	if must(t, err); len(problems) > 0 {
		t.Fatal(problems)
	}
	for a, b := range snapshot.Join(want.Entries, got.Entries) {
		if a == nil || b == nil || !a.Same(b) || a.Size != b.Size && a.Kind != snapshot.Dir {
			t.Fatalf("%s: the mount shows %+v, Look says %+v", when, a, b)
		}
	}
}
