package supervisor

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/proctable"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Found is a supervisor that runs in a session, as the kernel knows it.
type Found struct {
	Path string // its socket
	PID  int
}

// Of returns the supervisors that listen in a session's folder. The kernel says
// whose a socket is, not the socket's name or its answers.
func Of(dir string) ([]Found, error) {
	names, err := state.Names(dir)
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, name := range names {
		if !strings.HasPrefix(name, "sock-") {
			continue
		}
		path := filepath.Join(dir, name)
		if pid, err := Listener(path); err == nil { // otherwise it was left behind
			list = append(list, Found{path, pid})
		}
	}
	return list, nil
}

// Listener returns the process that listens on a socket.
func Listener(path string) (pid int, err error) {
	addr, release, err := socketAddr(path)
	if err != nil {
		return 0, err
	}
	defer release()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	pid, _, err = peer(c)
	return pid, err
}

// InsideOf returns the session of a project in which this process runs, or "":
// the one whose supervisor it descends from.
func InsideOf(p state.Project) string {
	names, err := p.SessionNames()
	if err != nil {
		return ""
	}
	for _, id := range names {
		list, err := Of(p.SessionPath(id))
		if err != nil {
			continue // it ended meanwhile
		}
		for _, sup := range list {
			if sup.PID != os.Getpid() && Descends(os.Getpid(), sup.PID) {
				return id
			}
		}
	}
	return ""
}

// MaxAncestors bounds the search up the process table.
const MaxAncestors = 64

// Descends reports whether a process descends from another one, or is that one.
func Descends(pid, from int) bool {
	for range MaxAncestors {
		if pid == from {
			return true
		}
		p, ok := proctable.Read(pid)
		if !ok || p.Parent <= 1 && p.Parent != from {
			return false
		}
		pid = p.Parent
	}
	return true // too deep to tell them apart
}
