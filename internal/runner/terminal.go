package runner

import (
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

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
