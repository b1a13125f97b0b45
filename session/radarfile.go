package session

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
func (c RadarConflict) MarshalJSON() ([]byte, error) {
	j := radarJSON{A: c.A, B: c.B, Kind: c.Kind, Lines: c.Lines, Message: c.Message}
	j.Path, j.PathBytes = superqode.JSONPath(c.Path.String())
	if j.Lines == nil {
		j.Lines = []merge.LineRange{}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *RadarConflict) UnmarshalJSON(b []byte) error {
	var j radarJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = RadarConflict{A: j.A, B: j.B, Kind: j.Kind, Lines: j.Lines, Message: j.Message}
	var err error
	c.Path, err = superqode.PathFromJSON(j.Path, j.PathBytes)
	return err
}

type radarJSON struct {
	A         RadarSide          `json:"a"`
	B         RadarSide          `json:"b"`
	Path      string             `json:"path"`
	PathBytes string             `json:"path_bytes,omitempty"`
	Kind      merge.ConflictKind `json:"kind"`
	Lines     []merge.LineRange  `json:"lines"` // of the base
	Message   string             `json:"message"`
}

// radarFile is a project's radar.json: what the radar saw when it last looked.
type radarFile struct {
	SchemaVersion int             `json:"schema_version"`
	At            time.Time       `json:"at"`
	Conflicts     []RadarConflict `json:"conflicts"`
}

func radarPath(p state.Project) string { return filepath.Join(p.Dir, "radar.json") }

// writeRadar keeps what was seen, for who has no time to look. A file that says
// the same is left alone, but for one that is empty.
func writeRadar(p state.Project, at time.Time, list []RadarConflict) error {
	if list == nil {
		list = []RadarConflict{}
	}
	if len(list) == 0 && !atomicfile.Exists(radarPath(p)) {
		return nil
	}
	return atomicfile.WriteJSON(radarPath(p), radarFile{state.SchemaVersion, at.UTC(), list})
}

// readRadar returns what was seen last. A file that cannot be understood counts
// as none: it is a convenience, and the next look writes it anew.
func readRadar(p state.Project) ([]RadarConflict, error) {
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
