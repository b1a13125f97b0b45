package codeexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/session"
)

// The states of a ProgramSession.
const (
	ProgramRunning = "running"
	ProgramExited  = "exited"
)

const (
	// MaxTranscript is how many bytes of what a program wrote last can always be read.
	MaxTranscript = 4 << 20
	// quiet is how long a program writes nothing before Yield takes what it wrote for whole.
	quiet = 75 * time.Millisecond
	// closeGrace lies between TERM and KILL in Close.
	closeGrace = 2 * time.Second
)

// ProgramState says how far a program is.
type ProgramState struct {
	Status   string `json:"status"`    // ProgramRunning or ProgramExited
	ExitCode *int   `json:"exit_code"` // nil while it runs
}

// ProgramLog is a piece of what a program wrote, stdout and stderr as they came. Lines are
// numbered from 0. The last one may lack its end: then it is in Output, NextOffset is its
// number, and whoever reads on from there gets it whole.
type ProgramLog struct {
	Output     string `json:"output"` // lines, with "\n" between them; a terminal's "\r\n" is one, too
	Offset     int    `json:"offset"` // the first one's number
	NextOffset int    `json:"next_offset"`
	Truncated  bool   `json:"truncated"` // of all that the program wrote, the first is not kept any more
}

// ProgramPoll is what a program wrote since the last one, and how far it is.
type ProgramPoll struct {
	ProgramState
	ProgramLog
}

// ProgramSession is a program that runs in a workspace, beside others and while the
// caller goes on. Its methods may be called at once and at any time, also after Close.
type ProgramSession struct {
	id   string
	feed *runner.Feed
	kill chan time.Duration
	done chan struct{} // closed when nothing of the program is left

	mu     sync.Mutex
	out    transcript
	polled position
	fresh  bool          // something came since Poll
	news   chan struct{} // closed when something comes; nil: nobody waits
	stdout capped
	stderr capped
	ran    session.Ran // these two are set before done is closed
	err    error
}

// StartProgram starts a program and returns while it runs. Program.Stdin is written first
// and its stdin stays open. When ctx ends, the program does. Close the session.
func (w *Workspace) StartProgram(ctx context.Context, p Program) (*ProgramSession, error) {
	opt, err := w.options(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	ctx, end := w.span(ctx, spanRun, append(ofProgram(p), attribute.Bool("interactive", true))...)
	defer func() {
		if err != nil {
			end(err)
		}
	}()
	w.touch(ctx)
	beside, err := w.beside(ctx)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", w.ID, err)
	}
	feed, err := runner.NewFeed()
	if err != nil {
		return nil, errors.Join(err, beside.Close())
	}
	s := &ProgramSession{id: filepath.Base(superqode.Getenv(opt.Env, "RUN_DIR")), feed: feed, kill: make(chan time.Duration), done: make(chan struct{})}
	started := make(chan struct{})
	opt.Stdin, opt.Stdout, opt.Stderr = feed, stream{s, &s.stdout}, stream{s, &s.stderr}
	opt.Kill, opt.Started = s.kill, func(int) { close(started) }
	go func() {
		ran, err := beside.Exec(ctx, opt)
		err = errors.Join(err, beside.Close())
		s.end(ran, err)
		end(err, attribute.Int("exit_code", ran.ExitCode), attribute.Bool("timed_out", ran.TimedOut))
	}()
	select {
	case <-started:
	case <-s.done:
		select {
		case <-started:
		default:
			return nil, s.err
		}
	}
	if err := s.Write(ctx, string(p.Stdin), false); err != nil && !errors.Is(err, fs.ErrClosed) { // it need not read
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// stream is what the program writes to.
type stream struct {
	s    *ProgramSession
	kept *capped
}

// Write keeps what there is room for, and takes the rest too.
func (w stream) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	_, _ = w.kept.Write(p) // into memory
	w.s.out.write(p)
	w.s.tell()
	return len(p), nil
}

// tell wakes who waits for output; mu is held.
func (s *ProgramSession) tell() {
	s.fresh = true
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

func (s *ProgramSession) end(ran session.Ran, err error) {
	s.feed.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.finish()
	s.ran, s.err = ran, err
	close(s.done)
}

// ID names the session: no other one has the same name.
func (s *ProgramSession) ID() string { return s.id }

// Done is closed when the program, and all that it started, has ended.
func (s *ProgramSession) Done() <-chan struct{} { return s.done }

// State returns how far the program is. Poll returns no less after it.
func (s *ProgramSession) State() ProgramState {
	select {
	case <-s.done:
		code := s.ran.ExitCode
		return ProgramState{ProgramExited, &code}
	default:
		return ProgramState{Status: ProgramRunning}
	}
}

// Poll returns at most limit lines that no Poll has returned, of 0 all, and returns at
// once. A line that had not ended is returned again.
func (s *ProgramSession) Poll(limit int) ProgramPoll {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.State() // first: of a program that has exited all is there
	log, next := s.out.read(s.polled, limit)
	s.polled, s.fresh = next, s.out.whole(next)
	return ProgramPoll{state, log}
}

// Yield is Poll when the program has written something and then nothing for a moment, or
// has exited, or when atMost is over or ctx ends.
func (s *ProgramSession) Yield(ctx context.Context, atMost time.Duration, limit int) ProgramPoll {
	over := time.NewTimer(atMost)
	defer over.Stop()
	for {
		s.mu.Lock()
		var settled <-chan time.Time
		if s.fresh {
			settled = time.After(quiet)
		}
		if s.news == nil {
			s.news = make(chan struct{})
		}
		news := s.news
		s.mu.Unlock()
		select {
		case <-news:
			continue
		case <-settled:
		case <-s.done:
		case <-over.C:
		case <-ctx.Done():
		}
		return s.Poll(limit)
	}
}

// Log returns at most limit lines from line offset on, of 0 all, and of those that are
// kept only. What Poll returns next stays the same.
func (s *ProgramSession) Log(offset, limit int) ProgramLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.out.first
	if offset > from.line {
		_, from = s.out.read(from, offset-from.line)
	}
	log, _ := s.out.read(from, limit)
	return log
}

// Write writes to the program's stdin, with newline a line end after data, and waits until
// ctx ends for the program to take it. The error wraps fs.ErrClosed where nobody will read:
// the program has exited, or has closed its stdin, or CloseStdin was called.
func (s *ProgramSession) Write(ctx context.Context, data string, newline bool) error {
	if newline {
		data += "\n"
	}
	if data == "" {
		return nil
	}
	n, err := s.feed.Write(ctx, []byte(data))
	if err != nil && n > 0 {
		err = fmt.Errorf("the program took %d of %d bytes: %w", n, len(data), err)
	}
	return err
}

// CloseStdin is the end of the program's input.
func (s *ProgramSession) CloseStdin() { s.feed.End() }

// Result returns what the program wrote and how it ended, as Run does; ExitCode is -1 and
// the error nil while it runs.
func (s *ProgramSession) Result() (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran, err := session.Ran{ExitCode: -1}, error(nil)
	if s.State().Status == ProgramExited {
		ran, err = s.ran, s.err
	}
	return Result{s.stdout.String(), s.stderr.String(), ran.ExitCode, ran.TimedOut, s.stdout.cut || s.stderr.cut}, err
}

// Kill ends the program and all that it started: TERM at once, KILL after grace. It
// returns when they have ended, and an error that names those that could not be.
func (s *ProgramSession) Kill(grace time.Duration) error {
	select {
	case s.kill <- max(grace, 0):
		<-s.done
	case <-s.done:
	}
	if errors.Is(s.err, runner.ErrLeftOver) {
		return s.err
	}
	return nil
}

// Close ends what still runs, as Kill does, and may be called again.
func (s *ProgramSession) Close() error {
	s.feed.End()
	return s.Kill(closeGrace)
}

// transcript keeps the end of what a program wrote.
type transcript struct {
	buf   []byte
	first position // of buf
	cut   bool
}

// position is a place in what a program wrote: at bytes, of which line end at ends of lines.
type position struct {
	at   int
	line int
}

// write drops the first of what is kept where it becomes too much, lines as a whole.
func (t *transcript) write(p []byte) {
	t.buf = append(t.buf, p...)
	if len(t.buf) <= 2*MaxTranscript {
		return
	}
	drop := len(t.buf) - MaxTranscript
	if i := bytes.LastIndexByte(t.buf[:drop], '\n'); i >= drop/2 { // a line that is very long is cut
		drop = i + 1
	}
	t.first = position{t.first.at + drop, t.first.line + bytes.Count(t.buf[:drop], []byte{'\n'})}
	t.buf = append(t.buf[:0], t.buf[drop:]...)
	t.cut = true
}

// finish ends the last line.
func (t *transcript) finish() {
	if n := len(t.buf); n > 0 && t.buf[n-1] != '\n' {
		t.buf = append(t.buf, '\n')
	}
}

// whole reports whether a line ends after a position.
func (t *transcript) whole(p position) bool {
	return bytes.IndexByte(t.buf[p.at-t.first.at:], '\n') >= 0
}

// read returns at most limit lines from a position on, of 0 all, and the place after them.
func (t *transcript) read(from position, limit int) (ProgramLog, position) {
	if from.at < t.first.at {
		from = t.first
	}
	rest, next := t.buf[from.at-t.first.at:], from
	for limit <= 0 || next.line-from.line < limit {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		rest, next = rest[i+1:], position{next.at + i + 1, next.line + 1}
	}
	end := next.at
	if bytes.IndexByte(rest, '\n') < 0 {
		end += len(rest) // the beginning of a line
	}
	out := strings.ReplaceAll(string(t.buf[from.at-t.first.at:end-t.first.at]), "\r\n", "\n")
	return ProgramLog{strings.TrimSuffix(out, "\n"), from.line, next.line, t.cut}, next
}
