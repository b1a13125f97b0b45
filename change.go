package superqode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ChangeType says how one path differs between two snapshots.
type ChangeType string

// The types of change. A rename may also change contents and mode; ChangeMode
// means that only permission bits differ; ChangeKind (printed "type") that a
// path turned from file to link or the like.
const (
	ChangeCreated  ChangeType = "created"
	ChangeModified ChangeType = "modified"
	ChangeDeleted  ChangeType = "deleted"
	ChangeRenamed  ChangeType = "renamed"
	ChangeMode     ChangeType = "mode"
	ChangeKind     ChangeType = "type"
)

// UnmarshalText accepts the types' names only.
func (t *ChangeType) UnmarshalText(b []byte) error {
	switch c := ChangeType(b); c {
	case ChangeCreated, ChangeModified, ChangeDeleted, ChangeRenamed, ChangeMode, ChangeKind:
		*t = c
		return nil
	}
	return fmt.Errorf("%q is not a type of change", b)
}

// Change is one path that differs between two snapshots. OldPath is set for
// renames only. OldMode and NewMode are st_mode values (type and permission
// bits), 0 where the path did not exist. Lines are -1 when they were not
// counted and 0 for binary contents. Agent is zero if it is not known who made
// the change, and if several agents did: then Agents names them, in the order
// in which their work was merged. Hunks are set if several agents worked in one
// session.
type Change struct {
	Path         RelPath
	OldPath      RelPath
	Type         ChangeType
	LinesAdded   int
	LinesRemoved int
	Binary       bool
	OldMode      uint32
	NewMode      uint32
	Agent        AgentID
	FirstSeen    time.Time
	Agents       []AgentID
	Hunks        []ChangeHunk
}

// ChangeHunk is one place of a changed file, without lines of context, counted
// as git diff -U0 does: a place without lines is after the line that it names.
type ChangeHunk struct {
	OldStart  int       `json:"old_start"`
	OldLines  int       `json:"old_lines"`
	NewStart  int       `json:"new_start"`
	NewLines  int       `json:"new_lines"`
	Agent     AgentID   `json:"agent_id"` // zero: not known
	FirstSeen time.Time `json:"first_seen,omitzero"`
}

type changeJSON struct {
	Path         string     `json:"path"`
	PathBytes    string     `json:"path_bytes,omitempty"`
	Type         ChangeType `json:"type"`
	OldPath      string     `json:"old_path"`
	OldPathBytes string     `json:"old_path_bytes,omitempty"`
	LinesAdded   int        `json:"lines_added"`
	LinesRemoved int        `json:"lines_removed"`
	AgentID      string     `json:"agent_id"`
	OldMode      string     `json:"old_mode"`
	NewMode      string     `json:"new_mode"`
	Binary       bool       `json:"binary"`
	FirstSeen    string     `json:"first_seen"`

	Agents []AgentID    `json:"agents,omitempty"`
	Hunks  []ChangeHunk `json:"hunks,omitempty"`
}

// MarshalJSON writes the shape of docs/formats.md. A path that is not UTF-8
// is given printable as "path" and exact, in base64, as "path_bytes".
func (c Change) MarshalJSON() ([]byte, error) {
	j := changeJSON{
		Type: c.Type, LinesAdded: max(c.LinesAdded, 0), LinesRemoved: max(c.LinesRemoved, 0), Binary: c.Binary,
		AgentID: c.Agent.String(), OldMode: FormatMode(c.OldMode), NewMode: FormatMode(c.NewMode), Agents: c.Agents,
		Hunks: c.Hunks,
	}
	j.Path, j.PathBytes = JSONPath(c.Path.String())
	j.OldPath, j.OldPathBytes = JSONPath(c.OldPath.String())
	if !c.FirstSeen.IsZero() {
		j.FirstSeen = c.FirstSeen.UTC().Format(time.RFC3339Nano)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Change) UnmarshalJSON(b []byte) error {
	var j changeJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Change{Type: j.Type, LinesAdded: j.LinesAdded, LinesRemoved: j.LinesRemoved, Binary: j.Binary,
		Agents: j.Agents, Hunks: j.Hunks}
	var err error
	if c.Path, err = PathFromJSON(j.Path, j.PathBytes); err != nil {
		return err
	}
	if c.OldPath, err = PathFromJSON(j.OldPath, j.OldPathBytes); err != nil {
		return err
	}
	if c.OldMode, err = parseMode(j.OldMode); err != nil {
		return err
	}
	if c.NewMode, err = parseMode(j.NewMode); err != nil {
		return err
	}
	if err = c.Agent.UnmarshalText([]byte(j.AgentID)); err != nil {
		return err
	}
	if j.FirstSeen != "" {
		c.FirstSeen, err = time.Parse(time.RFC3339Nano, j.FirstSeen)
	}
	return err
}

// JSONPath returns a path as it stands in JSON: the text itself and, when it is
// not UTF-8, a printable form with its exact bytes in base64.
func JSONPath(p string) (text, base64Bytes string) {
	if utf8.ValidString(p) {
		return p, ""
	}
	return strings.ToValidUTF8(p, "�"), base64.StdEncoding.EncodeToString([]byte(p))
}

// FormatMode prints an st_mode as git does, in six octal digits; 0 gives "".
func FormatMode(m uint32) string {
	if m == 0 {
		return ""
	}
	return fmt.Sprintf("%06o", m)
}

func parseMode(s string) (uint32, error) {
	if s == "" {
		return 0, nil
	}
	m, err := strconv.ParseUint(s, 8, 32)
	return uint32(m), err
}

// PathFromJSON reads what JSONPath wrote; no text is the zero path.
func PathFromJSON(text, b64 string) (RelPath, error) {
	if b64 != "" {
		b, err := base64.StdEncoding.DecodeString(b64)
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	if text == "" {
		return "", nil
	}
	return ParseRelPath(text)
}
