// Package revert takes a snapshot of a directory, restores it, and proves it.
//
// Take records every file, link, folder and special file with its permission
// bits and mtime, and keeps the contents in a store: a bare git repository that
// any git reads. Restore scans the directory, saves what it is about to overwrite
// or delete in the same store, writes back what was there, and scans again: it
// returns what that second scan found. A git repository in the directory is
// restored with it, as a folder like any other. Nothing follows a symbolic link.
// Restore examines a path again that changes meanwhile. After a crash, Load the
// snapshot and Restore again.
//
// Only root can restore owners. Extended attributes and ACLs are not restored.
package revert

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	machine "github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
)

// Method says how a directory is compared with a snapshot.
type Method string

// The methods. Stat believes the stat data of files that nobody touched and
// reads the others; Full reads every byte of files that have the snapshot's size.
const (
	Stat Method = "stat"
	Full Method = "full"
)

// Verified is what Verify found.
type Verified struct {
	Digest      superqode.Digest // of what is there now; zero when not all of it is known
	Differences []string         // one line each, sorted by path; none when the directory is as it was
}

// Restored is what Restore did and what it found afterwards.
type Restored struct {
	Paths       []string // that were not as they had been
	Digest      superqode.Digest
	Verified    bool     // nothing differs any more
	Differences []string // what still differs, one line each
}

// Options says what a snapshot covers and where its contents are kept.
type Options struct {
	// Store is the folder that keeps contents, outside the directory. It is made
	// when it is missing; many snapshots may share one.
	Store string
	// Skip reports what to leave out, with everything below it, as slash-separated
	// paths; nil leaves out nothing. Several goroutines call it.
	Skip func(path string) bool
}

// Snapshot is what a directory held at one moment. Its methods may not be called
// at the same time.
type Snapshot struct{ tree machine.Tree }

// Take records what the directory dir holds, dir itself excepted, and stores the
// contents. It is an error when anything in it cannot be read.
func Take(ctx context.Context, dir string, opt Options) (*Snapshot, error) {
	s, err := open(ctx, dir, opt)
	if err != nil {
		return nil, err
	}
	if s.tree.Dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	base, problems, err := snapshot.Scan(ctx, s.tree.Dir,
		snapshot.ScanOptions{Format: s.tree.Store.Format(), Skip: s.tree.Skip})
	if err == nil && len(problems) > 0 {
		err = snapshot.WithProblems(fmt.Errorf("%s cannot be read whole", dir), problems)
	}
	if err != nil {
		return nil, err
	}
	s.tree.Base = base
	return s, s.tree.Store.WriteBlobs(ctx, base.Root, base.Entries)
}

// Load reads what Save wrote. opt is that of Take.
func Load(ctx context.Context, file string, opt Options) (*Snapshot, error) {
	base, err := snapshot.Load(file)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, base.Root, opt)
	if err != nil {
		return nil, err
	}
	s.tree.Base, s.tree.Dir = base, base.Root
	return s, nil
}

func open(ctx context.Context, dir string, opt Options) (*Snapshot, error) {
	g, err := git.Find(ctx, os.Environ(), dir, git.Top(dir))
	if err != nil {
		return nil, err
	}
	s := &Snapshot{}
	if opt.Skip != nil {
		s.tree.Skip = func(p superqode.RelPath, _ snapshot.Kind) bool { return opt.Skip(string(p)) }
	}
	s.tree.Store, err = store.Open(ctx, g, opt.Store, "", snapshot.SHA1)
	return s, err
}

// Save writes the snapshot without the contents to a file, all or nothing.
func (s *Snapshot) Save(file string) error { return s.tree.Base.Save(file) }

// Digest returns the SHA-256 over every path, type, permission bit, size, link
// target and content of the snapshot.
func (s *Snapshot) Digest() (superqode.Digest, error) { return s.tree.Base.Digest() }

// Verify compares the directory with the snapshot and changes nothing. within
// limits it to these paths and what lies below them; the digest is theirs
// then.
func (s *Snapshot) Verify(ctx context.Context, how Method, within ...superqode.RelPath) (*Verified, error) {
	v, err := s.tree.Verify(ctx, machine.Method(how), within)
	return (*Verified)(v), err
}

// Restore brings the directory back to the snapshot, or only the paths within and
// what lies below them, and verifies the result. The error is not nil when it
// could not do so; what still differs is in Restored.
func (s *Snapshot) Restore(ctx context.Context, how Method, within ...superqode.RelPath) (*Restored, error) {
	keep := func(ctx context.Context, p *machine.Plan) error {
		old := p.Now.With(p.Overwritten())
		if problems, err := snapshot.HashMissing(ctx, old); err != nil || len(problems) > 0 {
			return snapshot.WithProblems(err, problems)
		}
		return s.tree.Store.WriteBlobs(ctx, old.Root, old.Entries)
	}
	r, err := s.tree.Restore(ctx, machine.RestoreOptions{Within: within, How: machine.Method(how), Keep: keep})
	return (*Restored)(r), err
}
