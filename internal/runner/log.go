package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// logFile is the command log. All streams write to it in the order in which
// their output arrives. It never fails its writers: a broken log must not
// change what the program does.
type logFile struct {
	mu   sync.Mutex
	f    *os.File // nil: no log, or closed
	err  error
	last byte // the last byte written, so that the cut line starts on a new line

	index  *os.File // nil: none
	size   int64
	stream byte // whose bytes come last: 'o', 'e' or 0
}

func openLog(path, index string) (*logFile, error) {
	if path == "" {
		return &logFile{}, nil
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | unix.O_NOFOLLOW
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open command log: %w", err)
	}
	l := &logFile{f: f, last: '\n'}
	if index == "" {
		return l, nil
	}
	st, err := f.Stat()
	if err == nil {
		l.size = st.Size()
		l.index, err = os.OpenFile(index, flags, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("open command log: %w", errors.Join(err, f.Close()))
	}
	return l, nil
}

func (l *logFile) write(stream byte, p []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil && l.err == nil && l.index != nil && stream != l.stream && len(p) > 0 {
		// The index goes first: a concurrent reader then attributes no byte to
		// the wrong stream.
		if _, err := fmt.Fprintf(l.index, "%d %c\n", l.size, stream); err != nil {
			l.err = fmt.Errorf("write command log: %w", err)
			return false
		}
		l.stream = stream
	}
	return l.writeLocked(p)
}

func (l *logFile) writeLocked(p []byte) bool {
	if l.f == nil || l.err != nil || len(p) == 0 {
		return false
	}
	if _, err := l.f.Write(p); err != nil {
		l.err = fmt.Errorf("write command log: %w", err)
		return false
	}
	l.last = p[len(p)-1]
	l.size += int64(len(p))
	return true
}

// line writes one line, and starts a new line for it.
func (l *logFile) line(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != '\n' && l.last != 0 {
		s = "\n" + s
	}
	l.writeLocked([]byte(s + "\n"))
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return l.err
	}
	if err := l.f.Close(); err != nil && l.err == nil {
		l.err = fmt.Errorf("close command log: %w", err)
	}
	if l.index != nil {
		if err := l.index.Close(); err != nil && l.err == nil {
			l.err = fmt.Errorf("close command log: %w", err)
		}
	}
	l.f, l.index = nil, nil
	return l.err
}

// sink is where one output stream goes: to the user's writer and to the log,
// each up to its limit. Its counters may be read while somebody writes to it,
// because Run abandons a writer that blocks for ever.
type sink struct {
	name      string
	to        io.Writer // nil: nowhere
	log       *logFile
	maxLog    int64
	maxPassed int64

	bytes, logged, passed atomic.Int64
	truncated             atomic.Bool
}

// write takes one chunk; it returns the error of the user's writer.
func (s *sink) write(p []byte) error {
	s.bytes.Add(int64(len(p)))
	s.toLog(p)
	if s.to == nil {
		return nil
	}
	if s.maxPassed > 0 {
		if room := s.maxPassed - s.passed.Load(); int64(len(p)) > room {
			s.truncated.Store(true)
			p = p[:room]
		}
	}
	if len(p) == 0 {
		return nil
	}
	n, err := s.to.Write(p)
	s.passed.Add(int64(n))
	return err
}

func (s *sink) stream() byte {
	if s.name == "stderr" {
		return 'e'
	}
	return 'o'
}

func (s *sink) toLog(p []byte) {
	room := s.maxLog - s.logged.Load()
	switch {
	case s.maxLog <= 0 || room >= int64(len(p)):
		if s.log.write(s.stream(), p) {
			s.logged.Add(int64(len(p)))
		}
	case room >= 0: // below 0 the cut line is there already
		s.log.write(s.stream(), p[:room])
		s.logged.Store(s.maxLog + 1) // one above the limit marks the cut
		s.truncated.Store(true)
		s.log.line(fmt.Sprintf("[superqode: %s is cut here, after %d bytes]", s.name, s.maxLog))
	}
}

func (s *sink) result() Stream {
	st := Stream{Bytes: s.bytes.Load(), Logged: s.logged.Load(), Passed: s.passed.Load(), Truncated: s.truncated.Load()}
	if s.maxLog > 0 {
		st.Logged = min(st.Logged, s.maxLog)
	}
	return st
}
