package installation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// onceFor is how long a person's word for one operation holds.
const onceFor = 15 * time.Minute

// OnceFolder holds, in an installation's state, one file for each operation that a
// person has let through once, NAME.json, and one for each that was used,
// used-PID-START.json: git calls several hooks for one command.
const OnceFolder = "once"

// once is a person's word for one operation.
type once struct {
	Operation guard.Operation `json:"operation"`
	Until     time.Time       `json:"until"`
}

// AllowOnce writes down that a person lets op through once, in the installation
// whose state is in this folder, and returns until when.
func AllowOnce(state string, op guard.Operation, now time.Time) (until time.Time, err error) {
	dir := filepath.Join(state, OnceFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return time.Time{}, err
	}
	until = now.Add(onceFor).UTC().Truncate(time.Second)
	return until, atomicfile.WriteJSON(filepath.Join(dir, string(op)+".json"), once{op, until})
}

// Holds reports whether the word in the file at path still holds.
func Holds(path string) bool {
	data, err := atomicfile.Read(path)
	var o once
	return err == nil && json.Unmarshal(data, &o) == nil && time.Now().Before(o.Until)
}
