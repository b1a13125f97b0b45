package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The sockets are the system's own: package net would make superqode-shim larger, which
// starts with each git command of a session.

// listen makes a socket in the place of one that nobody serves: the caller holds the lock.
func listen(path string) (int, error) {
	addr, done, err := address(path)
	if err != nil {
		return -1, err
	}
	defer done()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		return -1, fmt.Errorf("listen at %s: %w", path, err)
	}
	return fd, nil
}

// connect returns a connection to a socket.
func connect(path string) (int, error) {
	addr, done, err := address(path)
	if err != nil {
		return -1, err
	}
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, addr); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// address names a socket by its open folder, which done closes: an address has room for
// 107 bytes.
func address(path string) (addr *unix.SockaddrUnix, done func(), err error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path))}, func() { _ = unix.Close(dir) }, nil
}

// receive reads one message, and the descriptor that came with it or -1. "" is the end.
func receive(conn int) (text string, fd int, err error) {
	buf, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	var n, rn int
	for again := true; again; again = errors.Is(err, unix.EINTR) {
		n, rn, _, _, err = unix.Recvmsg(conn, buf, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return "", -1, err
	}
	fd = -1
	if list, _ := unix.ParseSocketControlMessage(rights[:rn]); len(list) == 1 {
		if fds, _ := unix.ParseUnixRights(&list[0]); len(fds) == 1 {
			fd = fds[0]
		}
	}
	return string(buf[:n]), fd, nil
}
