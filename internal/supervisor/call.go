package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/proctable"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Call sends one request to the supervisor that SUPERQODE_SOCKET in env names
// and decodes its reply. It returns an error that wraps ErrNotFound outside a
// session or when the supervisor is gone. It waits for as long as ctx says, or
// requestTimeout.
func Call(ctx context.Context, env []string, op string, args, into any) error {
	path := superqode.Getenv(env, "SUPERQODE_SOCKET")
	if path == "" {
		err := superqode.Errorf(superqode.ErrNotFound, "not inside a session")
		return superqode.WithHint(err, "superqode run -- CMD")
	}
	addr, release, err := socketAddr(path)
	if err != nil {
		return err
	}
	defer release()
	c, err := dial(ctx, addr)
	if err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "the session's supervisor does not answer: %v", err)
	}
	defer c.Close()
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(request{state.SchemaVersion, op, raw})
	if err != nil {
		return err
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(requestTimeout)
	}
	_ = c.SetDeadline(until) // on a fresh connection this cannot fail without the write failing too
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := c.Write(append(line, '\n')); err != nil { // it has closed: all of its connections are taken
		return superqode.Errorf(superqode.ErrLocked, "the session's supervisor is too busy: %v", err)
	}
	var r response
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return fmt.Errorf("read the supervisor's answer: %w", err)
	}
	if r.Error != nil {
		return r.Error.Err()
	}
	if !r.OK {
		return errors.New("the supervisor sent no result")
	}
	return json.Unmarshal(r.Reply, into)
}

// dial waits where too many others do: a full queue is no error that lasts.
func dial(ctx context.Context, addr string) (c net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		var d net.Dialer
		if c, err = d.DialContext(ctx, "unix", addr); !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Millisecond):
		}
	}
}

// CallSocket sends one request to the supervisor at path.
func CallSocket(ctx context.Context, path, op string, args, into any) error {
	if err := Call(ctx, []string{"SUPERQODE_SOCKET=" + path}, op, args, into); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

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
