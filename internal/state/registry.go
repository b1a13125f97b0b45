package state

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Listed is one session as `workspace list` shows it.
type Listed struct {
	Record
	Dir   string // the session's folder
	Alive bool   // some process holds its lock
	Dead  bool   // its process died without ending it
}

// Broken is a session whose own files cannot be read; the others still work.
type Broken struct {
	ID  string
	Dir string
	Err error
}

// LoadAll reads many records with a few goroutines: 500 of them must not be
// noticed by a person.
func LoadAll(dirs []string) ([]Listed, []Broken) {
	type result struct {
		l   Listed
		err error
	}
	results := make([]result, len(dirs))
	const workers = 4
	var wg sync.WaitGroup
	for w := range min(workers, len(dirs)) {
		wg.Go(func() {
			for i := w; i < len(dirs); i += workers {
				results[i].l, results[i].err = Load(dirs[i])
			}
		})
	}
	wg.Wait()
	var sessions []Listed
	var broken []Broken
	for i, r := range results {
		switch {
		case r.err == nil:
			sessions = append(sessions, r.l)
		case errors.Is(r.err, ErrGone):
		default:
			broken = append(broken, Broken{filepath.Base(dirs[i]), dirs[i], r.err})
		}
	}
	return sessions, broken
}

// ErrGone means that a session folder vanished, or is still being made, while
// it was looked at.
var ErrGone = errors.New("session is gone")

// Load reads the record in a session's folder and finds out whether the session
// is alive. The error wraps ErrGone for a folder that vanished or is being made,
// and ErrBroken for a record that cannot be read.
func Load(dir string) (Listed, error) {
	l := Listed{Dir: dir}
	r, err := ReadRecord(dir)
	if errors.Is(err, os.ErrPermission) && ReopenSession(dir) == nil {
		r, err = ReadRecord(dir)
	}
	if err != nil {
		if _, serr := os.Lstat(dir); serr != nil {
			return l, ErrGone
		}
		if errors.Is(err, os.ErrNotExist) && unborn(dir) {
			return l, ErrGone
		}
		return l, superqode.WithHint(err, "take what you need from %s, then move that folder away", text.QuotePOSIX(dir))
	}
	l.Record = *r
	if l.State.Ended() {
		return l, nil
	}
	if l.Alive, err = lockfile.IsHeld(LockPath(dir)); err != nil {
		return l, superqode.WithHint(err, "put that right; what the session holds is in %s", text.QuotePOSIX(dir))
	}
	if !l.Alive { // between the two looks its process may have brought it further and let go of it
		if r, err = ReadRecord(dir); err != nil {
			return Load(dir)
		}
		l.Record = *r
	}
	l.Dead = !l.Alive && !l.State.Ended() && (l.Owned || l.State != superqode.StateActive)
	return l, nil
}

// unborn reports whether a session folder without a record is one that is being
// made, or whose maker was killed before it made anything else. It is the one rule
// by which a folder may be removed that has no record: whatever else is in it, or a
// workspace, may be the only copy of what somebody had.
func unborn(dir string) bool {
	p := Project{Dir: filepath.Dir(filepath.Dir(dir))}
	if _, err := os.Lstat(p.WorkspacePath(filepath.Base(dir))); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	names, err := Names(dir)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		switch {
		case name == "lock", strings.HasPrefix(name, ".session."): // of a record that was being written
			return false
		case slices.Contains(SessionFolders(), name), name == PrivateTmp, name == PrivateRun:
			below, err := Names(filepath.Join(dir, name))
			return err != nil || len(below) > 0
		}
		return true
	})
}

// IsChild reports whether a session belongs to another one that can look after
// it: that is there and has not ended.
func IsChild(l *Listed) bool {
	if l.Parent.IsZero() {
		return false
	}
	parent, err := Load(filepath.Join(filepath.Dir(l.Dir), l.Parent.String()))
	return err == nil && parent.State != superqode.StateDone
}

// WithoutChildren leaves out the agents' own workspaces of sessions that are in
// the list, too: they are part of these.
func WithoutChildren(list []Listed) []Listed {
	there := map[superqode.SessionID]bool{}
	for i := range list {
		there[list[i].ID] = true
	}
	return slices.DeleteFunc(list, func(l Listed) bool { return !l.Parent.IsZero() && there[l.Parent] })
}
