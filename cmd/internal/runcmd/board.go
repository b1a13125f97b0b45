package runcmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// board shows the output of several agents, each line behind its agent's name,
// and on a terminal below it one line an agent that says what it does.
type board struct {
	a     *app.App
	width int // of the longest name

	mu     sync.Mutex
	live   bool // stderr is a terminal that moves its cursor
	drawn  int  // lines of status on the screen
	status []team.AgentStatus
}

func makeBoard(a *app.App, names []string) *board {
	b := &board{a: a, live: a.ErrTTY && !a.Flags.Quiet && a.Getenv("TERM") != "dumb"}
	for _, n := range names {
		b.width = max(b.width, len(n))
	}
	return b
}

// maxPrefixed is how much of a line without an end is held back.
const maxPrefixed = 64 << 10

// agentStream is one stream of one agent.
type agentStream struct {
	b    *board
	w    io.Writer
	name string
	tty  bool
	held []byte
}

func (b *board) stream(w io.Writer, name string, tty bool) io.Writer {
	return &agentStream{b: b, w: w, name: name, tty: tty}
}

// Write passes whole lines on.
func (s *agentStream) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	at := bytes.LastIndexByte(s.held, '\n') + 1
	if at == 0 && len(s.held) < maxPrefixed {
		return len(p), nil
	}
	if at == 0 {
		at = len(s.held)
	}
	err := s.print(s.held[:at])
	s.held = append(s.held[:0], s.held[at:]...)
	return len(p), err
}

// Flush passes on what had no end.
func (s *agentStream) Flush() error {
	if len(s.held) == 0 {
		return nil
	}
	err := s.print(s.held)
	s.held = nil
	return err
}

func (s *agentStream) print(lines []byte) error {
	var out bytes.Buffer
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		said := string(line)
		if s.tty { // nothing that would move the cursor off its place
			said = text.Printable(strings.TrimSuffix(said, "\r"))
		}
		fmt.Fprintf(&out, "%s | %s\n", term.Padded(s.name, s.b.width), said)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.tty {
		s.b.erase()
		defer s.b.draw()
	}
	_, err := s.w.Write(out.Bytes())
	return err
}

// show draws what the agents do.
func (b *board) show(status []team.AgentStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
	b.erase()
	b.draw()
}

// close takes the status off the screen.
func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.live = false
}

// erase and draw write to a terminal only; when that is gone there is nobody to
// tell.
func (b *board) erase() {
	if b.drawn > 0 {
		fmt.Fprintf(b.a.Err, "\x1b[%dA\x1b[J", b.drawn)
		b.drawn = 0
	}
}

func (b *board) draw() {
	if !b.live {
		return
	}
	for _, st := range b.status {
		fmt.Fprintln(b.a.Err, b.line(st))
		b.drawn++
	}
}

// line is what one agent does. It is short, so that no terminal breaks it.
func (b *board) line(st team.AgentStatus) string {
	name := st.Agent.String()
	if len(name) > 24 {
		name = name[:23] + "…"
	}
	line := term.Padded(name, min(b.width, 24)) + "  "
	switch st.State {
	case team.AgentRunning:
		line += "running " + text.Age(time.Since(st.StartedAt))
	case team.AgentEnded:
		line += exitWord(b.a, st.ExitCode) + " after " + text.Age(st.EndedAt.Sub(st.StartedAt))
	default:
		line += string(st.State)
	}
	if st.Changes >= 0 {
		line += ", " + text.Plural(st.Changes, "path")
	}
	if st.Conflicts > 0 {
		line += ", " + b.a.PaintErr(text.Plural(st.Conflicts, "conflict"), term.Yellow)
	}
	return line
}

// exitWord says in colour how a program ended.
func exitWord(a *app.App, code int) string {
	if code != 0 {
		return a.PaintErr(fmt.Sprintf("exit code %d", code), term.Red)
	}
	return a.PaintErr("done", term.Green)
}
