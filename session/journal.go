package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// journal is a session's journal.jsonl: one line, flushed to disk, before each
// step that changes something outside the session's folder. It tells a person
// what may have begun; Recover goes by the record's state, for every step can be
// repeated.
type journal struct {
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

func openJournal(sessionDir string, now func() time.Time) journal {
	return journal{filepath.Join(sessionDir, "journal.jsonl"), now}
}

// write appends one step and returns when it is on disk.
func (j journal) write(step string, data map[string]string) error {
	line, err := json.Marshal(entry{schemaVersion, j.now().UTC(), step, data})
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
func (j journal) read() ([]entry, error) {
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

// reached reports whether a step was journalled.
func reached(steps []entry, step string) bool {
	for _, e := range steps {
		if e.Step == step {
			return true
		}
	}
	return false
}
