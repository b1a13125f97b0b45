package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// SchemaVersion is that of every JSON file of superqode's state.
const SchemaVersion = 1

// ErrBroken means that a session's own files cannot be read.
var ErrBroken = errors.New("broken session state")

// Project is the folder of one origin below $SUPERQODE_HOME/working;
// docs/architecture.md draws it.
type Project struct{ Dir string }

// LockPath is locked around every change of the repository's list of worktrees.
func (p Project) LockPath() string { return filepath.Join(p.Dir, "lock") }

// StorePath is the store of contents.
func (p Project) StorePath() string { return filepath.Join(p.Dir, "store.git") }

// BasePath is the folder of the origin's frozen states.
func (p Project) BasePath() string { return filepath.Join(p.Dir, "base") }

// TrashPath holds what was removed, until it is swept.
func (p Project) TrashPath() string { return filepath.Join(p.Dir, "trash") }

// SessionsPath holds a folder for each session.
func (p Project) SessionsPath() string { return filepath.Join(p.Dir, "sessions") }

// SessionPath is the folder of one session.
func (p Project) SessionPath(id string) string { return filepath.Join(p.Dir, "sessions", id) }

// Of returns the project of what key identifies, an origin's own path or that
// of its repository, below a working folder. It need not exist yet.
func Of(working, name, key string) Project {
	sum := sha256.Sum256([]byte(key))
	name = strings.Map(func(r rune) rune { // a readable hint only; the hash makes it unique
		if r < ' ' || r == 0x7f || r == '/' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.ToValidUTF8(name[:min(len(name), 64)], "")
	if name == "" || name == "." {
		name = "root"
	}
	return Project{Dir: filepath.Join(working, name+"-"+hex.EncodeToString(sum[:4]))}
}

type projectFile struct {
	SchemaVersion int       `json:"schema_version"`
	Origin        string    `json:"origin"`
	OriginBytes   []byte    `json:"origin_bytes"`
	CreatedAt     time.Time `json:"created_at"`
}

// Create makes the folders and project.json of what key identifies; repeating it is harmless.
func (p Project) Create(key string, now time.Time) error {
	for _, d := range []string{p.Dir, p.SessionsPath(), filepath.Join(p.Dir, "qe"), p.TrashPath()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return Unwritable(err, d)
		}
	}
	path := filepath.Join(p.Dir, "project.json")
	if st, err := os.Lstat(path); err == nil && st.Size() > 0 { // a power cut may leave it empty
		return nil
	}
	text, _ := superqode.JSONPath(key)
	return atomicfile.Loose.WriteJSON(path, projectFile{SchemaVersion, text, []byte(key), now.UTC()})
}

// Key reads from project.json what the project was made for, an absolute path.
func (p Project) Key() (string, error) {
	data, err := atomicfile.Read(filepath.Join(p.Dir, "project.json"))
	if err != nil {
		return "", err
	}
	var f projectFile
	if err := json.Unmarshal(data, &f); err != nil {
		return "", fmt.Errorf("%w: project.json: %w", ErrBroken, err)
	}
	key := string(f.OriginBytes)
	if key == "" || !filepath.IsAbs(key) {
		return "", fmt.Errorf("%w: project.json names no origin", ErrBroken)
	}
	return key, nil
}

// Unwritable says of a folder that could not be made how to get another.
func Unwritable(err error, dir string) error {
	if atomicfile.Denied(err) {
		return superqode.WithHint(fmt.Errorf("cannot write superqode's state: %w", err),
			"superqode --home DIR … with a folder that you may write")
	}
	return fmt.Errorf("make %s: %w", dir, err)
}

// Exists reports whether the project was ever made.
func (p Project) Exists() bool {
	_, err := os.Lstat(filepath.Join(p.Dir, "project.json"))
	return err == nil
}

// Lock takes the project lock, which stands around every change of the
// repository's list of worktrees and around in-place sessions.
func (p Project) Lock(ctx context.Context) (func() error, error) {
	if err := p.Reopen(); err != nil {
		return nil, err
	}
	return lockfile.Lock(ctx, p.LockPath())
}

// LockCleanup lets one cleanup wait for another. The file that it locks is there: the
// disk may have no room for another name.
func (p Project) LockCleanup(ctx context.Context) (func() error, error) {
	return lockfile.Lock(ctx, filepath.Join(p.Dir, "project.json"))
}
