package session

import (
	"context"
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
	"github.com/seed-2d964004/superqode/home"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Salvage is what was kept of a directory before something in it was overwritten
// or deleted. It lies in three places: contents in the project's store; the
// exact list of entries, with permission bits and empty folders, in
// salvage/<n>.snap of the session's folder; this record beside it. The commit at
// Ref holds all three again, so that a salvage outlives its session's folder.
type Salvage struct {
	SchemaVersion int                 `json:"schema_version"`
	ID            string              `json:"id"` // <session>/<n>
	Session       superqode.SessionID `json:"session_id"`
	N             int                 `json:"number"`
	Why           string              `json:"why"`
	At            time.Time           `json:"at"`
	Files         int                 `json:"files"` // files and links
	Bytes         int64               `json:"bytes"`
	Origin        HostPath            `json:"origin"`
	Ref           string              `json:"ref"`    // in the project's store
	Commit        string              `json:"commit"` // what Ref points at; "" in the commit's own copy
	LeftOut       []LeftOut           `json:"left_out"`
}

// LeftOut is a path that could not be salvaged, and why.
type LeftOut struct {
	Path   string
	Reason string
}

type leftOutJSON struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Reason    string `json:"reason"`
}

// MarshalJSON keeps every byte of the path; see superqode.JSONPath.
func (l LeftOut) MarshalJSON() ([]byte, error) {
	text, exact := superqode.JSONPath(l.Path)
	return json.Marshal(leftOutJSON{text, exact, l.Reason})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *LeftOut) UnmarshalJSON(b []byte) error {
	var j leftOutJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*l = LeftOut{j.Path, j.Reason}
	if j.PathBytes == "" {
		return nil
	}
	exact, err := base64.StdEncoding.DecodeString(j.PathBytes)
	l.Path = string(exact)
	return err
}

// maxSalvages bounds the numbers that are believed; a program may have planted
// file names.
const maxSalvages = 1 << 20

func salvageDir(sessionDir string) string { return filepath.Join(sessionDir, "salvage") }

// number sets what follows from the salvage's number.
func (sv *Salvage) number(n int) {
	sv.N = n
	sv.ID = fmt.Sprintf("%s/%d", sv.Session, n)
	sv.Ref = fmt.Sprintf("refs/superqode/%s/salvage/%d", sv.Session, n)
}

// id returns the salvage's id, "" for none.
func (sv *Salvage) id() string {
	if sv == nil {
		return ""
	}
	return sv.ID
}

func (sv *Salvage) listPath(dir string) string {
	return filepath.Join(dir, strconv.Itoa(sv.N)+".snap")
}

func (sv *Salvage) recordPath(dir string) string {
	return filepath.Join(dir, strconv.Itoa(sv.N)+".json")
}

// message is the commit's: a line for people and the record for restore.
func (sv *Salvage) message() (string, error) {
	record, err := json.Marshal(sv)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("salvage %s: %s\n\n%s", sv.ID, visible(sv.Why), record), nil
}

// parseSalvage reads a record and checks that it is the one of that session and
// number.
func parseSalvage(data []byte, id superqode.SessionID, n int) (sv Salvage, err error) {
	if err := json.Unmarshal(data, &sv); err != nil {
		return sv, fmt.Errorf("%w: %w", home.ErrBroken, err)
	}
	want := Salvage{Session: id}
	want.number(n)
	if sv.SchemaVersion > home.SchemaVersion || sv.Session != id || sv.N != n || sv.ID != want.ID || sv.Ref != want.Ref {
		return sv, fmt.Errorf("%w: the record is not that of salvage %s", home.ErrBroken, want.ID)
	}
	return sv, nil
}

// salvageNumber reads "<n>.<ext>" or "<n>".
func salvageNumber(name, ext string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && n <= maxSalvages && strconv.Itoa(n) == digits
}

// readSalvages returns the salvages that a session's folder has records of.
func readSalvages(sessionDir string, id superqode.SessionID) ([]Salvage, error) {
	dir := salvageDir(sessionDir)
	names, err := home.Names(dir)
	if err != nil {
		return nil, err
	}
	var list []Salvage
	for _, name := range names {
		n, ok := salvageNumber(name, ".json")
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
		if sv, err := parseSalvage(data, id, n); err == nil {
			list = append(list, sv) // what is no record hides no other salvage, and the commit may still tell
		}
	}
	return list, nil
}

// lastSalvage returns the session's last salvage. Its number is the highest that
// was ever given away, also to one that was cut short: then Ref is "".
func (s *Session) lastSalvage(ctx context.Context) (last Salvage, err error) {
	list, err := readSalvages(s.dir, s.rec.ID)
	if err != nil {
		return last, err
	}
	for _, sv := range list {
		if sv.N > last.N {
			last = sv
		}
	}
	names, err := home.Names(salvageDir(s.dir))
	if err != nil {
		return last, err
	}
	refs, err := s.store.Refs(ctx, s.rec.ID)
	if err != nil {
		return last, err
	}
	for ref := range refs {
		if n, ok := strings.CutPrefix(ref, "salvage/"); ok {
			names = append(names, n+".snap")
		}
	}
	for _, name := range names {
		if n, ok := salvageNumber(name, ".snap"); ok && n > last.N {
			last = Salvage{N: n}
		}
	}
	return last, nil
}
