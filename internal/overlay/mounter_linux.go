package overlay

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unasked is how long a mounter waits for who started it.
const unasked = 10 * time.Second

// maxSilent bounds the connections that have proved nothing yet.
const maxSilent = 128

// Serve is the mounter: args are the words after MounterCommand. It returns when nobody
// has the mount open any more.
func Serve(args []string) int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	ready := os.NewFile(3, "ready")
	listener, tree, err := mounted(args)
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		fmt.Fprintf(ready, "%d %s", int(errno), strings.TrimSuffix(err.Error(), ": "+errno.Error()))
		return 125
	}
	_, err = ready.WriteString("ready")
	if err = errors.Join(err, ready.Close()); err == nil {
		err = serve(listener, tree)
	}
	if err != nil {
		return 125
	}
	return 0
}

// mounted makes the mount and listens for who asks for it. The mount is at a place in
// the mounter's namespace: kernels before 6.15 copy no mount that hangs nowhere.
func mounted(args []string) (listener, tree int, err error) {
	if len(args) < 4 {
		return -1, -1, errors.New("only superqode calls " + MounterCommand)
	}
	socket, upper, work, lower := args[0], args[1], args[2], args[3:]
	// Slave: what the user unmounts is not kept in use here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return -1, -1, fmt.Errorf("separate the mounts: %w", err)
	}
	// "volatile" spares the kernel to wait for the disk, and has it refuse the folder
	// later: that was decided by who started this process.
	if err := os.RemoveAll(filepath.Join(work, "work", "incompat")); err != nil {
		return -1, -1, err
	}
	if tree, err = overlayOf(lower, upper, work); err != nil {
		return -1, -1, err
	}
	if err := openScratch(work); err != nil {
		return -1, -1, err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, upper, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return -1, -1, fmt.Errorf("attach the overlay: %w", err)
	}
	listener, err = listen(socket)
	return listener, tree, err
}

// openScratch lets the user remove what the kernel made without any permission bits.
func openScratch(work string) error {
	return filepath.WalkDir(filepath.Join(work, "work"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
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
	options := [][2]string{{"source", Source(upper)}, {"lowerdir", strings.Join(lowers, ":")}, {"upperdir", name(upper)}, {"workdir", name(work)},
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
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV)
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

// serve answers each message with a copy of the mount until the last one who is joined
// has left. Nobody is before a proof has come. One thread does it all: whoever connects
// while it ends is refused, and asks anew.
func serve(listener, tree int) error {
	var self unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &self); err != nil {
		return err
	}
	poll, joined := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}, map[int32]bool{}
	for {
		n, err := unix.Poll(poll, int(unasked.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0 && len(joined) == 0:
			return err
		}
		left := false
		for _, p := range slices.Clone(poll) {
			switch {
			case p.Revents == 0:
			case p.Fd == int32(listener):
				if fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK); err == nil {
					poll = dropSilent(append(poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), joined)
				}
			case answer(int(p.Fd), tree, joined[p.Fd], self):
				joined[p.Fd] = true
			default:
				left = left || joined[p.Fd]
				delete(joined, p.Fd)
				poll = slices.DeleteFunc(poll, func(q unix.PollFd) bool { return q.Fd == p.Fd })
				_ = unix.Close(int(p.Fd))
			}
		}
		if left && len(joined) == 0 {
			return nil
		}
	}
}

// dropSilent closes the oldest connection without proof if there are many: whoever may
// join proves it at once.
func dropSilent(poll []unix.PollFd, joined map[int32]bool) []unix.PollFd {
	if len(poll)-1-len(joined) <= maxSilent {
		return poll
	}
	i := 1 + slices.IndexFunc(poll[1:], func(p unix.PollFd) bool { return !joined[p.Fd] })
	_ = unix.Close(int(poll[i].Fd))
	return slices.Delete(poll, i, i+1)
}

// answer reads one message and reports whether its sender is joined. The proof is a
// descriptor of this process's user namespace: the kernel opens it only for who made that
// namespace and is in none beside it, as every program of a session is (ptrace(2)).
func answer(conn, tree int, joined bool, self unix.Stat_t) bool {
	text, fd, err := receive(conn)
	if fd >= 0 {
		var st unix.Stat_t
		joined = unix.Fstat(fd, &st) == nil && st.Dev == self.Dev && st.Ino == self.Ino
		_ = unix.Close(fd)
	}
	if err != nil || text == "" || !joined {
		return false
	}
	mount, err := unix.OpenTree(tree, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return unix.Sendmsg(conn, []byte(err.Error()), nil, nil, unix.MSG_NOSIGNAL) == nil
	}
	defer unix.Close(mount)
	return unix.Sendmsg(conn, []byte{0}, unix.UnixRights(mount), nil, unix.MSG_NOSIGNAL) == nil
}
