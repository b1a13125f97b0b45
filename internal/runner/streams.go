package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// streams holds the program's three streams: what the child gets, what we read
// from and write to, and the terminal, if there is one.
type streams struct {
	child [3]*os.File // what the program gets as 0, 1 and 2
	ctty  bool        // child[0] becomes its controlling terminal
	own   []*os.File  // ends that we opened for the child, to close once it has them
	pumps []*pump
	in    io.Reader // copied to inTo by a goroutine
	inTo  *os.File
	keys  *keyboard // nil unless the program has our terminal
	keep  *terminalState
	ptys  []*ptyPair
	log   *logFile
	sinks [2]*sink // of stdout and stderr; the same one if they are merged
	wg    sync.WaitGroup
}

func openStreams(spec Spec) (s *streams, err error) {
	s = &streams{}
	if s.log, err = openLog(spec.Log, spec.LogIndex); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.sinks[0] = s.newSink(spec, "stdout", spec.Stdout)
	s.sinks[1] = s.newSink(spec, "stderr", spec.Stderr)
	if merged(spec.Stdout, spec.Stderr) {
		s.sinks[0].name = "output"
		s.sinks[1] = s.sinks[0]
	}
	in, inTTY := terminal(spec.Stdin)
	_, outTTY := terminal(spec.Stdout)
	if inTTY {
		s.keep = saveTerminal(in)
	}
	if spec.TTY || inTTY && outTTY {
		return s, s.openTerminal(spec)
	}
	if err = s.openStdin(spec.Stdin); err != nil {
		return nil, err
	}
	for i, w := range []io.Writer{spec.Stdout, spec.Stderr} {
		if i == 1 && s.sinks[1] == s.sinks[0] {
			s.child[2] = s.child[1]
			break
		}
		if err = s.openOutput(i, w); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *streams) newSink(spec Spec, name string, w io.Writer) *sink {
	return &sink{name: name, to: w, log: s.log, maxLog: spec.MaxOutput, maxPassed: spec.MaxPassed}
}

// merged reports whether two writers lead to the same place, so that one pipe
// can serve both and keep their order.
func merged(a, b io.Writer) bool {
	if a == nil || b == nil {
		return false
	}
	if fa, ok := a.(*os.File); ok {
		if fb, ok := b.(*os.File); ok {
			sa, err1 := fa.Stat()
			sb, err2 := fb.Stat()
			return err1 == nil && err2 == nil && os.SameFile(sa, sb)
		}
	}
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// openStdin gives the program its stdin if that is not a pseudo-terminal.
func (s *streams) openStdin(r io.Reader) error {
	switch r := r.(type) {
	case nil:
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.child[0], s.own = null, append(s.own, null)
	case *os.File:
		if _, tty := terminal(r); r == nil || tty && !foreground(r) {
			return s.openStdin(nil) // a program of another session would read what the user types into the shell
		}
		s.child[0] = r
	case *Feed:
		s.child[0], s.own = r.r, append(s.own, r.r)
	default:
		pr, pw, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make stdin: %w", err)
		}
		s.child[0], s.own = pr, append(s.own, pr)
		s.in, s.inTo = r, pw
	}
	return nil
}

// openOutput gives the program stdout (0) or stderr (1): a write-only terminal
// if ours is a terminal, otherwise a pipe.
func (s *streams) openOutput(i int, w io.Writer) error {
	if f, tty := terminal(w); tty {
		p, err := openPTY(f)
		if err != nil {
			return err
		}
		s.ptys = append(s.ptys, p)
		slave, err := p.writeOnly()
		if err != nil {
			return err
		}
		s.child[i+1], s.own = slave, append(s.own, slave)
		s.addPump(p.master, s.sinks[i])
		return nil
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make %s: %w", s.sinks[i].name, err)
	}
	widen(pr)
	s.child[i+1], s.own = pw, append(s.own, pw)
	s.addPump(pr, s.sinks[i])
	return nil
}

func (s *streams) addPump(from *os.File, to *sink) {
	s.pumps = append(s.pumps, &pump{from: from, to: to, done: make(chan struct{})})
}

// start begins to copy. The child has its ends by now, and ours are closed.
func (s *streams) start() {
	s.closeOwn()
	for _, p := range s.pumps {
		s.wg.Go(func() {
			defer close(p.done)
			defer s.onPanic()
			p.err = p.run()
		})
	}
	if s.in != nil {
		// Not in the wait group: the user's Read cannot be interrupted.
		go func() {
			defer s.onPanic()
			_, _ = io.Copy(s.inTo, s.in)
			s.endInput()
		}()
	}
	if s.keys != nil {
		s.wg.Go(func() {
			defer s.onPanic()
			s.keys.run()
		})
	}
}

// endInput ends the program's stdin.
func (s *streams) endInput() {
	if s.ctty {
		_, _ = s.inTo.Write([]byte{4}) // VEOF: a terminal has no other end of file
		return
	}
	_ = s.inTo.Close()
}

// onPanic restores the terminal before a panic in one of our goroutines, or in a
// writer of the caller's, ends the process.
func (s *streams) onPanic() {
	if p := recover(); p != nil {
		s.restoreTerminal()
		panic(p)
	}
}

func (s *streams) closeOwn() {
	for _, f := range s.own {
		_ = f.Close()
	}
	s.own = nil
}

// drain waits until all output has been read and written, after the tree has
// ended. If the user's writer blocks until give is closed, drain returns early
// and leaves a goroutine behind.
func (s *streams) drain(give <-chan struct{}) error {
	s.stopInput()
	for _, p := range s.ptys {
		p.hangUp()
	}
	for _, p := range s.pumps {
		_ = p.from.SetReadDeadline(time.Now().Add(drainTime))
	}
	var errs []error
	for _, p := range s.pumps {
		select {
		case <-p.done:
			if p.err != nil && !errors.Is(p.err, syscall.EPIPE) {
				errs = append(errs, fmt.Errorf("pass on %s: %w", p.to.name, p.err))
			}
		case <-give:
			return errors.Join(append(errs, fmt.Errorf("pass on %s: %w", p.to.name, context.DeadlineExceeded))...)
		}
	}
	s.wg.Wait()
	return errors.Join(errs...)
}

// stopInput ends the copying to the program.
func (s *streams) stopInput() {
	if s.keys != nil {
		s.keys.stop()
	}
	if s.inTo != nil {
		_ = s.inTo.SetWriteDeadline(time.Now())
		if !s.ctty {
			_ = s.inTo.Close()
		}
	}
}

func (s *streams) restoreTerminal() {
	if s.keep != nil {
		s.keep.restore()
	}
}

// resize follows our terminal's size. If the program has no controlling
// terminal, the kernel does not signal it, so resize calls forward.
func (s *streams) resize(forward func()) {
	for _, p := range s.ptys {
		p.resize()
	}
	if !s.ctty {
		forward()
	}
}

// leave gives the terminal back before this process is stopped.
func (s *streams) leave() {
	if s.keys != nil {
		s.keys.detach()
	}
	s.restoreTerminal()
}

// again takes the terminal back after this process was stopped.
func (s *streams) again() {
	if s.keys != nil {
		s.keys.attach()
	}
	for _, p := range s.ptys {
		p.resize()
	}
}

// close releases everything; it may be called twice.
func (s *streams) close() {
	s.closeOwn()
	s.stopInput()
	s.restoreTerminal()
	for _, p := range s.ptys {
		p.hangUp()
	}
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
	if s.keys != nil {
		s.keys.close()
	}
	_ = s.log.close()
}

// pump copies one output stream until its end.
type pump struct {
	from *os.File
	to   *sink
	done chan struct{}
	err  error // why it ended early; read after done
}

const (
	chunk = 64 << 10
	// drainTime is how long to read a pipe after the tree has ended if someone
	// outside the tree still holds it open.
	drainTime = 200 * time.Millisecond
)

// run copies until the stream's end. If the user's writer fails it closes the
// reading end, so the program gets the same EPIPE as without us.
func (p *pump) run() error {
	defer p.from.Close()
	buf := make([]byte, chunk)
	late, got, budget := false, 0, 4<<20
	for budget > 0 {
		n, err := p.from.Read(buf)
		if n > 0 {
			if werr := p.to.write(buf[:n]); werr != nil {
				return werr
			}
			got += n
		}
		if late {
			budget -= n
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Take what the pipe held when the tree ended, but not what a
			// stranger writes afterwards.
			if late && got == 0 {
				return nil
			}
			late, got = true, 0
			_ = p.from.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO), errors.Is(err, os.ErrClosed):
			return nil // EIO is a terminal's end
		default:
			return err
		}
	}
	return nil
}

// terminal returns w's file if it is a terminal.
func terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return nil, false
	}
	return f, control(f, func(fd int) error {
		_, err := term.GetState(fd)
		return err
	}) == nil
}

// control calls fn with f's descriptor and leaves f's blocking mode as it is,
// which f.Fd does not.
func control(f *os.File, fn func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := c.Control(func(fd uintptr) { err = fn(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

func makeRaw(f *os.File) error {
	return control(f, func(fd int) error {
		_, err := term.MakeRaw(fd)
		return err
	})
}

// foreground reports whether we may read and set f: we are in its foreground
// process group, or it does no job control for us. In the background either would
// stop this process (SIGTTIN, SIGTTOU).
func foreground(f *os.File) bool {
	front := true
	_ = control(f, func(fd int) error {
		if pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
			front = pgrp == unix.Getpgrp()
		}
		return nil
	})
	return front
}

// terminalState is the state of a terminal before the program ran.
type terminalState struct {
	f     *os.File
	saved *term.State
}

func saveTerminal(f *os.File) *terminalState {
	t := &terminalState{f: f}
	if control(f, func(fd int) (err error) { t.saved, err = term.GetState(fd); return err }) != nil {
		return nil
	}
	return t
}

// restore undoes what a killed program had set, echo off for example.
func (t *terminalState) restore() {
	if foreground(t.f) {
		_ = control(t.f, func(fd int) error { return term.Restore(fd, t.saved) })
	}
}

// ptyPair is a pseudo-terminal. We hold the slave open until the tree has
// ended: otherwise a program that closes its terminal for a moment would end
// our reading.
type ptyPair struct {
	master, slave *os.File
	like          *os.File // the terminal whose size it has, or nil
}

func openPTY(like *os.File) (*ptyPair, error) {
	m, s, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	// pty.Open leaves the master in blocking mode, where no deadline works.
	var fd int
	if err = control(m, func(old int) (err error) {
		if fd, err = unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			err = unix.SetNonblock(fd, true)
		}
		return err
	}); err != nil {
		_, _ = m.Close(), s.Close()
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	_ = m.Close()
	p := &ptyPair{master: os.NewFile(uintptr(fd), m.Name()), slave: s, like: like}
	p.resize()
	return p, nil
}

// resize gives the pseudo-terminal the size of ours, or 80x24 if there is none.
// The kernel signals the foreground group with SIGWINCH.
func (p *ptyPair) resize() {
	size := &unix.Winsize{Row: 24, Col: 80}
	if p.like != nil {
		_ = control(p.like, func(fd int) error {
			if ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && ws.Col > 0 {
				size = ws
			}
			return nil
		})
	}
	_ = control(p.master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
}

// writeOnly opens the slave for output alone and makes it transparent: our own
// terminal does the output processing. A program that falls back to reading
// keys from its stderr gets an error instead of waiting for ever.
func (p *ptyPair) writeOnly() (*os.File, error) {
	if err := makeRaw(p.slave); err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	f, err := os.OpenFile(p.slave.Name(), os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	return f, nil
}

func (p *ptyPair) hangUp() { _ = p.slave.Close() }

// openTerminal gives the program a controlling terminal.
func (s *streams) openTerminal(spec Spec) error {
	out, outTTY := terminal(spec.Stdout)
	in, inTTY := terminal(spec.Stdin)
	like := out
	if !outTTY {
		like = in
	}
	if !outTTY && !inTTY {
		like = nil
	}
	p, err := openPTY(like)
	if err != nil {
		return err
	}
	s.ptys = append(s.ptys, p)
	s.ctty = true
	s.child = [3]*os.File{p.slave, p.slave, p.slave}
	s.sinks[0].name = "terminal"
	s.addPump(p.master, s.sinks[0])
	if spec.TTY {
		s.sinks[1] = s.sinks[0]
	} else if s.sinks[1] != s.sinks[0] {
		if err := s.openOutput(1, spec.Stderr); err != nil {
			return err
		}
	}
	return s.openKeys(spec.Stdin, p)
}

// openKeys connects stdin with the program's terminal.
func (s *streams) openKeys(r io.Reader, p *ptyPair) (err error) {
	switch f := r.(type) {
	case nil:
	case *os.File:
		s.keys, err = newKeyboard(f, p.master)
		return err
	default:
		s.in, s.inTo = r, p.master
	}
	return nil
}

// keyboard copies our stdin to the program's terminal, with ours in raw mode so
// that the program gets every key, Ctrl-C included. While we are a background
// job it leaves our terminal alone and looks again twice a second.
type keyboard struct {
	in     *os.File
	to     *os.File
	wake   *os.File // its write end ends run
	woken  *os.File
	isTerm bool
	stops  func() bool // answers Ctrl-Z in the terminal's place, or leaves it to the program

	mu       sync.Mutex
	attached bool
	stopped  bool
}

const (
	lookAgain = 500 * time.Millisecond
	ctrlZ     = 26
)

func newKeyboard(in, to *os.File) (*keyboard, error) {
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make stdin: %w", err)
	}
	k := &keyboard{in: in, to: to, wake: wake, woken: woken}
	_, k.isTerm = terminal(in)
	k.attach()
	return k, nil
}

// attach makes the terminal raw if we are in its foreground. Call it again
// after a stop, when the shell may have changed the modes.
func (k *keyboard) attach() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	if k.isTerm {
		if !foreground(k.in) {
			return k.attached
		}
		_ = makeRaw(k.in) // streams.keep has what it was
	}
	k.attached = true
	return true
}

// detach leaves the terminal alone until attach.
func (k *keyboard) detach() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attached = false
}

func (k *keyboard) run() {
	buf, eof := make([]byte, 4096), []byte{4} // VEOF, a terminal's only end of file
	for {
		if !k.attachOnce() {
			if woken, _ := waitReadable(nil, k.woken, lookAgain); woken {
				return
			}
			continue
		}
		woken, ready := waitReadable(k.in, k.woken, -1)
		if woken || !ready {
			return
		}
		if !k.attachOnce() { // this process was stopped meanwhile, and goes on in the background
			continue
		}
		n := 0
		err := control(k.in, func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if n <= 0 {
			if !k.isTerm {
				_, _ = k.to.Write(eof)
			}
			return
		}
		if i := bytes.IndexByte(buf[:n], ctrlZ); i >= 0 && k.isTerm && k.stops() {
			n = i // as a terminal does, the rest is dropped
		}
		if n == 0 {
			continue
		}
		if eof = []byte{4}; buf[n-1] != '\n' {
			eof = []byte{4, 4} // the first one only ends the unfinished line
		}
		if _, err := k.to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (k *keyboard) attachOnce() bool {
	k.mu.Lock()
	done := k.attached
	k.mu.Unlock()
	return done || k.attach()
}

// stop ends run; do not attach after it.
func (k *keyboard) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.stopped = true
		_ = k.wake.Close()
		_ = k.to.SetWriteDeadline(time.Now())
	}
}

func (k *keyboard) close() { _ = k.woken.Close() }
