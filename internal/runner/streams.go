package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"
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
