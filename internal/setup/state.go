package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

const schemaVersion = 1

// State is what superqode knows about a workspace's setup: what has succeeded,
// and the last result of each entry.
type State struct {
	SchemaVersion int      `json:"schema_version"`
	Records       []Record `json:"records"`
	Steps         []Step   `json:"steps"`
}

// Record is one input or command that has succeeded.
type Record struct {
	ID          string    `json:"id"` // of the definition
	Name        string    `json:"name"`
	Fingerprint string    `json:"fingerprint"` // with the contents of what it reads
	Result      string    `json:"result"`      // digest of what it made
	At          time.Time `json:"at"`
}

// Load reads a state file. If there is none, the workspace was never set up.
func Load(path string) (*State, error) {
	st := &State{SchemaVersion: schemaVersion, Records: []Record{}, Steps: []Step{}}
	data, err := atomicfile.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, st); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if st.SchemaVersion > schemaVersion {
		return nil, fmt.Errorf("%s has schema_version %d, this superqode knows %d", path, st.SchemaVersion,
			schemaVersion)
	}
	return st, nil
}

func (s *State) save(path string) error { return atomicfile.WriteJSON(path, s) }

// find returns the first record that is, or nil.
func (s *State) find(is func(Record) bool) *Record {
	i := slices.IndexFunc(s.Records, is)
	if i < 0 {
		return nil
	}
	return &s.Records[i]
}

// defined returns the record of a definition, or nil.
func (s *State) defined(id string) *Record { return s.find(func(r Record) bool { return r.ID == id }) }

func (s *State) put(r Record) {
	s.drop(r.ID)
	s.Records = append(s.Records, r)
}

func (s *State) drop(id string) {
	s.Records = slices.DeleteFunc(s.Records, func(r Record) bool { return r.ID == id })
}

// keepOnly forgets entries that the configuration no longer names.
func (s *State) keepOnly(ids []string) {
	s.Records = slices.DeleteFunc(s.Records, func(r Record) bool { return !slices.Contains(ids, r.ID) })
}
