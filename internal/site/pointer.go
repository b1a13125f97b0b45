package site

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// A program that works in the origin itself can take away everything by which
// the origin is known as a repository, and the origin itself. So each session in
// place is also found by the origin's path: $SUPERQODE_HOME/inplace has a file
// for it, named after a hash of the path, with the names of the project's folder
// and of the session.

// PointersPath is the folder of the pointers.
func (h *Host) PointersPath() string { return filepath.Join(h.Home, "inplace") }

func (h *Host) pointerPath(top string) string {
	sum := sha256.Sum256([]byte(top))
	return filepath.Join(h.PointersPath(), hex.EncodeToString(sum[:16]))
}

// Point makes the session known by its origin's path. Half a file, should we die
// here, counts as none: nothing was done to the origin yet.
func (s *Site) Point() error {
	dir := s.PointersPath()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return state.Unwritable(err, dir)
	}
	f, err := os.OpenFile(s.pointerPath(string(s.Rec.Origin)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(filepath.Base(s.Project.Dir) + "\n" + s.Rec.ID.String() + "\n")
	return errors.Join(err, atomicfile.Sync(f), f.Close(), atomicfile.SyncDir(dir))
}

// Unpoint forgets the path, unless it leads to another session by now.
func (s *Site) Unpoint() error {
	path := s.pointerPath(string(s.Rec.Origin))
	if _, id, ok := readPointer(path); !ok || id != s.Rec.ID.String() {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func readPointer(path string) (project, id string, ok bool) {
	data, err := atomicfile.Read(path)
	if err != nil {
		return "", "", false
	}
	project, rest, _ := strings.Cut(string(data), "\n")
	id, _, ok = strings.Cut(rest, "\n")
	return project, id, ok && project != "" && project == filepath.Base(project)
}

// Pointed returns the project of the session in place that works around dir, and
// the session itself unless it has ended. The error is about one whose record is
// lost: only its ID is known, and what it did to the origin cannot be undone. No
// session may begin there before a person has looked.
func (h *Host) Pointed(dir string) (p state.Project, open *state.Listed, ok bool, err error) {
	err = state.Reopen(superqode.RealPrefix(h.Home), "", filepath.Base(h.WorkingPath()), filepath.Base(h.PointersPath()))
	if err != nil {
		return p, nil, false, err
	}
	names, err := state.Names(h.PointersPath())
	if err != nil || len(names) == 0 {
		return p, nil, false, nil //nolint:nilerr // a home that cannot be read has no sessions
	}
	if err := state.Reopen(superqode.RealPrefix(h.PointersPath()), names...); err != nil {
		return p, nil, false, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return p, nil, false, nil //nolint:nilerr // it is told where dir is used
	}
	for d := abs; ; d = filepath.Dir(d) {
		// The origin's own folder may have been replaced by a link since; a link
		// may as well be how the user gets there.
		for _, top := range []string{filepath.Join(superqode.RealPrefix(filepath.Dir(d)), filepath.Base(d)), superqode.RealPrefix(d)} {
			path := h.pointerPath(top)
			folder, id, found := readPointer(path)
			if !found {
				continue
			}
			p = state.Project{Dir: filepath.Join(h.WorkingPath(), folder)}
			l, err := state.Load(p.SessionPath(id))
			if err != nil {
				l.ID, err = lost(id, top, path, err)
				if err != nil {
					return p, &l, true, err
				}
				continue
			}
			if string(l.Origin) != top || l.State == superqode.StateDone {
				continue
			}
			if l.State.Ended() {
				return p, nil, true, nil
			}
			return p, &l, true, nil
		}
		if d == filepath.Dir(d) {
			return p, nil, false, nil
		}
	}
}

// lost says that what a pointer leads to cannot be read; nil where the pointer is
// no session's, or has gone meanwhile.
func lost(name, top, pointer string, err error) (superqode.SessionID, error) {
	id, perr := superqode.ParseSessionID(name)
	if _, again, ok := readPointer(pointer); perr != nil || !ok || again != name {
		return id, nil
	}
	what := fmt.Sprintf("session %s worked in %s itself and did not end", id, text.Printable(top))
	if errors.Is(err, state.ErrGone) {
		return id, superqode.WithHint(superqode.Errorf(state.ErrGone, "%s, and nothing is left of what it kept", what), "look at the origin, then: rm %s", text.QuotePOSIX(pointer))
	}
	return id, fmt.Errorf("%s: %w", what, err)
}
