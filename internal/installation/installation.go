// Package installation reads and writes what guard install has put into a user's own
// repository: where things lie (Layout), and what was written down (Record). Package
// hooks/install puts it in and takes it out; package hooks answers the calls of the
// hooks that stand there.
package installation

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/plainjson"
)

// How the hooks were put in, see the rules of package hooks/install.
const (
	MethodFolder = "folder" // into git's own folder of hooks
	MethodConfig = "config" // core.hooksPath leads to a folder of ours
)

// Record is what guard install wrote down in a repository. The hooks read it with
// every call.
type Record struct {
	SchemaVersion int       `json:"schema_version"`
	InstalledAt   time.Time `json:"installed_at"`
	Version       string    `json:"version"` // of the superqode that installed
	Method        string    `json:"method"`
	// Done is false while hooks are put in or taken out.
	Done   bool               `json:"done"`
	Strict bool               `json:"strict"` // a person at a terminal is stopped, too
	Allow  []string           `json:"allow"`  // guard.allow and guard.deny, as they were
	Deny   []string           `json:"deny"`
	Helper superqode.HostPath `json:"helper"` // the binary that the hooks call
	// MadeFolder is set when there was no hooks folder before.
	MadeFolder bool        `json:"made_folder"`
	Config     *ConfigEdit `json:"config,omitempty"`
}

// ConfigEdit is a configuration file that we changed, with all that is needed to
// change it back.
type ConfigEdit struct {
	File   superqode.HostPath `json:"file"`   // links resolved
	Former superqode.HostPath `json:"former"` // core.hooksPath as it was, ~ expanded; "" when it was not set
	Value  superqode.HostPath `json:"value"`  // as it stood in the file
	Own    superqode.HostPath `json:"own"`    // what we set it to
	// where Former stood: local, worktree, global, system; "" when it was not set
	Scope string    `json:"scope"`
	Time  time.Time `json:"time"` // the file's own, before
}

const (
	recordFile    = "install.json"
	schemaVersion = 1
)

// AttemptsFile is the log of refused attempts in an installation's state, see
// guard.ParseAttempts.
const AttemptsFile = "blocked.jsonl"

// Layout is where things lie in a repository.
type Layout struct {
	Common    string // the common git directory
	Hooks     string // git's own hooks folder
	State     string // the installation's state
	Originals string // rule 1: the user's hooks of our names, and links to the others
	Own       string // rule 2: our hooks
}

// OriginalsFolder is the name of Layout.Originals.
const OriginalsFolder = "superqode-originals"

// LayoutOf returns the places in the repository with this common git directory.
func LayoutOf(common string) Layout {
	return Layout{
		Common: common, Hooks: filepath.Join(common, "hooks"), State: filepath.Join(common, "superqode"),
		Originals: filepath.Join(common, OriginalsFolder), Own: filepath.Join(common, "superqode-hooks"),
	}
}

func (l Layout) file() string { return filepath.Join(l.State, recordFile) }

// Load reads the state in a folder (Layout.State); an error that wraps
// os.ErrNotExist says that nothing is installed.
func Load(dir string) (*Record, error) {
	data, err := atomicfile.Read(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	in := plain(data)
	if in == nil {
		in = &Record{}
		if err := json.Unmarshal(data, in); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, recordFile), err)
		}
	}
	if in.SchemaVersion != schemaVersion {
		return nil, fmt.Errorf("%s has schema_version %d, this superqode knows %d", filepath.Join(dir, recordFile),
			in.SchemaVersion, schemaVersion)
	}
	return in, nil
}

// plain is for the hooks, which read the state with every call; nil where
// encoding/json has to look.
func plain(data []byte) *Record {
	in := &Record{}
	if !plainjson.Read(data, plainjson.Fields{
		"schema_version": &in.SchemaVersion, "installed_at": &in.InstalledAt, "version": &in.Version, "method": &in.Method,
		"done": &in.Done, "strict": &in.Strict, "allow": &in.Allow, "deny": &in.Deny, "helper": &in.Helper, "made_folder": &in.MadeFolder,
		"config": func() plainjson.Fields {
			in.Config = &ConfigEdit{}
			c := in.Config
			return plainjson.Fields{"file": &c.File, "former": &c.Former, "value": &c.Value, "own": &c.Own, "scope": &c.Scope, "time": &c.Time}
		},
	}) {
		return nil
	}
	return in
}

// IsInstalled reports whether guard install was run in the repository.
func (l Layout) IsInstalled() bool {
	_, err := os.Lstat(l.file())
	return err == nil
}

// Save writes the state if it differs from what is there.
func (in *Record) Save(l Layout) (changed bool, err error) {
	in.SchemaVersion = schemaVersion
	if old, err := Load(l.State); err == nil && same(old, in) {
		return false, nil
	}
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return false, err
	}
	return true, atomicfile.WriteJSON(l.file(), in)
}

func same(a, b *Record) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}

// Lock keeps two installs in a common git directory apart. The lock is on the
// directory itself, so that nothing is left behind. The error wraps
// superqode.ErrLocked where another one is at work.
func Lock(common string) (unlock func() error, err error) {
	f, err := os.Open(common)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = superqode.Errorf(superqode.ErrLocked, "another guard install or uninstall works in %s", common)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		// Released, not only closed: a process that is being started may hold a copy.
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
	}, nil
}
