package session

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

// seenFile keeps when each changed path was first seen changed. Paths are bytes,
// so that every name survives JSON.
type seenFile struct {
	SchemaVersion int         `json:"schema_version"`
	Paths         []seenEntry `json:"paths"`
}

type seenEntry struct {
	Path []byte    `json:"path"`
	At   time.Time `json:"at"`
}

func (s *Session) seenPath() string { return filepath.Join(s.Folder, "seen.json") }

// readSeen returns what is known; a file that can not be understood counts as
// empty, since the times in it are a convenience and nothing is built on them.
func (s *Session) readSeen() (map[string]time.Time, error) {
	seen := map[string]time.Time{}
	data, err := atomicfile.Read(s.seenPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var f seenFile
	if json.Unmarshal(data, &f) == nil {
		for _, e := range f.Paths {
			seen[string(e.Path)] = e.At
		}
	}
	return seen, nil
}

func (s *Session) writeSeen(seen map[string]time.Time) error {
	f := seenFile{SchemaVersion: state.SchemaVersion, Paths: make([]seenEntry, 0, len(seen))}
	for p, at := range seen {
		f.Paths = append(f.Paths, seenEntry{[]byte(p), at})
	}
	return atomicfile.WriteJSON(s.seenPath(), f)
}

// changesFile keeps the changes of a session that has ended.
type changesFile struct {
	SchemaVersion int                `json:"schema_version"`
	Changes       []superqode.Change `json:"changes"`
}

func (s *Session) changesPath() string { return filepath.Join(s.Folder, "changes.json") }

func (s *Session) writeChanges(changes []superqode.Change) error {
	return atomicfile.WriteJSON(s.changesPath(), changesFile{state.SchemaVersion, changes})
}

func (s *Session) readChanges() ([]superqode.Change, error) {
	data, err := atomicfile.Read(s.changesPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, superqode.Errorf(superqode.ErrNotFound, "session %s left no record of its changes", s.Rec.ID)
	}
	if err != nil {
		return nil, err
	}
	var f changesFile
	err = json.Unmarshal(data, &f)
	return f.Changes, err
}
