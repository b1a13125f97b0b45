package kernel

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// ownNetwork gives the calling thread a network namespace, in which nothing is but a
// loopback device: no interface, no abstract socket of anybody else.
func ownNetwork() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network of its own was refused (%w)", err)
	}
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
