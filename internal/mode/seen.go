package mode

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/site"
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

func seenPath(s *site.Site) string { return filepath.Join(s.Folder, "seen.json") }

// ReadSeen returns what is known; a file that cannot be understood counts as
// empty, since the times in it are a convenience and nothing is built on them.
func ReadSeen(s *site.Site) (map[string]time.Time, error) {
	seen := map[string]time.Time{}
	data, err := atomicfile.Read(seenPath(s))
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

// WriteSeen replaces the times.
func WriteSeen(s *site.Site, seen map[string]time.Time) error {
	f := seenFile{SchemaVersion: state.SchemaVersion, Paths: make([]seenEntry, 0, len(seen))}
	for p, at := range seen {
		f.Paths = append(f.Paths, seenEntry{[]byte(p), at})
	}
	return atomicfile.WriteJSON(seenPath(s), f)
}

// changesFile keeps the changes of a session that has ended.
type changesFile struct {
	SchemaVersion int                `json:"schema_version"`
	Changes       []superqode.Change `json:"changes"`
}

func changesPath(s *site.Site) string { return filepath.Join(s.Folder, "changes.json") }

// WriteChanges keeps the changes that the end of the session found. That there were
// none is not waited for.
func WriteChanges(s *site.Site, changes []superqode.Change) error {
	wait := atomicfile.Durable
	if len(changes) == 0 {
		wait = atomicfile.Loose
	}
	return wait.WriteJSON(changesPath(s), changesFile{state.SchemaVersion, changes})
}

// ReadChanges returns them. The error wraps ErrNotFound when nothing was collected.
func ReadChanges(s *site.Site) ([]superqode.Change, error) {
	data, err := atomicfile.Read(changesPath(s))
	if errors.Is(err, os.ErrNotExist) {
		return nil, superqode.Errorf(superqode.ErrNotFound, "session %s left no record of its changes", s.Rec.ID)
	}
	if err != nil {
		return nil, err
	}
	if len(data) == 0 && !s.Rec.HasFinal { // a power cut took it, and there were none
		return nil, nil
	}
	var f changesFile
	err = json.Unmarshal(data, &f)
	return f.Changes, err
}
