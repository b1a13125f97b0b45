package session

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/home"
)

// listening is a supervisor that is at work in a session, as the kernel knows it.
type listening struct {
	path string // its socket
	pid  int
}

// supervisorsOf returns the supervisors that listen in a session's folder. Whose
// a socket is tells the kernel, not the socket's name or what is answered there.
func supervisorsOf(dir string) ([]listening, error) {
	names, err := home.Names(dir)
	if err != nil {
		return nil, err
	}
	var list []listening
	for _, name := range names {
		if !strings.HasPrefix(name, "sock-") {
			continue
		}
		path := filepath.Join(dir, name)
		if pid, err := listener(path); err == nil { // else it was left behind
			list = append(list, listening{path, pid})
		}
	}
	return list, nil
}

// listener returns the process that listens on a socket.
func listener(path string) (pid int, err error) {
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

// insideOf returns the session of a project in which this process runs, or "":
// the one whose supervisor it descends from.
func insideOf(p home.Project) string {
	names, err := p.SessionNames()
	if err != nil {
		return ""
	}
	for _, id := range names {
		list, err := supervisorsOf(p.SessionPath(id))
		if err != nil {
			continue // it went away meanwhile
		}
		for _, sup := range list {
			if sup.pid != os.Getpid() && descends(os.Getpid(), sup.pid) {
				return id
			}
		}
	}
	return ""
}

// callSocket sends one request to the supervisor at path.
func callSocket(ctx context.Context, path, op string, args, into any) error {
	if err := Call(ctx, []string{"SUPERQODE_SOCKET=" + path}, op, args, into); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
