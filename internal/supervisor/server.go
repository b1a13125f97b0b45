// Package supervisor is the socket between a session's programs and the process
// that runs them, which alone writes the session's state: a Server answers with
// Handlers, Call asks, and Of and InsideOf ask the kernel who listens where.
//
// Over the unix socket SUPERQODE_SOCKET the program sends one JSON object a line and
// gets one JSON object a line back.
//
//	→ {"schema_version":1,"op":"finding.add","args":{…}}
//	← {"schema_version":1,"ok":true,"reply":{…}}
//	← {"schema_version":1,"ok":false,"error":{"code":"usage","message":"…"}}
//
// A line is at most 1 MiB. The server answers only processes of the same user;
// the kernel names the peer. No operation changes what the session is, what it
// has done or what was blocked.
package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/proctable"
	"github.com/seed-2d964004/superqode/internal/state"
)

// MaxConnections is how many connections one supervisor serves at a time.
const MaxConnections = 64

const (
	maxRequest     = 1 << 20
	requestTimeout = 10 * time.Second
	closeTimeout   = time.Second
)

type request struct {
	SchemaVersion int             `json:"schema_version"`
	Op            string          `json:"op"`
	Args          json.RawMessage `json:"args,omitempty"`
}

type response struct {
	SchemaVersion int             `json:"schema_version"`
	OK            bool            `json:"ok"`
	Reply         json.RawMessage `json:"reply,omitempty"`
	Error         *Refusal        `json:"error,omitempty"`
}

// Handler answers one operation. pid is the asking process.
type Handler func(ctx context.Context, pid int, args json.RawMessage) (reply any, err error)

// Server listens on one socket while a program runs.
type Server struct {
	l        *net.UnixListener
	path     string
	handlers map[string]Handler
	slots    chan struct{}
	reserved chan struct{} // slots that the session's programs cannot fill
	done     sync.WaitGroup
	cancel   context.CancelFunc
}

// Listen starts a supervisor on a socket file at path, which may be longer than
// the 108 bytes that a socket address holds (see socketAddr).
func Listen(path string, handlers map[string]Handler) (*Server, error) {
	addr, release, err := socketAddr(path)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // the short name could mean another file; close removes path
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{l: l, path: path, handlers: handlers, slots: make(chan struct{}, MaxConnections), reserved: make(chan struct{}, MaxConnections), cancel: cancel}
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// Close stops listening, lets go of the connections and waits for them. A request that is
// being answered gets its answer, unless its sender takes more than a moment to read it.
func (s *Server) Close() error {
	s.cancel()
	err := s.l.Close()
	s.done.Wait()
	return errors.Join(err, os.RemoveAll(s.path)) // the program may have put a folder there
}

func (s *Server) accept(ctx context.Context) {
	for {
		c, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for example: the next attempt may work
			select {
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if !s.serve(ctx, c, s.slots) && !(outside(c) && s.serve(ctx, c, s.reserved)) {
			_ = c.Close() // a program that keeps opening connections must not exhaust our file descriptors
		}
	}
}

// serve answers a connection if there is a slot for it.
func (s *Server) serve(ctx context.Context, c *net.UnixConn, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
	default:
		return false
	}
	s.done.Go(func() {
		defer func() { <-slots }()
		s.converse(ctx, c)
	})
	return true
}

// outside reports whether the peer is no program of the session's, but for example a
// workspace kill that ends one. One that is gone may have passed its connection on.
func outside(c *net.UnixConn) bool {
	pid, _, err := peer(c)
	if err != nil || pid == os.Getpid() {
		return err == nil
	}
	_, alive := proctable.Read(pid)
	return alive && !Descends(pid, os.Getpid())
}

func (s *Server) converse(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = c.CloseRead()
		time.AfterFunc(closeTimeout, func() { _ = c.Close() })
	})
	defer stop()
	pid, uid, err := peer(c)
	if err != nil || uid != os.Getuid() && uid != 0 {
		_ = reply(c, response{Error: &Refusal{"denied", "the supervisor answers only processes of the session's user"}})
		return
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 4096), maxRequest)
	for {
		_ = c.SetDeadline(time.Now().Add(requestTimeout)) // a deadline on a closed connection: the next read reports it
		if !lines.Scan() || ctx.Err() != nil {
			if errors.Is(lines.Err(), bufio.ErrTooLong) {
				_ = reply(c, response{Error: &Refusal{"usage", "the line is longer than 1 MiB"}})
			}
			return
		}
		_ = c.SetDeadline(time.Time{}) // waiting for a claim may take longer; whileOpen watches the connection
		asked, stop := whileOpen(ctx, c)
		answer := s.answer(asked, pid, lines.Bytes())
		stop()
		_ = c.SetDeadline(time.Now().Add(requestTimeout))
		if err := reply(c, answer); err != nil {
			return
		}
	}
}

// whileOpen returns a context that ends when the client has closed the
// connection or died. It begins to check after a moment: most answers are
// faster.
func whileOpen(ctx context.Context, c *net.UnixConn) (context.Context, context.CancelFunc) {
	const pause = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	raw, err := c.SyscallConn()
	if err != nil {
		cancel()
		return ctx, cancel
	}
	var look func()
	look = func() {
		gone := false
		err := raw.Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(poll, 0)
			gone = err == nil && n > 0 && poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
		})
		switch {
		case ctx.Err() != nil:
		case gone || err != nil:
			cancel()
		default:
			time.AfterFunc(pause, look)
		}
	}
	time.AfterFunc(pause, look)
	return ctx, cancel
}

func (s *Server) answer(ctx context.Context, pid int, line []byte) response {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return response{Error: &Refusal{"usage", "not a JSON object: " + err.Error()}}
	}
	if q.SchemaVersion != state.SchemaVersion {
		return response{Error: &Refusal{"usage",
			fmt.Sprintf("schema_version is %d, this superqode knows 1", q.SchemaVersion)}}
	}
	h, ok := s.handlers[q.Op]
	if !ok {
		return response{Error: &Refusal{"usage", fmt.Sprintf("unknown operation %q", q.Op)}}
	}
	v, err := h(ctx, pid, q.Args)
	if err != nil {
		return response{Error: Refuse(err)}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return response{Error: &Refusal{"error", err.Error()}}
	}
	return response{OK: true, Reply: raw}
}

func reply(c *net.UnixConn, r response) error {
	r.SchemaVersion = state.SchemaVersion
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.Write(append(line, '\n'))
	return err
}

// maxSocketPath is the longest path that fits into sockaddr_un on every system
// that superqode runs on (104 bytes on macOS, 108 on Linux, with a final NUL).
const maxSocketPath = 103

// socketAddr returns an address for a socket file. If its path is too long for
// a socket address, the address leads through an open handle of its folder.
func socketAddr(path string) (addr string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	short, err := viaHandle(dir, filepath.Base(path))
	if err != nil {
		return "", nil, errors.Join(err, dir.Close())
	}
	return short, func() { _ = dir.Close() }, nil // read-only handle: closing it can lose nothing
}

// Refusal is an error in the form that crosses a socket or a pipe.
type Refusal struct {
	Code    string `json:"code"` // one of codes, or "error"
	Message string `json:"message"`
}

// Refuse turns an error into a Refusal.
func Refuse(err error) *Refusal {
	for _, c := range codes() {
		if errors.Is(err, c.err) {
			return &Refusal{c.code, err.Error()}
		}
	}
	return &Refusal{"error", err.Error()}
}

// Err turns a received Refusal into an error.
func (r *Refusal) Err() error {
	for _, c := range codes() {
		if c.code == r.Code {
			return superqode.Errorf(c.err, "%s", r.Message)
		}
	}
	return errors.New(r.Message)
}

// codes pairs the protocol's error codes with the sentinels of package
// superqode, so that both ends branch on the same errors.
func codes() []struct {
	code string
	err  error
} {
	return []struct {
		code string
		err  error
	}{
		{"denied", superqode.ErrDenied}, {"conflict", superqode.ErrConflict}, {"locked", superqode.ErrLocked},
		{"not_found", superqode.ErrNotFound}, {"usage", superqode.ErrUsage},
		{"verification", superqode.ErrVerification},
	}
}
