package session

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
	"github.com/seed-2d964004/superqode/home"
)

// The supervisor's protocol: over the unix socket SUPERQODE_SOCKET the program
// sends one JSON object a line and gets one JSON object a line back.
//
//	→ {"schema_version":1,"op":"finding.add","args":{…}}
//	← {"schema_version":1,"ok":true,"reply":{…}}
//	← {"schema_version":1,"ok":false,"error":{"code":"usage","message":"…"}}
//
// A line is at most 1 MiB. Only processes of the same user are answered; the
// kernel names the peer. There is no operation that changes what the session
// is, what it has done or what was blocked.
const (
	maxRequest     = 1 << 20
	maxConnections = 64
	requestTimeout = 10 * time.Second
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
	Error         *protocolError  `json:"error,omitempty"`
}

type protocolError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// handler answers one operation. pid is the asking process.
type handler func(ctx context.Context, pid int, args json.RawMessage) (reply any, err error)

// supervisor listens on one socket while a program runs.
type supervisor struct {
	l        *net.UnixListener
	path     string
	handlers map[string]handler
	slots    chan struct{}
	done     sync.WaitGroup
	cancel   context.CancelFunc
}

// listen starts a supervisor on a socket file at path, which may be longer than
// the 108 bytes that a socket address holds (see socketAddr).
func listen(path string, handlers map[string]handler) (*supervisor, error) {
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
	l.SetUnlinkOnClose(false) // by the short name it could hit another file; close removes path
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &supervisor{l: l, path: path, handlers: handlers, slots: make(chan struct{}, maxConnections), cancel: cancel}
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// close stops listening, ends open conversations and waits for them.
func (s *supervisor) close() error {
	s.cancel()
	err := s.l.Close()
	s.done.Wait()
	return errors.Join(err, os.RemoveAll(s.path)) // the program may have put a folder there
}

func (s *supervisor) accept(ctx context.Context) {
	for {
		c, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, say: the next attempt may work
			select {
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
			s.done.Go(func() {
				defer func() { <-s.slots }()
				s.converse(ctx, c)
			})
		default: // a program that opens connections without end must not use up ours
			_ = c.Close()
		}
	}
}

func (s *supervisor) converse(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	pid, uid, err := peer(c)
	if err != nil || uid != os.Getuid() && uid != 0 {
		_ = reply(c, response{Error: &protocolError{"denied", "only processes of the session's user are answered"}})
		return
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 4096), maxRequest)
	for {
		_ = c.SetDeadline(time.Now().Add(requestTimeout)) // a deadline on a closed connection: the next read tells
		if !lines.Scan() {
			if errors.Is(lines.Err(), bufio.ErrTooLong) {
				_ = reply(c, response{Error: &protocolError{"usage", "the line is longer than 1 MiB"}})
			}
			return
		}
		_ = c.SetDeadline(time.Time{}) // who waits for a claim may take longer; whileOpen looks after the connection
		asked, stop := whileOpen(ctx, c)
		answer := s.answer(asked, pid, lines.Bytes())
		stop()
		_ = c.SetDeadline(time.Now().Add(requestTimeout))
		if err := reply(c, answer); err != nil {
			return
		}
	}
}

// whileOpen returns a context that ends when who asked has closed the connection
// or died. It begins to look after a moment: most answers are faster.
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

func (s *supervisor) answer(ctx context.Context, pid int, line []byte) response {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return response{Error: &protocolError{"usage", "not a JSON object: " + err.Error()}}
	}
	if q.SchemaVersion != home.SchemaVersion {
		return response{Error: &protocolError{"usage", fmt.Sprintf("schema_version %d is not spoken here, 1 is", q.SchemaVersion)}}
	}
	h, ok := s.handlers[q.Op]
	if !ok {
		return response{Error: &protocolError{"usage", fmt.Sprintf("unknown operation %q", q.Op)}}
	}
	v, err := h(ctx, pid, q.Args)
	if err != nil {
		return response{Error: &protocolError{errorCode(err), err.Error()}}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return response{Error: &protocolError{"error", err.Error()}}
	}
	return response{OK: true, Reply: raw}
}

func reply(c *net.UnixConn, r response) error {
	r.SchemaVersion = home.SchemaVersion
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.Write(append(line, '\n'))
	return err
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
		{"not_found", superqode.ErrNotFound}, {"usage", superqode.ErrUsage}, {"verification", superqode.ErrVerification},
	}
}

func errorCode(err error) string {
	for _, c := range codes() {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return "error"
}

// Call sends one request to the supervisor that SUPERQODE_SOCKET in env names
// and decodes its reply. It returns an error that wraps ErrNotFound outside a
// session or when the supervisor is gone. It waits for as long as ctx says, or
// requestTimeout.
func Call(ctx context.Context, env []string, op string, args, into any) error {
	path := superqode.Getenv(env, "SUPERQODE_SOCKET")
	if path == "" {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "not inside a session"), "superqode run -- CMD")
	}
	addr, release, err := socketAddr(path)
	if err != nil {
		return err
	}
	defer release()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", addr)
	if err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "the session's supervisor does not answer: %v", err)
	}
	defer c.Close()
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(request{home.SchemaVersion, op, raw})
	if err != nil {
		return err
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(requestTimeout)
	}
	_ = c.SetDeadline(until) // on a fresh connection this can not fail in a way that the write does not show
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := c.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	var r response
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return fmt.Errorf("read the supervisor's answer: %w", err)
	}
	if r.Error != nil {
		for _, k := range codes() {
			if k.code == r.Error.Code {
				return superqode.Errorf(k.err, "%s", r.Error.Message)
			}
		}
		return errors.New(r.Error.Message)
	}
	if !r.OK {
		return errors.New("the supervisor sent no result")
	}
	return json.Unmarshal(r.Reply, into)
}

// maxSocketPath is the longest path that fits into sockaddr_un on every system
// that superqode runs on (104 bytes on macOS, 108 on Linux, with a final NUL).
const maxSocketPath = 103

// socketAddr returns an address for a socket file. One that is too long for a
// socket address is reached through an open handle of its folder.
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
