package radar

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/state"
)

// MarshalJSON writes paths as every document of superqode's does.
func (c Conflict) MarshalJSON() ([]byte, error) {
	j := radarJSON{A: c.A, B: c.B, Kind: c.Kind, Lines: c.Lines, Message: c.Message}
	j.Path, j.PathBytes = superqode.JSONPath(c.Path.String())
	if j.Lines == nil {
		j.Lines = []merge.LineRange{}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Conflict) UnmarshalJSON(b []byte) error {
	var j radarJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Conflict{A: j.A, B: j.B, Kind: j.Kind, Lines: j.Lines, Message: j.Message}
	var err error
	c.Path, err = superqode.PathFromJSON(j.Path, j.PathBytes)
	return err
}

type radarJSON struct {
	A         Side               `json:"a"`
	B         Side               `json:"b"`
	Path      string             `json:"path"`
	PathBytes string             `json:"path_bytes,omitempty"`
	Kind      merge.ConflictKind `json:"kind"`
	Lines     []merge.LineRange  `json:"lines"` // of the base
	Message   string             `json:"message"`
}

// radarFile is a project's radar.json: what the radar saw when it last looked.
type radarFile struct {
	SchemaVersion int        `json:"schema_version"`
	At            time.Time  `json:"at"`
	Conflicts     []Conflict `json:"conflicts"`
}

func radarPath(p state.Project) string { return filepath.Join(p.Dir, "radar.json") }

// write keeps what was seen, for who has no time to look. A file that says
// the same is left alone, but for one that is empty.
func write(p state.Project, at time.Time, list []Conflict) error {
	if list == nil {
		list = []Conflict{}
	}
	if len(list) == 0 && !atomicfile.Exists(radarPath(p)) {
		return nil
	}
	return atomicfile.WriteJSON(radarPath(p), radarFile{state.SchemaVersion, at.UTC(), list})
}

// read returns what was seen last. A file that cannot be understood counts
// as none: it is a convenience, and the next look writes it anew.
func read(p state.Project) ([]Conflict, error) {
	data, err := atomicfile.Read(radarPath(p))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f radarFile
	if json.Unmarshal(data, &f) != nil {
		return nil, nil
	}
	return f.Conflicts, nil
}
