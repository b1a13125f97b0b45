package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode/internal/proctable"
)

// The operations that the layers ask of a session's supervisor; package session
// answers them and has the protocol.
const (
	OpBlocked = "guard.blocked" // args: an Attempt; reply: {}
	OpConsume = "guard.consume" // args: an Attempt; reply: {"allowed":bool}
)

// askTimeout is how long a layer waits for a supervisor that does not answer.
const askTimeout = 3 * time.Second

// errStranger means that somebody else listens in a supervisor's place.
var errStranger = errors.New("it is not the session's supervisor that listens there")

// errNoSupervisor means that no supervisor of the session listens.
var errNoSupervisor = errors.New("the session's supervisor does not answer")

// ask sends one request to a supervisor of the session. Its sockets lie in the
// session's folder; where else a variable may point does not matter, since a
// program could answer there itself. Where the kernel does not keep it from putting a
// socket of its own there, the kernel says who listens. package net stays out of the helper: it
// costs more at each start than one question.
func (st *SessionState) ask(env []string, op string, args, into any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"schema_version": 1, "op": op, "args": json.RawMessage(raw)})
	if err != nil {
		return err
	}
	for _, path := range st.sockets(env) {
		reply, err := st.patient(path, append(line, '\n'))
		if err != nil {
			continue // a run that has ended; another one may be under way
		}
		var r struct {
			OK    bool            `json:"ok"`
			Reply json.RawMessage `json:"reply"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		switch err := json.Unmarshal(reply, &r); {
		case err != nil:
			continue
		case r.Error != nil:
			return errors.New(r.Error.Message)
		case !r.OK:
			continue
		case into == nil:
			return nil
		}
		return json.Unmarshal(r.Reply, into)
	}
	return errNoSupervisor
}

// sockets lists the supervisors' sockets, the one of this run first.
func (st *SessionState) sockets(env []string) []string {
	var list []string
	own := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "SUPERQODE_SOCKET="); ok {
			own = v
		}
	}
	names, err := os.ReadDir(st.dir)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(names) {
		if n, ok := strings.CutPrefix(e.Name(), "sock-"); ok && e.Type()&os.ModeSocket != 0 {
			if _, err := strconv.Atoi(n); err == nil {
				list = append(list, filepath.Join(st.dir, e.Name()))
			}
		}
	}
	if i := slices.Index(list, own); i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

// patient is exchange with a supervisor that may be busy: it hangs up on those
// that come when it has its hands full, hundreds at a time.
func (st *SessionState) patient(path string, line []byte) (reply []byte, err error) {
	until := time.Now().Add(askTimeout)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		reply, err = st.exchange(path, line)
		switch {
		case err == nil && len(reply) > 0, err == syscall.ECONNREFUSED, err == syscall.ENOENT, err == errStranger,
			time.Now().After(until):
			return reply, err
		}
		time.Sleep(pause + time.Duration(os.Getpid()%8)*time.Millisecond) // not all at once again
	}
}

// exchange sends a line to a unix socket and returns the line that comes back.
func (st *SessionState) exchange(path string, line []byte) ([]byte, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	limit := syscall.NsecToTimeval(int64(askTimeout))
	for _, o := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, o, &limit); err != nil {
			return nil, err
		}
	}
	if err := connect(fd, path); err != nil {
		return nil, err
	}
	if pid, err := peer(fd); err != nil {
		return nil, err
	} else if p, ok := proctable.Read(pid); !ok || !slices.Contains(st.Supervisors, p.Name()) {
		return nil, errStranger
	}
	if _, err := f.Write(line); err != nil {
		return nil, err
	}
	reply, err := bufio.NewReader(f).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return reply, err
}

// connect reaches a socket whose path may be longer than an address: then its
// folder is opened and the name is short.
func connect(fd int, path string) error {
	if len(path) > 103 { // 104 bytes on macOS, 108 on Linux, with a final NUL
		dir, err := syscall.Open(filepath.Dir(path), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(dir)
		path = fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path))
	}
	for {
		if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != syscall.EINTR {
			return err
		}
	}
}

// Report tells of a refused attempt: the supervisor writes it down; without one
// it goes to the log directly. What cannot be told changes nothing: the attempt
// stays refused.
func (st *SessionState) Report(env []string, a Attempt) error {
	a = a.Tidy()
	a.At = time.Now().UTC()
	if err := st.ask(env, OpBlocked, a, nil); err == nil {
		return nil
	}
	return a.Append(st.LogPath())
}

// Consume asks whether a person has let this one attempt through, and uses that
// up. Without a supervisor nothing is let through.
func (st *SessionState) Consume(env []string, a Attempt) bool {
	var reply struct {
		Allowed bool `json:"allowed"`
	}
	a = a.Tidy()
	a.At = time.Now().UTC()
	return st.ask(env, OpConsume, a, &reply) == nil && reply.Allowed
}
