package hooks

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
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/plainjson"
)

// Guard install puts hooks into the user's own repository, for good. The rules:
//
//  1. Where git looks into the common directory's hooks folder, a hook of ours
//     takes the place of the user's of that name, and the user's moves to a folder
//     beside it, at the same depth and under its own name, so that what it finds
//     by its own path is still found. The configuration is not touched.
//  2. Where core.hooksPath leads elsewhere (husky, a folder that is committed, one
//     for all repositories of the user), or the hooks folder is a link, no file
//     there is touched: core.hooksPath leads to a folder of ours, whose hooks go on
//     to the former one.
//  3. Every file is linked aside or saved before it is replaced, what is about to
//     be done is written down first, and each step can be repeated: after a crash
//     install and uninstall both finish.
//  4. What somebody changed meanwhile is theirs: a hook that is no longer ours, or
//     a configuration that is no longer what we wrote, is left as it is, but for
//     our own lines.

// Method is how the hooks were put in.
type Method string

// The methods, see the rules above.
const (
	MethodFolder Method = "folder"
	MethodConfig Method = "config"
)

// Installation is what guard install wrote down in a repository. The hooks read
// it with every call.
type Installation struct {
	SchemaVersion int       `json:"schema_version"`
	InstalledAt   time.Time `json:"installed_at"`
	Version       string    `json:"version"` // of the superqode that installed
	Method        Method    `json:"method"`
	// Done is false while hooks are put in or taken out.
	Done   bool               `json:"done"`
	Strict bool               `json:"strict"` // a person at a terminal is stopped, too
	Allow  []string           `json:"allow"`  // guard.allow and guard.deny, as they were
	Deny   []string           `json:"deny"`
	Helper superqode.HostPath `json:"helper"` // the binary that the hooks call
	// MadeFolder is set when there was no hooks folder before.
	MadeFolder bool        `json:"made_folder"`
	Config     *configEdit `json:"config,omitempty"`
}

const (
	installationFile    = "install.json"
	attemptsFile        = "blocked.jsonl"
	installationVersion = 1
)

// deciders are the hooks that refuse. reference-transaction sees every commit,
// stash, branch, tag and ref that moves, --no-verify and plumbing included; the
// others come earlier, before work was done, and have more to say.
func deciders() []string {
	return []string{"applypatch-msg", "pre-commit", "pre-push", "pre-rebase", "prepare-commit-msg", transactionHook}
}

// layout is where things lie in a repository.
type layout struct {
	common    string // the common git directory
	hooks     string // git's own hooks folder
	state     string // the installation's state
	originals string // rule 1: the user's hooks of our names, and links to the others
	own       string // rule 2: our hooks
}

const originalsFolder = "superqode-originals"

func layoutOf(common string) layout {
	return layout{
		common: common, hooks: filepath.Join(common, "hooks"), state: filepath.Join(common, "superqode"),
		originals: filepath.Join(common, originalsFolder), own: filepath.Join(common, "superqode-hooks"),
	}
}

func (l layout) file() string { return filepath.Join(l.state, installationFile) }

// loadInstallation reads the state in a folder; an error that wraps os.ErrNotExist
// says that nothing is installed.
func loadInstallation(dir string) (*Installation, error) {
	data, err := atomicfile.Read(filepath.Join(dir, installationFile))
	if err != nil {
		return nil, err
	}
	in := plainInstallation(data)
	if in == nil {
		in = &Installation{}
		if err := json.Unmarshal(data, in); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, installationFile), err)
		}
	}
	if in.SchemaVersion != installationVersion {
		return nil, fmt.Errorf("%s has schema_version %d, this superqode knows %d", filepath.Join(dir, installationFile), in.SchemaVersion, installationVersion)
	}
	return in, nil
}

// plainInstallation is for the hooks, which read the state with every call; nil
// where encoding/json has to look.
func plainInstallation(data []byte) *Installation {
	in, ok := &Installation{}, true
	good := func(err error) { ok = ok && err == nil }
	r := plainjson.New(data)
	r.Object(func(field string) {
		switch field {
		case "schema_version":
			in.SchemaVersion = r.Int()
		case "installed_at":
			good(in.InstalledAt.UnmarshalText([]byte(r.Text())))
		case "version":
			in.Version = r.Text()
		case "method":
			in.Method = Method(r.Text())
		case "done":
			in.Done = r.Bool()
		case "strict":
			in.Strict = r.Bool()
		case "allow":
			in.Allow = r.Texts()
		case "deny":
			in.Deny = r.Texts()
		case "helper":
			in.Helper = superqode.HostPath(r.Text())
		case "made_folder":
			in.MadeFolder = r.Bool()
		case "config":
			in.Config = &configEdit{}
			r.Object(func(field string) { good(in.Config.plain(r, field)) })
		default:
			r.Unknown()
		}
	})
	if !ok || !r.Whole() {
		return nil
	}
	return in
}

func (c *configEdit) plain(r *plainjson.Reader, field string) error {
	switch field {
	case "file":
		c.File = superqode.HostPath(r.Text())
	case "former":
		c.Former = superqode.HostPath(r.Text())
	case "value":
		c.Value = superqode.HostPath(r.Text())
	case "own":
		c.Own = superqode.HostPath(r.Text())
	case "scope":
		c.Scope = r.Text()
	case "time":
		return c.Time.UnmarshalText([]byte(r.Text()))
	default:
		r.Unknown()
	}
	return nil
}

// IsInstalled reports whether guard install was run in a repository.
func IsInstalled(repo *git.Repo) bool {
	_, err := os.Lstat(layoutOf(repo.CommonDir).file())
	return err == nil
}

// save writes the state if it differs from what is there.
func (in *Installation) save(l layout) (changed bool, err error) {
	in.SchemaVersion = installationVersion
	if old, err := loadInstallation(l.state); err == nil && sameInstallation(old, in) {
		return false, nil
	}
	if err := os.MkdirAll(l.state, 0o700); err != nil {
		return false, err
	}
	return true, atomicfile.WriteJSON(l.file(), in)
}

func sameInstallation(a, b *Installation) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}

// lockRepository keeps two installs apart. The lock is on the directory itself:
// nothing is left behind.
func lockRepository(common string) (unlock func() error, err error) {
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

// InstallOptions is what guard install is asked for.
type InstallOptions struct {
	Strict      bool
	Allow, Deny []string // guard.allow and guard.deny of the configuration
}

func (o InstallOptions) check() error {
	_, err := guard.NewPolicy(o.Allow, o.Deny)
	return err
}
