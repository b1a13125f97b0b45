package state

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Journal is a session's journal.jsonl: one line, flushed to disk, before each
// step that changes something outside the session's folder. It tells a person
// what may have begun; Recover goes by the record's state, for every step can be
// repeated.
type Journal struct {
	path string
	now  func() time.Time
}

// entry is one line of the journal.
type entry struct {
	SchemaVersion int               `json:"schema_version"`
	At            time.Time         `json:"at"`
	Step          string            `json:"step"`
	Data          map[string]string `json:"data,omitempty"`
}

// OpenJournal returns the journal of a session; nothing is opened before a write.
func OpenJournal(sessionDir string, now func() time.Time) Journal {
	return Journal{filepath.Join(sessionDir, "journal.jsonl"), now}
}

// Write appends one step and returns when it is on disk.
func (j Journal) Write(step string, data map[string]string) error {
	line, err := json.Marshal(entry{SchemaVersion, j.now().UTC(), step, data})
	if err != nil {
		return err
	}
	f, err := atomicfile.Append(j.path, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(append(line, '\n'))
	return errors.Join(werr, f.Sync(), f.Close())
}

// read returns the steps so far. A last line that a crash cut short is dropped:
// its step had not begun.
func (j Journal) read() ([]entry, error) {
	data, err := atomicfile.Read(j.path)
	if err != nil {
		return nil, err
	}
	return parseJournal(data)
}

func parseJournal(data []byte) ([]entry, error) {
	var steps []entry
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, len(data)+1)
	for sc.Scan() {
		var e entry
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			if !bytes.HasSuffix(data, []byte("\n")) && bytes.HasSuffix(data, sc.Bytes()) {
				return steps, nil
			}
			return steps, err
		}
		steps = append(steps, e)
	}
	return steps, sc.Err()
}
