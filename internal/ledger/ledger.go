// Package ledger keeps records, one JSON object a line (NDJSON), in append-only
// files.
//
// An append is one write at the end of the file, so that several processes may
// append at the same time without a lock; a caller that must read before it
// appends holds a lock of its own. A killed writer leaves half a line at worst:
// the next append ends that line first, and a reader skips it. A reader ignores
// fields that a record's type does not know, so that an older superqode reads
// what a newer one wrote.
package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// LineError is a whole line that could not be read as a record.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Lines encodes records, one a line.
func Lines[T any](records ...T) ([]byte, error) {
	var lines bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	return lines.Bytes(), nil
}

// Parse returns the records of data in their order, and what is wrong with the
// other lines. It does not report empty lines, or an incomplete last line.
func Parse[T any](data []byte) (records []T, bad []*LineError) {
	return ParseFunc(data, func(line []byte) (record T, err error) {
		err = json.Unmarshal(line, &record)
		return record, err
	})
}

// ParseFunc is Parse with the caller's decoder for one line, which it gets
// without the line end.
func ParseFunc[T any](data []byte, decode func(line []byte) (T, error)) (records []T, bad []*LineError) {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		record, err := decode(text)
		switch {
		case err == nil:
			records = append(records, record)
		case bytes.HasSuffix(line, []byte("\n")):
			bad = append(bad, &LineError{n, err})
		}
	}
	return records, bad
}

// Read returns the records of the file at path as Parse does; a missing file
// has none. The error wraps atomicfile.ErrNotRegular if something other than a
// regular file is at path.
func Read[T any](path string) (records []T, bad []*LineError, err error) {
	data, err := atomicfile.Read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	records, bad = Parse[T](data)
	return records, bad, nil
}

// Append writes records at the end of the file at path and creates the file,
// with mode 0600, if it is missing. It does not wait for the disk.
func Append[T any](path string, records ...T) error {
	lines, err := Lines(records...)
	if err != nil {
		return err
	}
	return AppendLines(path, lines, false)
}

// AppendSynced is Append that returns when the records are on disk.
func AppendSynced[T any](path string, records ...T) error {
	lines, err := Lines(records...)
	if err != nil {
		return err
	}
	return AppendLines(path, lines, true)
}

// AppendLines is Append for what Lines made, and AppendSynced if sync is set.
func AppendLines(path string, lines []byte, sync bool) error {
	if len(lines) == 0 {
		return nil
	}
	f, err := atomicfile.Append(path, 0o600)
	if err != nil {
		return err
	}
	last := []byte("\n")
	st, err := f.Stat()
	if err == nil && st.Size() > 0 {
		_, err = f.ReadAt(last, st.Size()-1)
	}
	if err == nil {
		_, err = f.Write(Extend(last, lines)[len(last):])
	}
	if err == nil && sync {
		err = atomicfile.Sync(f)
	}
	return errors.Join(err, f.Close())
}

// Extend returns the contents of a file with more lines after them, as Append would
// leave it.
func Extend(data, lines []byte) []byte {
	out := bytes.Clone(data)
	if len(lines) > 0 && len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return append(out, lines...)
}
