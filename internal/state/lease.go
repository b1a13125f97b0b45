package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// A workspace's folder has a stable name, which its session leases: what is keyed by a
// path, the caches of compilers and the memory of agents, finds it again. leases/NAME
// holds the id of the session that has, or had last, qe/NAME. The lease ends when that
// session is done or gone, and nothing is left of its workspace.

func (p Project) leasePath(name string) string { return filepath.Join(p.Dir, "leases", name) }

// Lease finds the folder of a session's workspace: qe/NAME where name can be one and is
// free, else qe/1, qe/2, …
func (p Project) Lease(ctx context.Context, id superqode.SessionID, name string) (path string, err error) {
	if err := os.MkdirAll(p.leasePath(""), 0o700); err != nil {
		return "", Unwritable(err, p.leasePath(""))
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(p.Dir, "leases.lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, perr := superqode.ParseSessionID(name); perr == nil || !leasable().MatchString(name) {
		name = ""
	}
	for n := 1; name == "" || !p.free(name); n++ {
		name = strconv.Itoa(n)
	}
	return p.workspace(name), atomicfile.Replace(p.leasePath(name), []byte(id.String()+"\n"), 0o600)
}

var leasable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// DropLeases forgets the names that nobody uses: there is no workspace, their session is gone,
// and nothing else is left of it.
func (p Project) DropLeases(ctx context.Context, left func(id string) bool) (err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(p.Dir, "leases.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	names, err := Names(p.leasePath(""))
	for _, name := range names {
		holder := p.Leased(name)
		gone := holder == "" || !atomicfile.Exists(p.SessionPath(holder)) && !left(holder)
		if gone && !atomicfile.Exists(p.workspace(name)) {
			err = errors.Join(err, os.Remove(p.leasePath(name)))
		}
	}
	return err
}

func (p Project) free(name string) bool {
	if _, err := os.Lstat(p.workspace(name)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	holder := p.Leased(name)
	if holder == "" || !atomicfile.Exists(p.SessionPath(holder)) {
		return true
	}
	rec, err := ReadRecord(p.SessionPath(holder))
	return err == nil && rec.State == superqode.StateDone
}

// Leased returns the id of the session that has qe/NAME, or had it last; "" where nobody
// knows of one.
func (p Project) Leased(name string) string {
	if _, err := superqode.ParseSessionID(name); err == nil {
		return name
	}
	id := atomicfile.ReadLine(p.leasePath(name))
	if _, err := superqode.ParseSessionID(id); err != nil {
		return ""
	}
	return id
}

// WorkspacePath is the workspace of one session.
func (p Project) WorkspacePath(id string) string {
	names, _ := Names(p.leasePath("")) // none that can be read, none that it has
	for _, name := range names {
		if p.Leased(name) == id {
			return p.workspace(name)
		}
	}
	return p.workspace(id)
}

// Named returns the open session of that name, nil where there is none.
func (p Project) Named(name string) (*Listed, error) {
	if name == "" {
		return nil, nil
	}
	ids, err := p.SessionNames()
	for _, id := range ids {
		if l, lerr := Load(p.SessionPath(id)); lerr == nil && l.Name == name && !l.State.Ended() { // broken ones are told elsewhere
			return &l, nil
		}
	}
	return nil, err
}

func (p Project) workspace(name string) string { return filepath.Join(p.Dir, "qe", name) }
