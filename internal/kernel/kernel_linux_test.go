package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// TestMain is also the helper in front of a program that needs mounts of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ConfineCommand {
		os.Exit(ConfineProgram(os.Args[2:], os.Environ(), os.Stderr))
	}
	os.Exit(m.Run())
}

// ground is a place with an origin, a home and a session in it.
func ground(t *testing.T) (dir string, o Options) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ground")
	for _, d := range []string{"origin/.git", "origin/src", "origin/empty", "home/s/ws", "home/s/tmp", "user/.cache", "else"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"origin/.git/HEAD", "origin/a", "origin/src/b", "home/s/session.json", "home/s/ws/w", "else/e"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("as it was\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, Options{
		Env: []string{"HOME=" + dir + "/user", "PATH=" + os.Getenv("PATH")}, Home: dir + "/home", Origin: dir + "/origin", GitDirs: []string{dir + "/origin/.git"},
		Own: []string{dir + "/home/s/ws", dir + "/home/s/tmp"}, Scratch: dir + "/home/s/tmp", User: []string{"HOME=" + dir + "/user"}, Helper: "/proc/self/exe",
	}
}

// ways runs a test with each layer that there is: mounts, an allow-list, and what is left
// without mounts.
func ways(t *testing.T, test func(t *testing.T, dir string, o Options)) {
	for name, change := range map[string]func(o *Options){
		Mounts: func(*Options) {}, "confine": func(o *Options) { o.Confine = true }, Landlock: func(o *Options) { o.Helper = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, o := ground(t)
			change(&o)
			test(t, dir, o)
		})
	}
}

func opened(t *testing.T, o Options) *Confiner {
	t.Helper()
	k, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	if !k.Layer.Applied {
		t.Skip("the kernel layer is " + k.Layer.State)
	}
	return k
}

// sh runs a shell line in dir, confined, and returns what it printed.
func sh(t *testing.T, k *Confiner, dir, line string) string {
	t.Helper()
	var out []byte
	err := onThread(func() error {
		if err := k.Confine(); err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-c", line)
		ground := dir[:strings.Index(dir+"/", "/ground/")+len("/ground")]
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "D=" + ground}
		attr := &os.ProcAttr{Files: make([]*os.File, 3), Sys: &syscall.SysProcAttr{}}
		path, argv, err := k.Wrap("/bin/sh", cmd.Args, attr)
		if err != nil {
			return err
		}
		cmd.Path, cmd.Args, cmd.ExtraFiles, cmd.SysProcAttr = path, argv, attr.Files[3:], attr.Sys
		out, _ = cmd.CombinedOutput() // what it said is looked at, and what it did
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func print(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %v", strings.TrimPrefix(p, dir), info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestConfined: each line tries to change what is not the program's. Nothing
// changes, and the program sees that.
func TestConfined(t *testing.T) { ways(t, testConfined) }

func testConfined(t *testing.T, dir string, o Options) {
	k := opened(t, o)
	if !k.Layer.Active() {
		t.Skip("the kernel layer is " + k.Layer.State)
	}
	before := map[string]string{}
	closed := []string{"origin", "home/s/session.json"}
	if o.Confine {
		closed = append(closed, "else")
	}
	for _, d := range closed {
		before[d] = print(t, filepath.Join(dir, d))
	}
	for _, line := range []string{
		"echo x >$D/origin/a", "echo x >>$D/origin/.git/HEAD", "echo x >$D/origin/new", "rm -f $D/origin/a", "rm -rf $D/origin", "rm -rf $D/origin/.git", "mkdir $D/origin/n", "rmdir $D/origin/empty",
		"mv $D/origin/a $D/origin/z", "mv $D/origin/a .", "mv $D/origin $D/gone", "mv w $D/origin/src/", "ln $D/origin/a stolen && echo x >stolen", "ln -s /x $D/origin/l", "ln w $D/origin/w", "mkfifo $D/origin/p",
		"truncate -s 0 $D/origin/a", "cp w $D/origin/a", "dd if=/dev/zero of=$D/origin/a count=1 conv=notrunc", "sed -i s/as/xx/ $D/origin/a", "touch $D/origin/new", "install w $D/origin/i",
		"ln -s $D/origin/a link && echo x >link", "ln -s $D/origin od && echo x >od/a", "cd $D/origin && echo x >a", "exec 3<$D/origin/a && echo x >/proc/self/fd/3", "exec 3<$D/origin/a && echo x >/dev/fd/3",
		"cd $D/origin && echo x >/proc/self/cwd/a", "echo x >/proc/self/root$D/origin/a", "echo x >/proc/$PPID/root$D/origin/a",
		"mount --bind $D/origin $D/home/s/tmp && echo x >$D/home/s/tmp/a", "mount --bind $D/home/s/tmp $D/origin", "unshare -m sh -c 'mount -t tmpfs t $D/origin'", "unshare -Urm sh -c 'mount --bind $D/origin . && cd $D/home/s/ws && echo x >a'",
		"mount -o remount,rw /", "nsenter -t 1 -m sh -c 'echo x >$D/origin/a'", "chroot $D/origin /bin/sh", "mknod disk b 254 0 && dd if=/dev/zero of=disk count=0", "mknod null c 1 3",
		"echo x >$D/home/s/session.json", "rm -rf $D/home/s/session.json", "mv $D/home/s/ws $D/home/s/ws2", "mv $D/home/s $D/home/t", "echo x >$D/home/s/new", "echo x >$D/else/e", "rm -rf $D/else",
		"setsid sh -c 'echo x >$D/origin/a'", "(sh -c 'echo x >$D/origin/a' &) ; wait", "nohup sh -c 'rm -rf $D/origin'", "find $D/origin -delete", "python3 -c \"import os; os.truncate('$D/origin/a', 0)\"",
		"python3 -c \"import os; os.open('$D/origin/a', os.O_RDONLY|os.O_TRUNC)\"", "python3 -c \"import os; os.rename('$D/origin/a', '$D/home/s/ws/w')\"",
		"perl -e 'syscall(316, -100, \"$ENV{D}/origin/a\", -100, \"$ENV{D}/home/s/ws/w\", 2)'", // renameat2 with RENAME_EXCHANGE
	} {
		out := sh(t, k, dir+"/home/s/ws", line)
		for d, want := range before {
			if got := print(t, filepath.Join(dir, d)); got != want {
				t.Fatalf("%s (%s) changed %s:\n%s\nit was\n%s", line, out, d, got, want)
			}
		}
	}
	if _, err := os.Lstat(dir + "/home/s/ws/disk"); err == nil {
		t.Error("a device node was made")
	}
	if out := sh(t, k, dir, "echo x >$D/origin/a"); !strings.Contains(out, "ermission denied") && !strings.Contains(out, "ead-only file system") {
		t.Errorf("the program was told %q", out)
	}
}

// TestConfinedWorks: what a session's program needs goes on working.
func TestConfinedWorks(t *testing.T) { ways(t, testConfinedWorks) }

func testConfinedWorks(t *testing.T, dir string, o Options) {
	k := opened(t, o)
	for _, line := range []string{
		"echo x >new && cat new", "mkdir -p a/b && mv new a/b/ && mv a z && rm -r z", "ln w w2 && ln -s w w3 && mkfifo p && rm w2 w3 p", "echo x >../tmp/t && mv ../tmp/t . && mv t ../tmp/", "exec <$D/else/e && read l && test \"$l\" = 'as it was'", "truncate -s 3 w",
		"cat $D/origin/a", "ls $D/origin", "echo x >/dev/null", "head -c1 /dev/urandom >/dev/null", "echo x >$D/user/.cache/c && mkdir $D/user/.cache/d && mv $D/user/.cache/c $D/user/.cache/d/",
		"chmod 700 w && touch -d yesterday w", "sleep 5 & kill $!", "kill -0 $$", "sh -c 'kill -TERM $$' || true", "test -r /proc/self/status",
	} {
		if out := sh(t, k, dir+"/home/s/ws", "set -e; "+line+"; echo fine"); !strings.HasSuffix(out, "fine\n") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// TestConfinesOneThread: this process goes on writing where its programs cannot.
func TestConfinesOneThread(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	k := opened(t, o)
	sh(t, k, dir, "true")
	for range 50 {
		done := make(chan error)
		go func() { done <- os.WriteFile(dir+"/origin/a", []byte("x"), 0o600) }()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestSignalsStayInside: a confined program cannot end the process that watches
// over it.
func TestSignalsStayInside(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	k := opened(t, o)
	outside := exec.Command("sleep", "60")
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = outside.Process.Kill(), outside.Wait() }()
	out := sh(t, k, dir, fmt.Sprintf("kill -9 %d", outside.Process.Pid))
	if k.Layer.ABI < abiScope || out == "" {
		t.Skip("this kernel does not hold signals back")
	}
	if err := unix.Kill(outside.Process.Pid, 0); err != nil {
		t.Error(err)
	}
}

// TestNoNetwork: by a network namespace nothing goes out, and programs of the session
// reach one another; Landlock refuses TCP.
func TestNoNetwork(t *testing.T) { ways(t, testNoNetwork) }

func testNoNetwork(t *testing.T, dir string, o Options) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	abstract, err := net.Listen("unix", fmt.Sprintf("@superqode-test-%s-%d", t.Name(), os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	python := func(line string) string { return `python3 -c "from socket import *; ` + line + `; print('did it')"` }
	dial := python(fmt.Sprintf("create_connection(('127.0.0.1', %d))", tcp.Addr().(*net.TCPAddr).Port))
	bind := python("s = socket(); s.bind(('127.0.0.1', 0)); s.listen(); create_connection(s.getsockname())")
	send := python(fmt.Sprintf("socket(AF_INET, SOCK_DGRAM).sendto(b'in', ('127.0.0.1', %d))", udp.LocalAddr().(*net.UDPAddr).Port))
	call := python(fmt.Sprintf("socket(AF_UNIX).connect(chr(0) + '%s')", abstract.Addr().String()[1:]))
	for _, line := range []string{dial, bind, send, call} {
		if out := sh(t, opened(t, o), dir, line); !strings.Contains(out, "did it") {
			t.Skip("no python: " + out)
		}
	}
	if _, _, err := udp.ReadFrom(make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	o.NoNetwork = true
	k := opened(t, o)
	denied := map[string]string{dial: "refused", call: "refused"}
	switch {
	case k.Layer.Network == OnlyTCP:
		denied = map[string]string{dial: "Permission", bind: "Permission"}
	case k.Layer.By == Landlock: // both
		denied = map[string]string{dial: "Permission", bind: "Permission", call: "refused"}
	default:
		if out := sh(t, k, dir, bind); !strings.Contains(out, "did it") {
			t.Errorf("a server of the program's own: %s", out)
		}
	}
	for line, want := range denied {
		if out := sh(t, k, dir, line); strings.Contains(out, "did it") || !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	if k.Layer.Network == OwnNetwork {
		sh(t, k, dir, send)
		sh(t, k, dir, "nsenter -t $PPID -n "+send) // root, too, has no right over the namespace outside
		from, err := net.Dial("udp", udp.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		got := make([]byte, 9)
		if _, err := from.Write([]byte("out")); err != nil {
			t.Fatal(err)
		}
		if n, _, err := udp.ReadFrom(got); err != nil || string(got[:n]) != "out" {
			t.Errorf("%q came from the program: %v", got[:n], err)
		}
	}
	o.Enforce = EnforceOff
	if _, err := Open(o); err == nil {
		t.Error("--no-network without the layer that does it")
	}
}

// TestMissingOwnFolder: a session whose folder is gone, or a link, is not
// confined to less or more than it should, it does not start.
func TestMissingOwnFolder(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	opened(t, o)
	if err := errors.Join(os.RemoveAll(dir+"/home/s/tmp"), os.Symlink(dir+"/origin", dir+"/home/s/tmp")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link to the origin in the place of tmp: %v", err)
	}
}

// TestInPlace: the origin is writable, its git directory is not where mounts can
// be had, and the rest never.
func TestInPlace(t *testing.T) { ways(t, testInPlace) }

func testInPlace(t *testing.T, dir string, o Options) {
	o.InPlace, o.Own = true, []string{dir + "/home/s/tmp"}
	k := opened(t, o)
	sh(t, k, dir+"/origin", "echo new >a; rm -r src; echo x >$D/else/e; echo x >$D/home/s/session.json")
	if text, _ := os.ReadFile(dir + "/origin/a"); string(text) != "new\n" {
		t.Errorf("the origin could not be written to: %q", text)
	}
	if text, _ := os.ReadFile(dir + "/home/s/session.json"); string(text) != "as it was\n" {
		t.Errorf("session.json: %q", text)
	}
	if !k.Layer.Active() {
		t.Skip("in place the layer is " + k.Layer.State)
	}
	before := print(t, dir+"/origin/.git")
	for _, line := range []string{
		"echo x >.git/HEAD", "rm -rf .git", "mv .git g", "mv .git $D/home/s/tmp/", "umount .git; rm -rf .git", "umount -l $PWD/.git; rm -rf .git", "mount -o remount,rw,bind .git && rm -rf .git", "unshare -m sh -c 'umount .git; rm -rf .git'",
		"nsenter -t $PPID -m rm -rf $PWD/.git", "rm -rf /proc/$PPID/cwd/../origin/.git", "mkdir x && mv .git x/", "ln .git/HEAD h && echo x >h", "rm -rf /proc/1/root$PWD/.git", "cd $D && mv origin o2", "truncate -s0 .git/HEAD",
	} {
		out := sh(t, k, dir+"/origin", line)
		if got := print(t, dir+"/origin/.git"); got != before {
			t.Fatalf("%s (%s) changed .git:\n%s", line, out, got)
		}
	}
}

// TestDefaultsGiveWay: a default that has gone since the decision is left out.
func TestDefaultsGiveWay(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	o.Confine = true
	k := opened(t, o)
	if !slices.ContainsFunc(k.Plan.Writable, func(w Writable) bool { return w.Path == dir+"/user/.cache" }) {
		t.Fatalf("%+v", k.Plan.Writable)
	}
	fd, err := Confinement{ABI: k.Layer.ABI, Writable: append(k.Plan.Writable, Writable{Path: "/gone"})}.ruleset()
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if _, err = (Confinement{ABI: k.Layer.ABI, Writable: []Writable{{Path: "/gone", Own: true}}}).ruleset(); err == nil {
		t.Error("a session's own folder was left out")
	}
}

func BenchmarkConfine(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		k, err := Open(Options{Env: os.Environ(), Home: dir, Origin: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(onThread(k.Confine), k.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestProbeKernel: the probe says what a session gets, and leaves nothing behind.
func TestProbeKernel(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	apart, inPlace, err := Probe(t.Context(), dir, "/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	o.NoNetwork = apart.Network != ""
	if k := opened(t, o); !cmp.Equal(k.Layer, apart) {
		t.Errorf("a session gets %+v, the probe says %+v", k.Layer, apart)
	}
	o.InPlace, o.NoNetwork = true, false
	if k := opened(t, o); k.Layer.Active() != inPlace.Active() {
		t.Errorf("a session in place gets %+v, the probe says %+v", k.Layer, inPlace)
	}
	if left, _ := filepath.Glob(dir + "/.superqode*"); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestUnprivileged runs the tests of this package as nobody, who may not mount: the
// helper does it, in a user namespace, and leaves no right to undo it.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("they run as nobody in particular")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^Test(Confined|ConfinedWorks|InPlace|NoNetwork|OpenAtOnce|Rights)$", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		t.Errorf("as nobody:\n%s", out)
	} else if err != nil {
		t.Skip(err)
	} else if !strings.Contains(string(out), "--- PASS: TestRights") {
		t.Skipf("nobody has no mounts here:\n%s", out)
	}
}

// TestOpenAtOnce: sessions that begin together in one process all find what the first
// found, whatever threads end meanwhile.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	_, o := ground(t)
	first := opened(t, o)
	ctx, stop := context.WithCancel(t.Context())
	var enders, openers errgroup.Group
	for range 4 {
		enders.Go(func() error {
			for ctx.Err() == nil {
				_ = onThread(func() error { return nil })
			}
			return nil
		})
		openers.Go(func() error {
			for range 15 {
				k, err := Open(o)
				if err != nil {
					return err
				}
				if err := k.Close(); err != nil || k.Layer.By != first.Layer.By {
					return fmt.Errorf("%s, and %s at first: %q (%v)", k.Layer.By, first.Layer.By, k.Layer.Missing, err)
				}
			}
			return nil
		})
	}
	err := openers.Wait()
	stop()
	if err := errors.Join(err, enders.Wait()); err != nil {
		t.Error(err)
	}
}

// TestRights: the program keeps its user, and nobody but root has rights.
func TestRights(t *testing.T) {
	t.Parallel()
	dir, o := ground(t)
	k := opened(t, o)
	if k.Layer.By != Mounts {
		t.Skip("the kernel layer is by ", k.Layer.By, ": ", k.Layer.Missing)
	}
	out := sh(t, k, dir+"/origin", "id -u && grep CapEff /proc/self/status && ls -l /proc/self/fd")
	if !strings.HasPrefix(out, strconv.Itoa(os.Getuid())+"\n") || strings.Contains(out, "ruleset") ||
		os.Getuid() != 0 && !strings.Contains(out, "CapEff:\t0000000000000000") {
		t.Errorf("%s", out)
	}
	if k.wraps {
		k.Plan.Mounts = append(k.Plan.Mounts, Mount{Path: dir + "/else", As: copied})
		if out := sh(t, k, dir, "cat $D/else/e; rm -f $D/else/e"); !strings.HasPrefix(out, "as it was\n") || !strings.Contains(out, "ead-only") {
			t.Errorf("a copied folder: %s", out)
		}
	}
	// prlimit(2) of a parent, of this process, and of itself.
	out = sh(t, k, dir, fmt.Sprintf("prlimit --pid %d --nofile=10 2>&1; prlimit --pid $PPID --core=0 2>&1; ulimit -n 99 && ulimit -n", os.Getpid()))
	if strings.Count(out, "ermitted") != 2 || !strings.HasSuffix(out, "\n99\n") {
		t.Errorf("limits: %s", out)
	}
}

// TestOverlayNeedsMounts: without mounts no program runs where it would find the origin in
// its workspace's place.
func TestOverlayNeedsMounts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *Options){
		"--enforce off": func(o *Options) { o.Enforce = EnforceOff }, "--confine": func(o *Options) { o.Confine = true },
		"superqode-shim": func(o *Options) { o.Helper = "" }, "no such device": func(*Options) {},
	} {
		_, o := ground(t)
		o.Overlay = func() (*os.File, error) { return nil, unix.ENODEV }
		change(&o)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in: %v", name, err)
		}
	}
}

// TestPrivate: a service outside that listens in /tmp or in XDG_RUNTIME_DIR cannot be
// reached, nor an engine that starts containers; what the session works with is where it
// was, and each of its programs sees the same /tmp.
func TestPrivate(t *testing.T) {
	for name, confine := range map[string]bool{Mounts: false, "confine": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPrivate(t, confine)
		})
	}
}

func testPrivate(t *testing.T, confine bool) {
	dir, o := ground(t)
	outside, err := os.MkdirTemp("/tmp", "sq-outside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	for _, d := range []string{outside + "/run", outside + "/tool", outside + "/home/own-tmp", outside + "/home/own-run", dir + "/engines"} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	reached := map[string]bool{}
	for _, path := range []string{outside + "/daemon", outside + "/run/bus", outside + "/agent", dir + "/engines/docker.sock", dir + "/engines/podman.sock"} {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				mu.Lock()
				reached[path] = true
				mu.Unlock()
				_ = c.Close()
			}
		}()
	}
	o.User = append(o.User, "XDG_RUNTIME_DIR="+outside+"/run")
	o.Env = append(o.Env, "SSH_AUTH_SOCK="+outside+"/agent", "DOCKER_HOST=unix://"+dir+"/engines/docker.sock", "CONTAINER_HOST="+dir+"/engines/podman.sock",
		"PATH="+outside+"/tool:"+os.Getenv("PATH"))
	o.Private = Private{Tmp: outside + "/home/own-tmp", Run: outside + "/home/own-run", Sockets: []string{dir + "/engines/podman.sock"}}
	o.Own, o.Confine = append(o.Own, o.Private.Tmp, o.Private.Run), confine
	k, err := Open(o)
	if err != nil && strings.Contains(err.Error(), "--private-tmp needs mounts") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	connect := func(path string) string {
		return "python3 -c \"from socket import *; socket(AF_UNIX).connect('" + path + "'); print('did it')\""
	}
	for path, want := range map[string]bool{
		outside + "/daemon": false, outside + "/run/bus": false, dir + "/engines/docker.sock": false, outside + "/agent": true, dir + "/engines/podman.sock": true,
		"/proc/1/root" + outside + "/daemon": false, fmt.Sprintf("/proc/%d/root%s/daemon", os.Getpid(), outside): false, fmt.Sprintf("/proc/%d/cwd/../../../../../../../../../..%s/daemon", os.Getpid(), outside): false,
	} {
		for _, way := range []string{"", "umount -l /tmp; ", "unshare -Urm umount -l /tmp; ", "unshare -m umount -R /tmp; ", "nsenter -t $PPID -m "} {
			if out := sh(t, k, dir, way+connect(path)); strings.Contains(out, "did it") != want && (want == (way == "")) {
				t.Errorf("%s%s: %s", way, path, out)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for path := range reached {
		if path != outside+"/agent" && path != dir+"/engines/podman.sock" {
			t.Errorf("%s was reached", path)
		}
	}
	for _, line := range []string{
		"echo x >/tmp/left", "test \"$(cat /tmp/left)\" = x", "mkdir " + outside + "/run/r && rmdir " + outside + "/run/r", "test -d " + outside + "/tool", "test ! -e " + outside + "/run/bus",
		"cat $D/origin/a && ! echo x >$D/origin/a", "echo x >$D/home/s/ws/w",
	} {
		if out := sh(t, k, dir, "set -e; "+line+"; echo fine"); !strings.HasSuffix(out, "fine\n") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if _, err := os.Lstat("/tmp/left"); err == nil {
		t.Error("/tmp is not the session's own")
	}

	// A program has put a link where the next one needs a place.
	sh(t, k, dir, "rm -rf "+outside+"; ln -s "+dir+"/else "+outside)
	if err := os.RemoveAll(o.Private.Tmp + strings.TrimPrefix(outside, "/tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/else", o.Private.Tmp+strings.TrimPrefix(outside, "/tmp")); err != nil {
		t.Fatal(err)
	}
	err = onThread(k.confine)
	if left, _ := os.ReadDir(dir + "/else"); err == nil || len(left) != 1 {
		t.Errorf("mounts were made through a link: %v, %v", err, left)
	}
}

// TestSharedNetwork: a session's programs have one network, for as long as one of them runs,
// and another session has another one. A program that joins has the same bounds, and is told
// apart from nothing: its exit code, its signals and its stops are its own.
func TestSharedNetwork(t *testing.T) {
	for name, confine := range map[string]bool{Mounts: false, "confine": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSharedNetwork(t, confine)
		})
	}
}

func testSharedNetwork(t *testing.T, confine bool) {
	dir, o := ground(t)
	o.Shared, o.Confine = true, confine
	first, err := Open(o)
	if err != nil && strings.Contains(err.Error(), "--own-network needs namespaces") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	const serve = `exec python3 -c "from socket import *; s = socket(); s.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1); s.bind(('127.0.0.1', 3000)); s.listen(); open('PORT', 'w').close()
while True: s.accept()[0].close()"`
	const dial = `python3 -c "from socket import *; create_connection(('127.0.0.1', 3000)); print('did it')"`
	server := startConfined(t, first, dir+"/home/s/ws", strings.Replace(serve, "PORT", "first", 1))
	waitFor(t, dir+"/home/s/ws/first")
	o.Beside = []int{os.Getpid(), 1 << 30, server.Process.Pid}
	second, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if out := sh(t, second, dir, dial); !strings.Contains(out, "did it") {
		t.Errorf("the other program of the session: %s", out)
	}
	for _, line := range []string{"echo x >$D/origin/a", "umount -l $D/origin; echo x >$D/origin/a", "unshare -Urm sh -c 'umount -l $D/origin; echo x >$D/origin/a'", "nsenter -t $PPID -m sh -c 'echo x >$D/origin/a'",
		fmt.Sprintf("nsenter -t %d -U -m sh -c 'umount -l $D/origin; echo x >$D/origin/a'", server.Process.Pid)} {
		if sh(t, second, dir, line); len(readAll(t, dir+"/origin/a")) != len("as it was\n") {
			t.Fatalf("%s: the origin was changed", line)
		}
	}
	beside := startConfined(t, second, dir, "exec sleep 1000")
	for _, way := range []string{"-m", "-U -m", "-a"} { // what joined has no other rights there
		line := fmt.Sprintf("nsenter -t %d %s sh -c 'umount -l $D/origin; echo x >$D/origin/a'", beside.Process.Pid, way)
		if out := sh(t, first, dir, line); strings.Contains(out, "usage") || len(readAll(t, dir+"/origin/a")) != len("as it was\n") {
			t.Fatalf("%s: the origin was changed: %s", line, out)
		}
	}
	for line, want := range map[string]string{"exit 7": "exit status 7", "kill -TERM $$": "signal: terminated", "kill -SEGV $$": "signal: segmentation fault", "kill -INT $$": "signal: interrupt", "true": "<nil>"} {
		if err := startConfined(t, second, dir, line).Wait(); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, not %s", line, err, want)
		}
	}
	stopped := startConfined(t, second, dir, "kill -STOP $$; exit 9")
	var status unix.WaitStatus
	if _, err := unix.Wait4(stopped.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Errorf("it was not seen to stop: %v, %x", err, status)
	}
	_ = unix.Kill(-stopped.Process.Pid, unix.SIGCONT)
	if err := stopped.Wait(); fmt.Sprint(err) != "exit status 9" {
		t.Error(err)
	}
	o.Beside = nil
	other, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if out := sh(t, other, dir, dial); !strings.Contains(out, "refused") {
		t.Errorf("another session reaches the network: %s", out)
	}
	startConfined(t, other, dir+"/home/s/ws", strings.Replace(serve, "PORT", "second", 1)) // on the same port
	waitFor(t, dir+"/home/s/ws/second")
}

// startConfined starts a shell line in a process group of its own; the test's end kills it.
func startConfined(t *testing.T, k *Confiner, dir, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", line)
	started := make(chan error)
	go func() {
		_ = onThread(func() error { // PDEATHSIG looks at the thread, so it stays
			started <- func() error {
				if err := k.Confine(); err != nil {
					return err
				}
				attr := &os.ProcAttr{Files: make([]*os.File, 3), Sys: &syscall.SysProcAttr{Setpgid: true}}
				path, argv, err := k.Wrap("/bin/sh", cmd.Args, attr)
				if err != nil {
					return err
				}
				cmd.Path, cmd.Args, cmd.ExtraFiles, cmd.SysProcAttr, cmd.Dir = path, argv, attr.Files[3:], attr.Sys, dir
				return cmd.Start()
			}()
			select {}
		})
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	return cmd
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 6000 {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not come", path)
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPlacesAtOnce: the programs of one session make the places to mount on together.
func TestPlacesAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		dir := t.TempDir()
		var group errgroup.Group
		for range 8 {
			group.Go(func() error { return makePlace(dir, "a/b/helper", false) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
