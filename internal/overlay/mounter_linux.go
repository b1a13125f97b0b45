package overlay

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unasked is how long a mounter waits for who started it.
const unasked = 10 * time.Second

// Serve is the mounter: args are the words after MounterCommand. It returns when nobody
// has the mount open any more.
func Serve(args []string) int {
	ready := os.NewFile(3, "ready")
	ln, at, err := mounted(args)
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		fmt.Fprintf(ready, "%d %s", int(errno), strings.TrimSuffix(err.Error(), ": "+errno.Error()))
		return 125
	}
	_, err = ready.WriteString("ready")
	if err = errors.Join(err, ready.Close()); err != nil {
		return 125
	}
	serve(ln, at)
	return 0
}

// mounted makes the mount and listens for who asks for it. The mount is at a place in
// the mounter's namespace: kernels before 6.15 copy no mount that hangs nowhere.
func mounted(args []string) (ln *net.UnixListener, at string, err error) {
	if len(args) < 4 {
		return nil, "", errors.New("only superqode calls " + MounterCommand)
	}
	socket, upper, work, lower := args[0], args[1], args[2], args[3:]
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, "", fmt.Errorf("separate the mounts: %w", err)
	}
	// "volatile" spares the kernel to wait for the disk, and has it refuse the folder
	// later: that was decided by who started this process.
	if err := os.RemoveAll(filepath.Join(work, "work", "incompat")); err != nil {
		return nil, "", err
	}
	fd, err := overlayOf(lower, upper, work)
	if err != nil {
		return nil, "", err
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, upper, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, "", fmt.Errorf("attach the overlay: %w", err)
	}
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, "", err
	}
	if ln, err = net.ListenUnix("unixpacket", within(dir, socket)); err != nil {
		return nil, "", err
	}
	ln.SetUnlinkOnClose(false) // by then the place may be another mounter's
	return ln, upper, nil
}

// overlayOf makes the file system. Folders are named by descriptors: an option has room
// for 255 bytes, and a path may hold what separates options.
func overlayOf(lower []string, upper, work string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make an overlay: %w", err)
	}
	defer unix.Close(fs)
	name := func(path string) string {
		fd, oerr := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if oerr != nil {
			err = errors.Join(err, &os.PathError{Op: "open", Path: path, Err: oerr})
		}
		return fmt.Sprintf("/proc/self/fd/%d", fd) // open until this process ends
	}
	var lowers []string
	for _, dir := range lower {
		lowers = append(lowers, name(dir))
	}
	options := [][2]string{{"lowerdir", strings.Join(lowers, ":")}, {"upperdir", name(upper)}, {"workdir", name(work)},
		{"index", "on"}} // two mounts of one upper folder are an error then
	if err != nil {
		return -1, err
	}
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, fmt.Errorf("overlay option %s: %w", o[0], explained(fs, err))
		}
	}
	for _, flag := range []string{"userxattr", "volatile"} {
		if err := unix.FsconfigSetFlag(fs, flag); err != nil {
			return -1, fmt.Errorf("overlay option %s: %w", flag, explained(fs, err))
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("make an overlay: %w", explained(fs, err))
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("mount an overlay: %w", err)
	}
	return fd, nil
}

// explained adds what the file system says of an error.
func explained(fs int, err error) error {
	buf := make([]byte, 512)
	n, rerr := unix.Read(fs, buf)
	if rerr != nil || n < 3 {
		return err
	}
	return fmt.Errorf("%s: %w", strings.TrimSpace(string(buf[2:n])), err)
}

// serve hands out copies of the mount until the last connection is closed.
func serve(ln *net.UnixListener, at string) {
	var open sync.WaitGroup
	var conns atomic.Int32
	timer := time.AfterFunc(unasked, func() { _ = ln.Close() })
	for {
		conn, err := ln.AcceptUnix()
		if err != nil {
			break
		}
		timer.Stop()
		conns.Add(1)
		open.Go(func() {
			answer(conn, at)
			if conns.Add(-1) == 0 {
				_ = ln.Close() // whoever has connected meanwhile is refused, and asks anew
			}
		})
	}
	open.Wait()
}

// answer answers each byte with a copy of the mount, or why there is none.
func answer(conn *net.UnixConn, at string) {
	defer conn.Close()
	for buf := make([]byte, 8); ; {
		if n, err := conn.Read(buf); err != nil || n == 0 {
			return
		}
		text, rights := []byte{0}, []byte(nil)
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			text = []byte(err.Error())
		} else {
			rights = unix.UnixRights(fd)
		}
		_, _, err = conn.WriteMsgUnix(text, rights, nil)
		if rights != nil {
			_ = unix.Close(fd)
		}
		if err != nil {
			return
		}
	}
}
