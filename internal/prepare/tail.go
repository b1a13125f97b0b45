package prepare

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// lastLines keeps the end of what is written to it.
type lastLines struct {
	mu   sync.Mutex
	tail []byte
}

// The end of a command's output that reports show.
const (
	tailBytes = 8 << 10
	tailLines = 20
)

// Write keeps the last bytes.
func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - 2*tailBytes; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return len(b), nil
}

// String returns the last whole lines, made printable.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.tail
	if over := len(text) - tailBytes; over > 0 {
		text = text[over:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), string(utf8.RuneError)), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.Join(lines, "\n"))
}

// appendLine adds a line to a log in the session's folder.
func appendLine(path, line string) error {
	f, err := atomicfile.Append(path, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
