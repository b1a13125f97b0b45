//go:build linux

package overlay

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/kernel"
)

// TestMain is also the mounter, and another process that opens a mount.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case MounterCommand:
			os.Exit(Serve(os.Args[2:]))
		case kernel.ConfineCommand:
			os.Exit(kernel.ConfineProgram(os.Args[2:], os.Environ(), os.Stderr))
		case holdWord:
			if err := hold(os.Args[2:]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		case attackWord:
			attack(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

const helper = "/proc/self/exe"

func layers(t *testing.T) Layers {
	t.Helper()
	dir := t.TempDir()
	l := Layers{Lower: []string{dir + "/delta,:\\ x", dir + "/base"}, Upper: dir + "/upper", Work: dir + "/work", Socket: dir + "/" + strings.Repeat("s", 120) + "/socket"}
	must(t, os.Mkdir(filepath.Dir(l.Socket), 0o700))
	for _, d := range l.Lower {
		must(t, os.Mkdir(d, 0o755))
	}
	write(t, l.Lower[1]+"/a", "of the base")
	write(t, l.Lower[1]+"/b", "of the base")
	must(t, os.Mkdir(l.Lower[1]+"/dir", 0o755))
	write(t, l.Lower[1]+"/dir/c", "of the base")
	write(t, l.Lower[0]+"/b", "of the delta")
	return l
}

func open(t *testing.T, l Layers) *Mount {
	t.Helper()
	m, err := Open(t.Context(), helper, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func reads(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", file, got, err, want)
	}
}

func TestWritesGoToTheUpperFolder(t *testing.T) {
	t.Parallel()
	l := layers(t)
	m := open(t, l)
	reads(t, m.Dir()+"/a", "of the base")
	reads(t, m.Dir()+"/b", "of the delta")
	write(t, m.Dir()+"/a", "written")
	must(t, os.Remove(m.Dir()+"/dir/c"))
	must(t, os.Rename(m.Dir()+"/b", m.Dir()+"/dir/b"))
	out, err := exec.Command("sh", "-c", "cd \"$0\" && cat a && mkdir new && echo x >new/y", m.Dir()).CombinedOutput()
	if err != nil || string(out) != "written" {
		t.Errorf("a program that superqode starts: %q, %v", out, err)
	}
	must(t, m.Close())
	reads(t, l.Lower[1]+"/a", "of the base")
	reads(t, l.Lower[1]+"/dir/c", "of the base")
	reads(t, l.Upper+"/a", "written")
	reads(t, l.Upper+"/new/y", "x\n")
	var st unix.Stat_t
	if err := unix.Lstat(l.Upper+"/dir/c", &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
		t.Errorf("no whiteout: %+v, %v", st, err)
	}
	m = open(t, l) // again
	reads(t, m.Dir()+"/dir/b", "of the delta")
}

func TestOneMountForAll(t *testing.T) {
	t.Parallel()
	l := layers(t)
	var mounts [20]*Mount
	var all sync.WaitGroup
	for i := range mounts {
		all.Go(func() {
			var err error
			if mounts[i], err = Open(t.Context(), helper, l); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	for i, m := range mounts {
		write(t, fmt.Sprintf("%s/%d", m.Dir(), i), "here")
		for _, o := range mounts {
			reads(t, fmt.Sprintf("%s/%d", o.Dir(), i), "here")
		}
	}
	for _, m := range mounts {
		must(t, m.Close())
	}
	for n := range 50 { // it ends, and another one begins
		m := open(t, l)
		reads(t, m.Dir()+"/0", "here")
		write(t, m.Dir()+"/n", fmt.Sprint(n))
		must(t, m.Close())
	}
	reads(t, l.Upper+"/n", "49")
}

// mounter is the process that a mount is joined to.
func (m *Mount) mounter(t *testing.T) int {
	t.Helper()
	cred, err := unix.GetsockoptUcred(m.conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || cred.Pid == int32(os.Getpid()) {
		t.Fatal(cred, err)
	}
	return int(cred.Pid)
}

// TestMounterIsKilled: who has the mount keeps it, and nobody gets a second one until
// they give it up.
func TestMounterIsKilled(t *testing.T) {
	t.Parallel()
	l := layers(t)
	m := open(t, l)
	must(t, unix.Kill(m.mounter(t), unix.SIGKILL))
	write(t, m.Dir()+"/after", "x")
	freed := make(chan error, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		freed <- m.Close()
	}()
	again := open(t, l)
	if len(freed) == 0 {
		t.Error("one upper folder was mounted twice")
	}
	must(t, <-freed)
	reads(t, again.Dir()+"/after", "x")
}

func TestAnotherBoot(t *testing.T) {
	t.Parallel()
	l := layers(t)
	must(t, open(t, l).Close())
	write(t, bootNote(l.Work), "another boot")
	for began := time.Now(); ; { // until the mounter has ended
		m, err := Open(t.Context(), helper, l)
		if errors.Is(err, ErrLost) {
			if superqode.Hint(err) == "" {
				t.Error("what is still there is not saved by anything that it says")
			}
			break
		}
		must(t, err)
		must(t, m.Close())
		if time.Since(began) > time.Minute {
			t.Fatal("what was not on the disk is mounted again")
		}
	}
	must(t, Sync(l))
	must(t, open(t, l).Close())
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	l := layers(t)
	l.Lower[0] += "/none"
	if _, err := Open(t.Context(), helper, l); !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "none") {
		t.Errorf("a layer that is not there: %v", err)
	}
	if _, err := Open(t.Context(), "/bin/true", layers(t)); err == nil || !strings.Contains(err.Error(), "superqode-shim") {
		t.Errorf("another helper: %v", err)
	}
}

// TestAsAUser runs the others without root's rights.
func TestAsAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the others run as a user")
	}
	dir := t.TempDir()
	self, err := os.ReadFile(helper)
	must(t, err)
	must(t, os.WriteFile(dir+"/test", self, 0o755))
	must(t, os.Mkdir(dir+"/tmp", 0o755))
	for at := dir; at != filepath.Dir(os.TempDir()) && at != "/"; at = filepath.Dir(at) {
		if st, err := os.Stat(at); err == nil && st.Mode()&1 == 0 && strings.HasPrefix(at, filepath.Dir(dir)) {
			must(t, os.Chmod(at, 0o755))
		}
	}
	must(t, os.Chown(dir+"/tmp", 65534, 65534))
	cmd := exec.Command(dir+"/test", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir + "/tmp", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Check(t.Context(), helper, dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if err := Check(t.Context(), "", dir); err == nil {
		t.Error("it works without a helper")
	}
	l := layers(t) // an overlay is no upper folder
	m := open(t, l)
	must(t, os.Mkdir(m.Dir()+"/in", 0o700))
	if err := Check(t.Context(), helper, m.Dir()+"/in"); err == nil {
		t.Error("it works in an overlay")
	} else {
		t.Log(err)
	}
}

// TestReasons: what a machine answers becomes the reason and what helps.
func TestReasons(t *testing.T) {
	t.Parallel()
	const apparmor, clone, most = "kernel/apparmor_restrict_unprivileged_userns", "kernel/unprivileged_userns_clone", "user/max_user_namespaces"
	for _, c := range []struct {
		err          error
		onOverlay    bool
		settings     map[string]string
		reason, hint string
	}{
		{unix.EINVAL, true, nil, "lies in an overlay itself", "--home DIR"},
		{unix.ENODEV, false, nil, "no overlay file system", "modprobe overlay"},
		{unix.EPERM, false, map[string]string{apparmor: "1", clone: "1"}, "AppArmor", "superqode doctor --fix"},
		{unix.EACCES, false, map[string]string{apparmor: "1"}, "AppArmor", "superqode doctor --fix"},
		{unix.EPERM, false, map[string]string{apparmor: "0", clone: "0"}, "only root make user namespaces", "unprivileged_userns_clone=1"},
		{unix.ENOSPC, false, map[string]string{most: "0"}, "allows no user namespaces", "max_user_namespaces=10000"},
		{unix.EPERM, false, map[string]string{clone: "1"}, "the container around", "seccomp=unconfined"},
		{unix.EINVAL, false, nil, "Linux 5.11 is needed", ""},
		{unix.ENOSPC, false, map[string]string{most: "1000"}, "no space left", ""},
		{unix.EIO, false, nil, "input/output error", ""},
	} {
		err := explain(fmt.Errorf("asked: %w", c.err), "/some/dir", c.onOverlay, func(name string) string { return c.settings[name] })
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.reason) || !strings.Contains(superqode.Hint(err), c.hint) || c.hint == "" && superqode.Hint(err) != "" {
			t.Errorf("%v with %v: %v; hint: %s", c.err, c.settings, err, superqode.Hint(err))
		}
	}
}
