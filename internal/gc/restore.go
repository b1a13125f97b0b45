package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Restored tells where a salvage was written to.
type Restored struct {
	Salvage *salvage.Found
	Path    string
	Files   int              // files and links written
	Digest  superqode.Digest // of what was found there afterwards
	Special []string         // sockets, FIFOs and devices, which are recorded only
	Lost    []string         // paths whose contents neither the store nor the origin has any more
}

// Restore writes the salvage that name stands for into the folder to, or, when
// that is "", into .superqode/salvage/<session>-<n> of its origin, reads it
// again and compares. The folder must not exist or be empty; it appears whole or
// not at all. What exists no more is left out and named in Lost, and the error
// then wraps ErrVerification.
func Restore(ctx context.Context, m *site.Host, dir, name, to string) (*Restored, error) {
	found, err := FindSalvage(ctx, m, dir, name)
	if err != nil {
		return nil, err
	}
	store, err := m.ExistingStore(ctx, found.Project)
	if err == nil && store == nil {
		err = superqode.Errorf(superqode.ErrVerification, "the store %s is gone, and with it the contents of salvage %s", found.Project.StorePath(), found.ID)
	}
	if err != nil {
		return nil, err
	}
	list, err := found.List(ctx, store)
	if err != nil {
		return nil, fmt.Errorf("%w: read the list of salvage %s: %w", superqode.ErrVerification, found.ID, err)
	}
	r := &Restored{Salvage: found, Path: to}
	if r.Path == "" {
		if r.Path, err = prepareDefault(found); err != nil {
			return nil, err
		}
	}
	if r.Path, err = checkTarget(r.Path, found.ID); err != nil {
		return nil, err
	}
	if err := r.dropLost(ctx, store, list); err != nil {
		return nil, err
	}
	if err := r.write(ctx, store, list); err != nil {
		return nil, fmt.Errorf("restore salvage %s: %w", found.ID, err)
	}
	if len(r.Lost) > 0 {
		return r, superqode.Errorf(superqode.ErrVerification, "%d of the %d paths of salvage %s are lost: neither the store nor the origin has their contents", len(r.Lost), len(r.Lost)+len(list.Entries), found.ID)
	}
	return r, nil
}

// prepareDefault makes the folders above the default place, none of which may be
// a link that a program planted.
func prepareDefault(f *salvage.Found) (string, error) {
	if f.Origin == "" {
		return "", superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "salvage %s does not know its origin", f.ID), "superqode workspace restore %s --to DIR", f.ID)
	}
	if err := PrepareArtifacts(string(f.Origin)); err != nil { // .superqode with its .gitignore
		return "", superqode.WithHint(err, "superqode workspace restore %s --to DIR", f.ID)
	}
	path := f.Where()
	parent := filepath.Dir(path)
	if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(parent), parent} {
		if st, err := os.Lstat(dir); err != nil {
			return "", err
		} else if !st.IsDir() {
			return "", superqode.WithHint(fmt.Errorf("%s is not a folder", dir), "superqode workspace restore %s --to DIR", f.ID)
		}
	}
	return path, nil
}

// checkTarget refuses a folder that holds something, and returns the path with
// its links resolved.
func checkTarget(path, id string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return superqode.RealPrefix(path), nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		names, rerr := os.ReadDir(real)
		if rerr == nil && len(names) == 0 {
			return real, nil
		}
		if rerr != nil && !errors.Is(rerr, syscall.ENOTDIR) {
			return "", rerr
		}
	}
	return "", occupied(path, id)
}

func occupied(path, id string) error {
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is there already, and is not an empty folder", path), "superqode workspace restore %s --to DIR", id)
}

// dropLost takes out of the list what cannot be written.
func (r *Restored) dropLost(ctx context.Context, store *store.Store, list *snapshot.Snapshot) error {
	missing, err := store.Missing(ctx, list.Entries)
	if err != nil {
		return err
	}
	list.Entries = slices.DeleteFunc(list.Entries, func(e snapshot.Entry) bool {
		switch {
		case e.Kind == snapshot.Other:
			r.Special = append(r.Special, string(e.Path))
			return true
		case e.Kind == snapshot.File && missing[e.ID]:
			r.Lost = append(r.Lost, string(e.Path))
			return true
		}
		return false
	})
	r.Files, _ = list.Count()
	return nil
}

// PartPrefix begins the name of a folder that Restore has not finished.
const PartPrefix = ".superqode-restore-"

// write makes the folder beside its place, checks it and renames it there.
func (r *Restored) write(ctx context.Context, store *store.Store, list *snapshot.Snapshot) (err error) {
	parent := filepath.Dir(r.Path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	sweepParts(ctx, parent)
	part, held, err := makePart(parent)
	if err != nil {
		return err
	}
	defer held.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, trash.RemoveTree(context.WithoutCancel(ctx), part))
		}
	}()
	failpoint.Hit("restore.made")
	if _, err := treecopy.Materialize(ctx, list, store, part, treecopy.MaterializeOptions{}); err != nil {
		return err
	}
	failpoint.Hit("restore.written")
	if r.Digest, err = checkRestored(ctx, list, part); err != nil {
		return err
	}
	failpoint.Hit("restore.checked")
	err = syscall.Rename(part, r.Path) // takes the place of an empty folder too, which os.Rename refuses
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.ENOTDIR):
		return occupied(r.Path, r.Salvage.ID) // by now
	case err != nil:
		return superqode.WithHint(&os.LinkError{Op: "rename", Old: part, New: r.Path, Err: err}, "superqode workspace restore %s --to DIR, with a folder that does not exist", r.Salvage.ID)
	}
	failpoint.Hit("restore.renamed")
	return atomicfile.SyncDir(parent)
}

// makePart makes a folder to fill, and holds its lock, which tells other restores
// that someone is at work in it.
func makePart(parent string) (string, *os.File, error) {
	for try := 1; ; try++ {
		part, err := os.MkdirTemp(parent, PartPrefix) // mode 0700: there may be secrets in it
		if err != nil {
			return "", nil, err
		}
		held, err := os.Open(part)
		if err == nil {
			if err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
				_, err = os.Lstat(part)
			}
			if err == nil {
				return part, held, nil
			}
			_ = held.Close() // nothing was written
		}
		if try == 5 { // taken for a rest each time, before the lock was ours
			return "", nil, fmt.Errorf("lock %s: %w", part, err)
		}
	}
}

// sweepParts removes what a restore that was killed left.
func sweepParts(ctx context.Context, parent string) {
	names, err := state.Names(parent)
	if err != nil {
		return
	}
	for _, name := range names {
		if !strings.HasPrefix(name, PartPrefix) {
			continue
		}
		path := filepath.Join(parent, name)
		d, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = trash.RemoveTree(ctx, path) // what stays is tried again the next time
		}
		_ = d.Close()
	}
}

// checkRestored reads what was written and compares it with the list. Folders
// that the list only implies are passed over.
func checkRestored(ctx context.Context, list *snapshot.Snapshot, dir string) (digest superqode.Digest, err error) {
	want, err := list.Digest()
	if err != nil {
		return digest, err
	}
	l := &mode.Look{}
	defer func() { err = errors.Join(err, l.Close()) }()
	err = l.ScanAll(ctx, func(ctx context.Context) (*snapshot.Snapshot, []snapshot.Problem, error) {
		return snapshot.Scan(ctx, dir, snapshot.ScanOptions{Format: list.Format, Contents: snapshot.StatOnly})
	})
	if err != nil {
		return digest, err
	}
	if err := l.HashAll(ctx); err != nil {
		return digest, err
	}
	if len(l.Problems) > 0 {
		return digest, fmt.Errorf("%w: %w", superqode.ErrVerification, l.Problems[0])
	}
	l.Final.Entries = slices.DeleteFunc(l.Final.Entries, func(e snapshot.Entry) bool {
		return e.Kind == snapshot.Dir && list.Find(e.Path) == nil
	})
	if digest, err = l.Final.Digest(); err == nil && digest != want {
		diffs := snapshot.Compare(list, l.Final, snapshot.CompareOptions{Dirs: true})
		names := make([]string, 0, 3)
		for _, c := range diffs[:min(len(diffs), 3)] {
			names = append(names, text.Printable(c.Path.String()))
		}
		err = superqode.Errorf(superqode.ErrVerification, "%d paths are not what was salvaged: %s", len(diffs), strings.Join(names, ", "))
	}
	return digest, err
}

// PrepareArtifacts makes the folder of the artifacts in an origin, or says why that
// cannot be done.
func PrepareArtifacts(top string) error {
	store, err := artifacts.Open(top)
	if err != nil {
		return err
	}
	if err := store.Prepare(); err != nil {
		return superqode.WithHint(err, "superqode writes its results to %s; make it writable", filepath.Join(top, ".superqode"))
	}
	return nil
}
