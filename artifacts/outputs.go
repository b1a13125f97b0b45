package artifacts

import (
	"encoding/json"
	"path"
	"strings"
)

// Outputs are the files that a session was asked to give back.
type Outputs struct {
	Files        []Output        `json:"files"` // by folder (workspace, output, artifacts) and path
	Bytes        int64           `json:"bytes"` // of all of them
	Skipped      []SkippedOutput `json:"skipped"`
	SkippedCount int             `json:"skipped_count"` // Skipped lists the first 1000
	Cut          *CutOutputs     `json:"cut,omitempty"` // nil: no limit was reached
	Unmatched    []string        `json:"unmatched"`     // patterns to which no file answers
}

// Output is one file.
type Output struct {
	Root      string `json:"root"` // workspace, output or artifacts: the folder that the path counts from
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"` // base64, where the path is no UTF-8
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	Mode      string `json:"mode"`               // octal, four digits
	Artifact  string `json:"artifact,omitempty"` // name@version, where it was saved
	Encoding  string `json:"encoding,omitempty"` // utf-8 or base64, where the content is here
	Content   string `json:"content,omitempty"`
}

// SkippedOutput is one file that matched and was not taken.
type SkippedOutput struct {
	Root      string `json:"root"`
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Reason    string `json:"reason"`
}

// CutOutputs tells what the limits kept out.
type CutOutputs struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Reasons []string `json:"reasons"`
}

type outputsJSON Outputs

// MarshalJSON writes lists that are never null.
func (o Outputs) MarshalJSON() ([]byte, error) {
	o.Files, o.Skipped, o.Unmatched = notNull(o.Files), notNull(o.Skipped), notNull(o.Unmatched)
	return json.Marshal(outputsJSON(o))
}

// TypeOfFile tells the type of a file that a session gave back, by its extension.
func TypeOfFile(name string) Type {
	if t, ok := evidenceTypes()[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return TypeTrace
}
