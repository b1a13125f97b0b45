//go:build linux

package overlay

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/runner"
)

// A field is an origin with a session on it, and what an attacker wants.
type field struct {
	way, dir, origin, own string
	at                    string // where programs start
	l                     Layers
	m                     *Mount // nil where there is no overlay
	k                     *kernel.Confiner
	env                   []string
}

// The ways in which mounts keep an origin.
const (
	covered  = "covered by an overlay"
	readOnly = "read-only"
	inPlace  = "open but for its .git"
)

// battlefield opens a session, and starts outside of it what a program could go through:
// a process that works in the origin, and descriptors of the origin in this one.
func battlefield(t *testing.T, way string) *field {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	f := &field{way: way, dir: dir, origin: dir + "/p/origin", own: dir + "/home/s/tmp", at: dir + "/p/origin"}
	qe := dir + "/home/qe"
	f.l = Layers{Lower: []string{dir + "/home/delta", dir + "/home/base"}, Upper: qe + "/upper", Work: qe + "/work", Socket: kernel.SocketsDir(dir+"/home") + "/s"}
	for _, d := range append([]string{f.origin + "/.git/objects", f.own + "/objects", filepath.Dir(f.l.Socket), qe}, f.l.Lower...) {
		must(t, os.MkdirAll(d, 0o755))
	}
	for _, file := range []string{f.origin + "/a", f.origin + "/real", f.origin + "/.git/objects/o", f.l.Lower[0] + "/a", dir + "/home/s/session.json"} {
		write(t, file, "as it was")
	}
	o := kernel.Options{Env: os.Environ(), Home: dir + "/home", Origin: f.origin, GitDirs: []string{f.origin + "/.git"}, Own: []string{f.own}, Scratch: f.own, Helper: helper}
	switch way {
	case covered:
		f.m = open(t, f.l)
		o.Overlay, o.Binds = f.m.Copy, map[string]string{f.own + "/objects": f.origin + "/.git/objects"}
	case readOnly:
		f.at = f.own
	case inPlace:
		o.InPlace = true
	}
	f.k, err = kernel.Open(o)
	must(t, err)
	if f.k.Layer.By != kernel.Mounts {
		t.Fatalf("the kernel layer is %+v", f.k.Layer)
	}
	t.Cleanup(func() { must(t, f.k.Close()) })
	outside := exec.Command("sleep", "600")
	outside.Dir = f.origin
	must(t, outside.Start())
	t.Cleanup(func() { _, _ = outside.Process.Kill(), outside.Wait() })
	held, err := os.Open(f.origin)
	must(t, err)
	t.Cleanup(func() { _ = held.Close() })
	exe, err := os.Executable()
	must(t, err)
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, f.origin+"/a", 0)
	must(t, err)
	var st unix.Stat_t
	must(t, unix.Stat(f.origin, &st))
	mounter, root := outside.Process.Pid, held.Fd()
	if f.m != nil {
		mounter, root = f.m.mounter(t), f.m.root.Fd()
	}
	f.env = append(os.Environ(), "D="+dir, "O="+f.origin, "T="+f.own, "SOCKET="+f.l.Socket, "ATTACK="+exe+" "+attackWord,
		fmt.Sprint("SELF=", os.Getpid()), fmt.Sprint("OUT=", outside.Process.Pid), fmt.Sprint("MOUNTER=", mounter),
		fmt.Sprint("FD=", held.Fd()), fmt.Sprint("ROOT=", root), fmt.Sprint("DEV=", st.Dev),
		"HANDLE="+hex.EncodeToString(handle.Bytes()), fmt.Sprint("TYPE=", handle.Type()))
	return f
}

// sh runs a line in the session.
func (f *field) sh(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	_, err := runner.Run(t.Context(), runner.Spec{Args: []string{"/bin/sh", "-c", line}, Dir: f.at, Env: f.env, Stdout: &out, Stderr: &out,
		Confine: f.k.Confine, Wrap: f.k.Wrap})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String()
}

// print is what of the outside no program may change.
func (f *field) print(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	origin := f.origin
	if f.way == inPlace {
		origin += "/.git"
	}
	for _, top := range append([]string{origin, f.dir + "/home/s/session.json", filepath.Dir(f.l.Socket)}, f.l.Lower...) {
		must(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %v %v", path, info.Mode(), info.ModTime())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %q", text)
			}
			b.WriteByte('\n')
			return nil
		}))
	}
	return b.String()
}

// TestAttacks: each line tries to reach the origin, another layer, or superqode's own
// state from inside. Whatever it prints, nothing of that changes, and what only the
// attacker's own commands can tell they do not: "got it".
func TestAttacks(t *testing.T) {
	for _, way := range []string{covered, readOnly, inPlace} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			battlefield(t, way).attacks(t)
		})
	}
}

func (f *field) attacks(t *testing.T) {
	if out := f.sh(t, "echo mine >a && cat a && mkdir m && id -u"); out != "mine\n"+strconv.Itoa(os.Getuid())+"\n" {
		t.Fatalf("the workspace does not work: %s", out)
	}
	before := f.print(t)
	hit := "echo x >$O/a; echo x >$O/new; rm -rf $O/real; echo x >$O/.git/objects/o"
	for _, line := range []string{
		// taking the mount away, or going around it
		"umount $O; " + hit, "umount -l $O; " + hit, "umount -f $O; " + hit, "unshare -m sh -c 'umount -l $O; " + hit + "'", "unshare -Urm sh -c 'umount -l $O; " + hit + "'",
		"unshare -Urm sh -c 'umount -R -l $D; " + hit + "'", "mount -o remount,bind,rw $D/home; echo x >$D/home/s/session.json",
		"for d in $D/p $D /; do mount --bind $d m && echo x >m/origin/a; echo x >m/p/origin/a; echo x >m$O/a; done", "unshare -Urm sh -c 'mount --bind $D/p m && echo x >m/origin/a'",
		"unshare -Urm sh -c 'mount --rbind $D/p m && umount -l m/origin && echo x >m/origin/a'", "unshare -Urm sh -c 'mount --make-rprivate / && mount --move $O m; " + hit + "'",
		"mv $D/p $D/q && echo x >$D/q/origin/a", "mv $O $D/p/q; " + hit, "rmdir $O; rm -rf $O; mkdir $O; " + hit, "ln -s $D/p/origin/../origin l && echo x >l/a",
		"mount -t tmpfs t $D/p; mkdir -p $O; " + hit, "cd ..; cd origin; echo x >a; cd $D/p/../p/origin && rm -f real", "chroot / sh -c '" + hit + "'", "pivot_root $D $D/p; " + hit,
		`unshare -Ur perl -e 'mkdir "c"; chroot "c"; chdir ".." for 1..64; chroot "."; exec "/bin/sh", "-c", @ARGV' "` + hit + `"`,
		"mkdir $D/w; for o in lowerdir=$T,upperdir=$D/p,workdir=$D/w lowerdir=$O:$T,upperdir=$D/home/base,workdir=$D/home/qe/work lowerdir=$T,upperdir=$O/.git,workdir=$D/w; do " +
			"mount -t overlay o -o $o m; unshare -Urm sh -c \"mount -t overlay o -o userxattr,$o m && rm -rf m/real m/origin/real && echo x >m/a && echo x >m/origin/a && echo x >m/HEAD\"; done",
		"for b in $(grep ^/dev/ /proc/self/mounts | cut -d' ' -f1 | sort -u); do mount $b m && echo x >m$O/a; unshare -Urm sh -c \"mount $b m && echo x >m$O/a\"; done",
		// through processes and descriptors outside
		"for p in $SELF $OUT $MOUNTER 1; do for r in root$O cwd root/$D/p/origin; do echo x >/proc/$p/$r/a; rm -rf /proc/$p/$r/real; done; done",
		"for p in $SELF $PPID; do echo x >/proc/$p/fd/$FD/a; echo x >/proc/$p/fd/$ROOT/../a; (cd /proc/$p/fd/$FD && rm -rf real); done", "for f in /proc/$MOUNTER/fd/*; do echo x >$f/a; done",
		"for f in /proc/self/fd/*; do echo x >$f/a; rm -rf $f/real; done", "for p in $SELF $OUT $MOUNTER 1; do nsenter -t $p -m sh -c '" + hit + "'; nsenter -t $p -U -m sh -c '" + hit + "'; nsenter -t $p -a sh -c '" + hit + "'; done",
		"for p in $SELF $OUT $MOUNTER $PPID; do $ATTACK setns $p $O; done", "for p in $SELF $OUT $MOUNTER; do $ATTACK ptrace $p; $ATTACK getfd $p $FD; $ATTACK getfd $p 4; $ATTACK proof $p; done",
		"unshare -Ur sh -c 'for p in $SELF $OUT $MOUNTER; do $ATTACK ptrace $p; $ATTACK getfd $p $FD; $ATTACK setns $p $O; done'", "$ATTACK socket $SOCKET; $ATTACK socket /proc/$SELF/root$SOCKET; rm -f $SOCKET",
		// below the file systems
		"for d in / $T $T/objects $O $D/home; do $ATTACK handle $d $HANDLE $TYPE; done", "unshare -Urm sh -c 'mount --bind / m; for d in m m$D $D/p; do $ATTACK handle $d $HANDLE $TYPE; done'",
		"$ATTACK device $T $DEV; $ATTACK device $O $DEV; $ATTACK device /dev/shm $DEV", "$ATTACK mounts $O $T", "unshare -Urm $ATTACK mounts $O $T", "unshare -m $ATTACK mounts $O $T",
		"for f in $O/a $O/.git/objects/o $T/objects/o $D/home/s/session.json; do $ATTACK ring $f; $ATTACK events $f; unshare -Ur $ATTACK events $f; done",
		// links and what is bound
		"ln $T/objects/o $T/o && echo x >$T/o", "ln $T/objects/o o && echo x >o", "echo x >$T/objects/o; rm -f $T/objects/o; mv $T/objects $T/gone", "mount -o remount,bind,rw $T/objects; echo x >$T/objects/o", "umount -l $T/objects; echo x >$T/objects/o",
		"(cd $T/objects/.. && echo x >../session.json)", "ln /proc/$SELF/root$O/a h && echo x >h", "ln $D/home/base/a h; echo x >$D/home/base/a; echo x >$D/home/delta/a; echo x >$D/home/qe/upper/sneaked",
		// our state
		"echo x >$D/home/s/session.json; rm -rf $D/home/s $D/home/base $D/home/qe", "umount -l $D/home; echo x >$D/home/s/session.json", "kill -9 $MOUNTER $OUT $SELF",
	} {
		out := f.sh(t, "mkdir -p m; "+line)
		if got := f.print(t); got != before {
			t.Fatalf("%s (%s) changed\n%s\nit was\n%s", line, out, got, before)
		}
		if strings.Contains(out, "got it") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if f.m == nil {
		return
	}
	if _, err := os.Lstat(f.l.Upper + "/sneaked"); err == nil {
		t.Error("the upper folder was written to under its own name")
	}
	if c, err := f.m.Copy(); err != nil || c.Close() != nil {
		t.Errorf("the mounter no longer answers: %v", err)
	}
	reads(t, f.m.Dir()+"/a", "x\n") // they went into the workspace
}

// TestSandboxInside: what a sandbox of an agent does at its start works in the workspace:
// namespaces of its own, binds of the workspace, a private /tmp, an overlay over it.
func TestSandboxInside(t *testing.T) {
	t.Parallel()
	f := battlefield(t, covered)
	write(t, f.m.Dir()+"/a", "mine")
	for name, line := range map[string]string{
		"bind":    `unshare -Urm sh -ec 'mount --rbind "$O" "$T/w"; mount -t tmpfs t /mnt; echo bound >"$T/w/bound"' && cat bound`,
		"closed":  `unshare -Urm sh -ec 'mount --rbind "$O" "$T/w"; mount -o remount,bind,ro "$T/w"; ! echo x >"$T/w/x"' 2>/dev/null && echo bound`,
		"nested":  `unshare -Urm sh -ec 'mkdir $T/n; mount -t tmpfs t $T/n; mkdir $T/n/u $T/n/w; mount -t overlay o -o userxattr,lowerdir="$O",upperdir=$T/n/u,workdir=$T/n/w $T/w; cat $T/w/a; echo x >$T/w/a; cat a' | tr -d '\n' | grep -qx minemine && echo bound`,
		"pid":     `unshare -Urmpf --mount-proc sh -ec 'echo bound >p; cat p'`,
		"setuid?": `unshare -Ur sh -c 'id -u' | grep -qx 0 && echo bound`,
	} {
		if out := f.sh(t, `mkdir -p "$T/w"; `+line); !strings.HasSuffix(out, "bound\n") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestGroups: root's programs may change groups, as sudo does, where root may.
func TestGroups(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("/proc/self/setgroups")
	must(t, err)
	if os.Getuid() != 0 {
		want = []byte("deny\n")
	}
	if out := battlefield(t, covered).sh(t, "cat /proc/self/setgroups"); out != string(want) {
		t.Errorf("setgroups(2): %q inside, %q expected", out, want)
	}
}

// attackWord has this binary try what no shell can; it says "got it" if it could.
const attackWord = "attack"

// attack is one of them: the words are its name and its arguments.
func attack(words []string) {
	number := func(i int) int { n, _ := strconv.Atoi(words[i]); return n }
	got := func(err error) {
		if err == nil {
			err = errors.New("got it")
		}
		fmt.Println(words[0], err)
	}
	switch words[0] {
	case "ptrace":
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(number(1)), 0, 0, 0, 0)
		if errno != 0 {
			got(errno)
		} else {
			got(nil)
		}
		_, err := os.OpenFile("/proc/"+words[1]+"/mem", os.O_RDWR, 0)
		got(err)
	case "getfd":
		fd, err := unix.PidfdOpen(number(1), 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, number(2), 0)
		}
		got(err)
	case "proof":
		_, err := os.Open("/proc/" + words[1] + "/ns/user")
		got(err)
	case "socket":
		_, err := dial(words[1])
		got(err)
	case "setns":
		for _, kind := range []string{"mnt", "user"} {
			fd, err := unix.Open("/proc/"+words[1]+"/ns/"+kind, unix.O_RDONLY, 0)
			if err == nil {
				err = unix.Setns(fd, 0)
			}
			if err == nil { // into its own it may, which changes nothing
				err = fmt.Errorf("joined, and wrote: %w", os.WriteFile(words[2]+"/a", []byte("x"), 0o600))
			}
			got(err)
		}
		fd, err := unix.PidfdOpen(number(1), 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
		}
		if err == nil {
			err = fmt.Errorf("joined, and wrote: %w", os.WriteFile(words[2]+"/a", []byte("x"), 0o600))
		}
		got(err)
	case "handle":
		raw, _ := hex.DecodeString(words[2])
		at, err := unix.Open(words[1], unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err == nil {
			_, err = unix.OpenByHandleAt(at, unix.NewFileHandle(int32(number(3)), raw), unix.O_RDWR)
		}
		got(err)
	case "device":
		node := words[1] + "/disk"
		err := unix.Mknod(node, unix.S_IFBLK|0o666, number(2))
		if err == nil {
			_, err = os.OpenFile(node, os.O_RDWR, 0)
		}
		got(err)
	case "mounts":
		takeMounts(words[1], words[2], got)
	case "ring":
		_ = ring(words[1]) // it may be the workspace's own
	case "events":
		_ = events(words[1])
	}
}

// ring has the kernel open a file from a queue, and writes to it (io_uring(7)).
func ring(path string) error {
	const setup, enter, openAt, waits = 425, 426, 18, 1
	const sqTail, sqArray, cqEntries = 40 + 4, 40 + 24, 80 + 20 // in struct io_uring_params
	var params [120]byte
	fd, _, errno := unix.Syscall(setup, 4, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	at := func(field int) uint32 { return binary.NativeEndian.Uint32(params[field:]) }
	queue, err := unix.Mmap(int(fd), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	entry, err := unix.Mmap(int(fd), 0x10000000, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	name := append([]byte(path), 0)
	entry[0] = openAt
	binary.NativeEndian.PutUint32(entry[4:], uint32(0xffffff9c)) // AT_FDCWD
	binary.NativeEndian.PutUint64(entry[16:], uint64(uintptr(unsafe.Pointer(&name[0]))))
	binary.NativeEndian.PutUint32(entry[28:], unix.O_WRONLY|unix.O_TRUNC)
	binary.NativeEndian.PutUint32(queue[at(sqArray):], 0)
	binary.NativeEndian.PutUint32(queue[at(sqTail):], 1)
	if _, _, errno := unix.Syscall6(enter, fd, 1, 1, waits, 0, 0); errno != 0 {
		return errno
	}
	runtime.KeepAlive(name)
	opened := int32(binary.NativeEndian.Uint32(queue[at(cqEntries)+8:]))
	if opened < 0 {
		return unix.Errno(-opened)
	}
	_, err = unix.Write(int(opened), []byte("x\n"))
	return err
}

// events asks to be told of what is opened, with descriptors to write to (fanotify(7)).
func events(path string) error {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_NONBLOCK, unix.O_RDWR)
	if err != nil {
		return err
	}
	for _, all := range []uint{unix.FAN_MARK_FILESYSTEM, unix.FAN_MARK_MOUNT, 0} {
		err = errors.Join(err, unix.FanotifyMark(fd, unix.FAN_MARK_ADD|all, unix.FAN_OPEN, unix.AT_FDCWD, path))
	}
	if _, oerr := os.ReadFile(path); oerr != nil {
		return oerr
	}
	event := make([]byte, 4096)
	n, rerr := unix.Read(fd, event)
	if rerr != nil || n < 20 {
		return errors.Join(err, rerr)
	}
	_, err = unix.Write(int(int32(binary.NativeEndian.Uint32(event[16:]))), []byte("x"))
	return err
}

// takeMounts tries the system calls of mounts on the one that covers the origin.
func takeMounts(origin, own string, got func(error)) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, origin, unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, own, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	got(err)
	for _, all := range []uint{0, unix.AT_RECURSIVE} {
		fd, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(origin), unix.OPEN_TREE_CLOEXEC|unix.OPEN_TREE_CLONE|all)
		within := fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(origin))
		if err == nil && all != 0 {
			err = unix.Unmount(within, unix.MNT_DETACH)
		}
		if err == nil {
			err = os.WriteFile(within+"/a", []byte("x"), 0o600)
		}
		got(err)
	}
	for _, dir := range []string{"/", os.Getenv("D") + "/home", origin + "/.git", own} {
		fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLOEXEC|unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
		if err == nil {
			err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}
		if err == nil && dir != own {
			err = os.WriteFile(fmt.Sprintf("/proc/self/fd/%d/new", fd), nil, 0o600)
		}
		if dir != own || err != nil {
			got(err)
		}
	}
	got(unix.Mount("", origin, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}
