package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

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
