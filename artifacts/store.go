package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

const (
	dotName      = ".superqode"
	storeName    = "qe-artifacts"
	manifestName = "manifest.json"
	brokenPrefix = manifestName + ".broken-"
	// lockName stands beside qe-artifacts, not in it, so that Verify sees artifacts
	// only.
	lockName = "artifacts.lock"
)

// Store is the artifact folder of one origin. It holds no open files: a program
// may delete and make anew what it works on. Its methods may be called
// concurrently.
type Store struct {
	origin string

	mu       sync.Mutex
	warnings []Problem
}

// Open gives the store of the origin at originDir, an existing directory. Nothing
// is created before the first Add; but a .superqode or qe-artifacts that is there
// and is a symbolic link, or no folder, is an error at once.
func Open(originDir string) (*Store, error) {
	abs, err := filepath.Abs(originDir)
	if err != nil {
		return nil, err
	}
	s := &Store{origin: abs}
	p, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(abs); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, p.close()
}

// Dir returns the absolute path of qe-artifacts, which may not exist yet.
func (s *Store) Dir() string { return filepath.Join(s.origin, dotName, storeName) }

// Warnings returns what calls since the last Warnings had to do to keep the store
// whole, such as rebuilding a broken manifest, and forgets it.
func (s *Store) Warnings() []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.warnings
	s.warnings = nil
	return w
}

func (s *Store) warn(p ...Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, p...)
}

// place is the store opened for one call.
type place struct {
	dot  *os.Root // .superqode
	root *os.Root // qe-artifacts
}

func (p *place) close() error { return errors.Join(p.root.Close(), p.dot.Close()) }

func (s *Store) open(create bool) (*place, error) {
	origin, err := atomicfile.OpenRoot(s.origin)
	if err != nil {
		return nil, err
	}
	defer origin.Close()
	dot, err := openFolder(origin, dotName, create)
	if err != nil {
		return nil, fmt.Errorf("artifact store: %w", err)
	}
	if create {
		err = ignoreAll(dot)
	}
	var root *os.Root
	if err == nil {
		root, err = openFolder(dot, storeName, create)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("artifact store: %w", err), dot.Close())
	}
	return &place{dot, root}, nil
}

// ignoreAll keeps the folder out of `git status` and of commits. A file that is
// there already is the user's.
func ignoreAll(dot *os.Root) error {
	if _, err := dot.Lstat(".gitignore"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replaceFile(dot, ".gitignore", []byte("*\n"))
}

// lock takes the lock of the manifest. The lock file is made through the Root
// first: opened by path it could be a link that leads elsewhere.
func (s *Store) lock(ctx context.Context, p *place) (unlock func() error, err error) {
	f, err := p.dot.OpenFile(lockName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	want, err := p.dot.Lstat(lockName)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(s.origin, dotName, lockName)
	if !want.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, &kindError{want.Mode()})
	}
	if unlock, err = lockfile.Lock(ctx, name); err != nil {
		return nil, err
	}
	if now, err := os.Lstat(name); err != nil || !os.SameFile(want, now) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was locked", name), err, unlock())
	}
	return unlock, nil
}

// load reads the manifest. A missing one is empty; one that a newer superqode
// wrote is an error; a broken one is an error too, with what could be read and
// the file's bytes.
func load(root *os.Root) (m manifest, data []byte, problems []Problem, err error) {
	f, err := openRegular(root, manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{version: manifestVersion}, nil, nil, nil
	}
	if err != nil {
		return m, nil, nil, err
	}
	data, err = io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return m, nil, nil, err
	}
	m, problems, err = parseManifest(data)
	if err != nil {
		return m, data, problems, &brokenError{err}
	}
	if m.version > manifestVersion {
		return m, data, nil, fmt.Errorf("%s has schema_version %d: %w", manifestName, m.version, errNewer)
	}
	return m, data, problems, nil
}

// brokenError says that manifest.json is no manifest.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return manifestName + " is broken: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// update runs change on the manifest under the lock and writes the manifest when
// change says so. between runs after the new manifest is safe on disk under
// another name and before it takes effect: the place for renames.
func (s *Store) update(ctx context.Context, change func(*place, *manifest) (between func() error, err error)) (err error) {
	p, err := s.open(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	unlock, err := s.lock(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err := s.loadOrRebuild(p.root, true)
	if err != nil {
		return err
	}
	between, err := change(p, &m)
	if err != nil || between == nil {
		return err
	}
	return writeManifest(p.root, &m, between)
}

func writeManifest(root *os.Root, m *manifest, between func() error) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	tmp, err := writeTemp(root, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	failpoint.Hit("artifacts.manifest.written")
	if err := between(); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	failpoint.Hit("artifacts.placed")
	if err := root.Rename(tmp, manifestName); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	failpoint.Hit("artifacts.manifest.renamed")
	return syncFolder(root)
}

// Filter chooses artifacts; a zero field chooses all.
type Filter struct {
	Type    Type
	Session superqode.SessionID
	Agent   superqode.AgentID
}

func (f Filter) match(a Artifact) bool {
	return (f.Type == "" || a.Type == f.Type) && (f.Session.IsZero() || a.Session == f.Session) && (f.Agent.IsZero() || a.Agent == f.Agent)
}

// List returns the artifacts that f chooses, in the order in which they were
// added.
func (s *Store) List(ctx context.Context, f Filter) ([]Artifact, error) {
	all, err := s.all(ctx)
	var list []Artifact
	for _, a := range all {
		if f.match(a) {
			list = append(list, a)
		}
	}
	return list, err
}

func (s *Store) all(ctx context.Context) (list []Artifact, err error) {
	p, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	m, _, problems, err := load(p.root) // no lock: the file is always whole
	if _, broken := errors.AsType[*brokenError](err); broken {
		m, err = s.rebuildForReading(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	s.warn(problems...)
	return m.artifacts(), nil
}

// Get returns one artifact by its id, its name or name@version; see Resolve.
func (s *Store) Get(ctx context.Context, name string) (Artifact, error) {
	n, err := s.Resolve(ctx, name)
	return n.Artifact, err
}

// OpenArtifact opens an artifact's file for reading. The error wraps
// superqode.ErrNotFound when the file is gone.
func (s *Store) OpenArtifact(a Artifact) (*os.File, error) {
	p, err := s.open(false)
	if err != nil {
		return nil, notFound(err, a)
	}
	f, err := openBelow(p.root, a.Path.String())
	if cerr := p.close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, f.Close())
	}
	return f, notFound(err, a)
}

func notFound(err error, a Artifact) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the file of %s: %w", superqode.ErrNotFound, a.ID, err)
	}
	return err
}

// File returns the absolute path of an artifact's file, for showing to people. To
// read it use OpenArtifact, which follows no links.
func (s *Store) File(a Artifact) string {
	return filepath.Join(s.Dir(), filepath.FromSlash(a.Path.String()))
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// dirs returns the folders of slash-separated rel, outermost first.
func dirs(rel string) []string {
	var list []string
	for d := path.Dir(rel); d != "."; d = path.Dir(d) {
		list = append([]string{d}, list...)
	}
	return list
}
