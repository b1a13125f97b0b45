package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// network is the network of a session whose programs share one. It lasts as long as one of
// them runs; nobody else holds it.
type network struct {
	net  *os.File
	user *os.File // the user namespace that owns it; nil: this process's own
}

func (n *network) close() error {
	if n == nil {
		return nil
	}
	err := n.net.Close()
	if n.user != nil {
		err = errors.Join(err, n.user.Close())
	}
	return err
}

// findNetwork looks for the network of the session among its programs. Only superqode makes
// one that belongs to this user namespace, or to one of the user's right below it: a program
// gets further ones, in which it could have rights, only further below.
func findNetwork(pids []int, below bool) *network {
	mine, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return nil
	}
	defer mine.Close()
	for _, pid := range pids {
		net, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue
		}
		owner := related(net, unix.NS_GET_USERNS)
		if !below && same(owner, mine) && !sameFile(net, "/proc/self/ns/net") {
			_ = owner.Close()
			return &network{net: net}
		}
		parent := related(owner, unix.NS_GET_PARENT)
		if below && same(parent, mine) && ownedByUser(owner) {
			_ = parent.Close()
			return &network{net: net, user: owner}
		}
		for _, f := range []*os.File{net, owner, parent} {
			_ = f.Close()
		}
	}
	return nil
}

// related asks a namespace for another one (ioctl_nsfs(2)); nil is none, or none that this
// process may know.
func related(ns *os.File, which int) *os.File {
	if ns == nil {
		return nil
	}
	fd, err := unix.IoctlRetInt(int(ns.Fd()), uint(which))
	if err != nil {
		return nil
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "namespace")
}

func ownedByUser(ns *os.File) bool {
	uid, err := unix.IoctlGetUint32(int(ns.Fd()), unix.NS_GET_OWNER_UID)
	return err == nil && int(uid) == os.Geteuid()
}

func same(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	sa, err := a.Stat()
	sb, errb := b.Stat()
	return err == nil && errb == nil && os.SameFile(sa, sb)
}

func sameFile(a *os.File, path string) bool {
	b, err := os.Open(path)
	if err != nil {
		return false
	}
	defer b.Close()
	return same(a, b)
}

// enter gives the calling thread the network.
func (n *network) enter() error {
	if err := unix.Setns(int(n.net.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the session's network: %w", err)
	}
	return nil
}

// ownNetwork gives the calling thread a network namespace, in which nothing is but a
// loopback device: no interface, no abstract socket of anybody else.
func ownNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network of its own was refused (%w)", err)
	}
	return startLoopback()
}

func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make a network of its own: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return fmt.Errorf("start the network of its own: %w", err)
	}
	return nil
}

// checkNetwork looks for a way to two addresses that nobody has (RFC 5737, RFC 3849).
// Connecting a datagram socket sends nothing.
func checkNetwork() error {
	for family, to := range map[int]unix.Sockaddr{
		unix.AF_INET:  &unix.SockaddrInet4{Port: 9, Addr: netip.MustParseAddr("192.0.2.1").As4()},
		unix.AF_INET6: &unix.SockaddrInet6{Port: 9, Addr: netip.MustParseAddr("2001:db8::1").As16()},
	} {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			continue // there is no network of this family
		}
		err = unix.Connect(fd, to)
		_ = unix.Close(fd)
		if err == nil {
			return errors.New("the network can be reached all the same")
		}
	}
	return nil
}
