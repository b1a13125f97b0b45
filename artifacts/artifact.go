package artifacts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Artifact is one entry of the manifest: a file that a session left behind.
type Artifact struct {
	ID           string // <type with _ as ->-<counter %03d>
	Type         Type
	Name         string            // what people call it; several artifacts may share one, see Store.Get
	Path         superqode.RelPath // below qe-artifacts
	Description  string
	CreatedAt    time.Time
	Metadata     map[string]any
	OriginalFile string // where it came from, as the adder said it
	Session      superqode.SessionID
	Agent        superqode.AgentID
	SHA256       string // of the content, 64 hex digits
	Size         int64  // in bytes
}

// artifactJSON is an entry as it stands in the manifest (docs/formats.md).
type artifactJSON struct {
	ID            string              `json:"id"`
	Type          Type                `json:"type"`
	Name          string              `json:"name"`
	Path          string              `json:"path"`
	PathBytes     string              `json:"path_bytes,omitempty"`
	Description   string              `json:"description"`
	CreatedAt     Time                `json:"created_at"`
	Metadata      map[string]any      `json:"metadata"`
	OriginalFile  string              `json:"original_file"`
	OriginalBytes string              `json:"original_file_bytes,omitempty"`
	Session       superqode.SessionID `json:"session_id"`
	Agent         superqode.AgentID   `json:"agent_id"`
	SHA256        string              `json:"sha256"`
	Size          int64               `json:"size"`
}

// MarshalJSON writes the manifest's entry. Names that are not UTF-8 are made
// printable; the exact bytes of path and original file are beside them as
// "path_bytes" and "original_file_bytes".
func (a Artifact) MarshalJSON() ([]byte, error) {
	j := artifactJSON{
		ID: a.ID, Type: a.Type, Name: a.Name, Description: a.Description, CreatedAt: At(a.CreatedAt),
		Metadata: a.Metadata, Session: a.Session, Agent: a.Agent, SHA256: a.SHA256, Size: a.Size,
	}
	j.OriginalFile, j.OriginalBytes = superqode.JSONPath(a.OriginalFile)
	j.Path, j.PathBytes = superqode.JSONPath(a.Path.String())
	if j.Metadata == nil {
		j.Metadata = map[string]any{}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote. A type that is not in the list is
// accepted: a newer superqode may have written it.
func (a *Artifact) UnmarshalJSON(b []byte) error {
	var j artifactJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	p, err := pathFromJSON(j.Path, j.PathBytes)
	if err != nil {
		return err
	}
	if j.OriginalBytes != "" {
		b, err := base64.StdEncoding.DecodeString(j.OriginalBytes)
		if err != nil {
			return err
		}
		j.OriginalFile = string(b)
	}
	if j.ID == "" {
		return fmt.Errorf("an artifact without id")
	}
	*a = Artifact{
		ID: j.ID, Type: j.Type, Name: j.Name, Path: p, Description: j.Description, CreatedAt: j.CreatedAt.Time,
		Metadata: j.Metadata, OriginalFile: j.OriginalFile, Session: j.Session, Agent: j.Agent, SHA256: j.SHA256, Size: j.Size,
	}
	return nil
}

// Ref returns the short form that session results list.
func (a Artifact) Ref() Ref {
	return Ref{ID: a.ID, Type: a.Type, Path: a.Path, SHA256: a.SHA256, Size: a.Size}
}

// Refs returns the short forms of several artifacts, never nil.
func Refs(list []Artifact) []Ref {
	refs := make([]Ref, len(list))
	for i, a := range list {
		refs[i] = a.Ref()
	}
	return refs
}

// Ref is an artifact as it stands in a session result (docs/formats.md).
type Ref struct {
	ID     string
	Type   Type
	Path   superqode.RelPath // below qe-artifacts
	SHA256 string
	Size   int64
}

type refJSON struct {
	ID        string `json:"id"`
	Type      Type   `json:"type"`
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"`
}

// MarshalJSON writes {"id","type","path","sha256","size"}.
func (r Ref) MarshalJSON() ([]byte, error) {
	j := refJSON{ID: r.ID, Type: r.Type, SHA256: r.SHA256, Size: r.Size}
	j.Path, j.PathBytes = superqode.JSONPath(r.Path.String())
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Ref) UnmarshalJSON(b []byte) error {
	var j refJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	p, err := pathFromJSON(j.Path, j.PathBytes)
	*r = Ref{ID: j.ID, Type: j.Type, Path: p, SHA256: j.SHA256, Size: j.Size}
	return err
}

func pathFromJSON(text, b64 string) (superqode.RelPath, error) {
	p, err := superqode.PathFromJSON(text, b64)
	if err == nil && p == "" {
		err = errors.New("empty path")
	}
	return p, err
}

// makeID builds an artifact's id from its type and the manifest's counter.
func makeID(t Type, counter int) string {
	return fmt.Sprintf("%s-%03d", strings.ReplaceAll(string(t), "_", "-"), counter)
}

// Problem is something that did not stop the work but that the user should
// hear: a file that was skipped, a manifest that had to be rebuilt.
type Problem struct {
	Path   string // raw bytes, relative to the folder that the call was about
	Reason string
}

// String returns "path: reason" on one line, with what is not printable escaped.
func (p Problem) String() string { return text.Printable(p.Path) + ": " + text.Printable(p.Reason) }
