package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/text"
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
		s.log.line(fmt.Sprintf("[superqode: %s is cut here, after %s]", s.name, text.Size(s.maxLog)))
	}
}

func (s *sink) result() Stream {
	st := Stream{Bytes: s.bytes.Load(), Logged: s.logged.Load(), Passed: s.passed.Load(), Truncated: s.truncated.Load()}
	if s.maxLog > 0 {
		st.Logged = min(st.Logged, s.maxLog)
	}
	return st
}

// LogReader reads one stream, or both, of a log that Run writes or wrote; see
// Spec.Log and Spec.LogIndex. At the log's end Read returns io.EOF and may be
// called again when there is more.
type LogReader struct {
	log   *os.File
	index *bufio.Reader
	file  *os.File // of the index
	want  byte     // 'o', 'e' or 0 for all
	rest  string   // the beginning of an incomplete index line
	parts []part
	at    int64 // in the log
}

// part is where the bytes of one stream begin.
type part struct {
	from   int64
	stream byte
}

// OpenLog opens a log; stream is "stdout", "stderr" or "" for all of it, in the
// order in which it came.
func OpenLog(log, index, stream string) (*LogReader, error) {
	f, err := atomicfile.Open(log)
	if err != nil {
		return nil, err
	}
	r := &LogReader{log: f}
	switch stream {
	case "":
		return r, nil
	case "stdout":
		r.want = 'o'
	case "stderr":
		r.want = 'e'
	default:
		return nil, errors.Join(fmt.Errorf("%q is not an output stream", stream), f.Close())
	}
	if r.file, err = atomicfile.Open(index); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.index = bufio.NewReader(r.file)
	return r, nil
}

// Close closes the files.
func (r *LogReader) Close() error {
	if r.file == nil {
		return r.log.Close()
	}
	return errors.Join(r.log.Close(), r.file.Close())
}

// Read reads on.
func (r *LogReader) Read(p []byte) (int, error) {
	for len(p) > 0 {
		st, err := r.log.Stat()
		if err != nil {
			return 0, err
		}
		end := st.Size() // before the index: what the index does not know yet is not read
		if r.at >= end {
			return 0, io.EOF
		}
		mine, until := true, end
		if r.want != 0 {
			if err := r.readIndex(); err != nil {
				return 0, err
			}
			mine, until = r.whose(end)
		}
		if !mine {
			r.at = until
			continue
		}
		n, err := r.log.ReadAt(p[:min(int64(len(p)), until-r.at)], r.at)
		r.at += int64(n)
		if n > 0 || err != io.EOF {
			return n, err
		}
	}
	return 0, nil
}

// whose reports whether the bytes from at on belong to the wanted stream, and
// up to where.
func (r *LogReader) whose(end int64) (mine bool, until int64) {
	until = end
	for i, p := range r.parts {
		if p.from > r.at {
			until = min(until, p.from)
			r.parts = r.parts[max(i-1, 0):] // earlier parts have been read
			return mine, until
		}
		mine = p.stream == r.want
	}
	if n := len(r.parts); n > 0 {
		r.parts = r.parts[n-1:]
	}
	return mine, until
}

func (r *LogReader) readIndex() error {
	for {
		line, err := r.index.ReadString('\n')
		r.rest += line
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var p part
		if _, err := fmt.Sscanf(strings.TrimSpace(r.rest), "%d %c", &p.from, &p.stream); err != nil {
			return fmt.Errorf("the log's index is broken: %w", err)
		}
		r.parts, r.rest = append(r.parts, p), ""
	}
}
