package salvage

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Record says what was saved of a directory before something in it was
// overwritten or deleted. A salvage is in three places: contents in the
// project's store; the exact list of entries, with permission bits and empty
// folders, in salvage/<n>.snap of the session's folder; this record beside it.
// The commit at Ref holds all three again, so that a salvage outlives its
// session's folder.
type Record struct {
	SchemaVersion int                 `json:"schema_version"`
	ID            string              `json:"id"` // <session>/<n>
	Session       superqode.SessionID `json:"session_id"`
	N             int                 `json:"number"`
	Why           string              `json:"why"`
	At            time.Time           `json:"at"`
	Files         int                 `json:"files"` // files and links
	Bytes         int64               `json:"bytes"`
	Origin        superqode.HostPath  `json:"origin"`
	Ref           string              `json:"ref"`    // in the project's store
	Commit        string              `json:"commit"` // what Ref points at; "" in the commit's own copy
	LeftOut       []LeftOut           `json:"left_out"`
}

// LeftOut is a path that could not be salvaged, and why.
type LeftOut struct {
	Path   superqode.RelPath
	Reason string
}

type leftOutJSON struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Reason    string `json:"reason"`
}

// MarshalJSON keeps every byte of the path; see superqode.JSONPath.
func (l LeftOut) MarshalJSON() ([]byte, error) {
	text, exact := superqode.JSONPath(string(l.Path))
	return json.Marshal(leftOutJSON{text, exact, l.Reason})
}

// UnmarshalJSON reads what MarshalJSON wrote. The path is only shown, so none makes
// the salvage unreadable.
func (l *LeftOut) UnmarshalJSON(b []byte) error {
	var j leftOutJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	exact, err := base64.StdEncoding.DecodeString(j.PathBytes)
	*l = LeftOut{superqode.RelPath(cmp.Or(string(exact), j.Path)), j.Reason}
	return err
}

// maxNumber bounds the numbers that superqode accepts; a program may have
// planted file names.
const maxNumber = 1 << 20

// Dir is the folder of a session that holds the records and lists.
func Dir(sessionDir string) string { return filepath.Join(sessionDir, "salvage") }

// number sets the fields that depend on the salvage's number.
func (sv *Record) number(n int) {
	sv.N = n
	sv.ID = fmt.Sprintf("%s/%d", sv.Session, n)
	sv.Ref = fmt.Sprintf("refs/superqode/%s/salvage/%d", sv.Session, n)
}

// Name is the salvage's id, "" for none.
func (sv *Record) Name() string {
	if sv == nil {
		return ""
	}
	return sv.ID
}

// ListPath is the file of the exact list in the folder that Dir names.
func (sv *Record) ListPath(dir string) string {
	return filepath.Join(dir, strconv.Itoa(sv.N)+".snap")
}

// RecordPath is the file of the record.
func (sv *Record) RecordPath(dir string) string {
	return filepath.Join(dir, strconv.Itoa(sv.N)+".json")
}

// message is the commit's message: a line for people, and the record for
// restore.
func (sv *Record) message() (string, error) {
	record, err := json.Marshal(sv)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("salvage %s: %s\n\n%s", sv.ID, text.Printable(sv.Why), record), nil
}

// Parse reads a record and checks that it belongs to that session and number.
func Parse(data []byte, id superqode.SessionID, n int) (sv Record, err error) {
	if err := json.Unmarshal(data, &sv); err != nil {
		return sv, fmt.Errorf("%w: %w", state.ErrBroken, err)
	}
	want := Record{Session: id}
	want.number(n)
	if sv.SchemaVersion > state.SchemaVersion || sv.Session != id || sv.N != n || sv.ID != want.ID ||
		sv.Ref != want.Ref {
		return sv, fmt.Errorf("%w: the record belongs to another salvage than %s", state.ErrBroken, want.ID)
	}
	return sv, nil
}

// Number reads "<n>.<ext>" or "<n>".
func Number(name, ext string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && n <= maxNumber && strconv.Itoa(n) == digits
}

// Read returns the salvages whose records are in a session's folder.
func Read(sessionDir string, id superqode.SessionID) ([]Record, error) {
	dir := Dir(sessionDir)
	names, err := state.Names(dir)
	if err != nil {
		return nil, err
	}
	var list []Record
	for _, name := range names {
		n, ok := Number(name, ".json")
		if !ok {
			continue
		}
		data, err := atomicfile.Read(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if sv, err := Parse(data, id, n); err == nil {
			list = append(list, sv) // a damaged record hides no other salvage, and the commit may still have it
		}
	}
	return list, nil
}
