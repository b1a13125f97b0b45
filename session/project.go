package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

const schemaVersion = 1

// project is the folder of one origin below $SUPERQODE_HOME/working; DESIGN.md
// section 3 draws it.
type project struct{ dir string }

func (p project) lockPath() string               { return filepath.Join(p.dir, "lock") }
func (p project) storePath() string              { return filepath.Join(p.dir, "store.git") }
func (p project) trashPath() string              { return filepath.Join(p.dir, "trash") }
func (p project) sessionsPath() string           { return filepath.Join(p.dir, "sessions") }
func (p project) sessionPath(id string) string   { return filepath.Join(p.dir, "sessions", id) }
func (p project) workspacePath(id string) string { return filepath.Join(p.dir, "qe", id) }

type projectFile struct {
	SchemaVersion int       `json:"schema_version"`
	Origin        string    `json:"origin"`
	OriginBytes   []byte    `json:"origin_bytes"`
	CreatedAt     time.Time `json:"created_at"`
}

func (m *Manager) workingPath() string { return filepath.Join(m.cfg.Home, "working") }

// project returns the folder of an origin, which need not exist yet.
func (m *Manager) project(o *origin) project {
	sum := sha256.Sum256([]byte(o.key()))
	name := strings.Map(func(r rune) rune { // a readable hint only; the hash makes it unique
		if r < ' ' || r == 0x7f || r == '/' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(o.baseName(), "_"))
	for len(name) > 64 {
		name = name[:len(name)-1]
	}
	name = strings.ToValidUTF8(name, "")
	if name == "" || name == "." {
		name = "root"
	}
	return project{filepath.Join(m.workingPath(), name+"-"+hex.EncodeToString(sum[:4]))}
}

// create makes the project's folders and project.json; repeating it is harmless.
func (p project) create(o *origin, now time.Time) error {
	for _, d := range []string{p.dir, p.sessionsPath(), filepath.Join(p.dir, "qe"), p.trashPath()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return homeError(err, d)
		}
	}
	path := filepath.Join(p.dir, "project.json")
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	text, _ := superqode.JSONPath(o.key())
	return atomicfile.WriteJSON(path, projectFile{schemaVersion, text, []byte(o.key()), now.UTC()})
}

func homeError(err error, dir string) error {
	if errors.Is(err, os.ErrPermission) {
		return superqode.WithHint(fmt.Errorf("can not write superqode's state: %w", err), "superqode --home DIR … with a folder that you may write")
	}
	return fmt.Errorf("make %s: %w", dir, err)
}

// lock takes the project lock, which stands around every change of the
// repository's list of worktrees and around in-place sessions.
func (p project) lock(ctx context.Context) (func() error, error) {
	return lockfile.Lock(ctx, p.lockPath())
}
