package artifacts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/rooted"
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

	manifest *os.File // where not all of it was read
}

func (p *place) close() error {
	if p.manifest != nil {
		_ = p.manifest.Close() // read only: nothing is lost
	}
	return errors.Join(p.root.Close(), p.dot.Close())
}

func (s *Store) open(create bool) (*place, error) {
	origin, err := atomicfile.OpenRoot(s.origin)
	if err != nil {
		return nil, err
	}
	defer origin.Close()
	dot, err := rooted.Folder(origin, dotName, create)
	if err != nil {
		return nil, fmt.Errorf("artifact store: %w", err)
	}
	if create {
		err = ignoreAll(dot)
	}
	var root *os.Root
	if err == nil {
		root, err = rooted.Folder(dot, storeName, create)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("artifact store: %w", err), dot.Close())
	}
	return &place{dot: dot, root: root}, nil
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
		return nil, fmt.Errorf("%s: %w", name, &rooted.KindError{Mode: want.Mode()})
	}
	if unlock, err = lockfile.Lock(ctx, name); err != nil {
		return nil, err
	}
	if now, err := os.Lstat(name); err != nil || !os.SameFile(want, now) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was locked", name), err, unlock())
	}
	return unlock, nil
}

// load reads the manifest, or what a session needs of it (see recent). A missing one
// is empty; one that a newer superqode wrote is an error; a broken one is an error
// too, with what could be read and the file's bytes.
func (p *place) load(of superqode.SessionID) (m manifest, data []byte, problems []Problem, err error) {
	f, err := rooted.Regular(p.root, manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{version: manifestVersion}, nil, nil, nil
	}
	if err != nil {
		return m, nil, nil, err
	}
	if !of.IsZero() {
		if m, ok := p.recent(f, of); ok {
			p.manifest = f
			return m, []byte{}, nil, nil
		}
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

// update runs change on the manifest, or on what a session needs of it, under the
// lock and writes the manifest when change says so. between runs after the new
// manifest is safe on disk under another name and before it takes effect: the place
// for renames.
func (s *Store) update(
	ctx context.Context, of superqode.SessionID, change func(*place, *manifest) (between func() error, err error),
) (err error) {
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
	m, err := s.loadOrRebuild(p, of, true)
	if err != nil {
		return err
	}
	between, err := change(p, &m)
	if err != nil || between == nil {
		return err
	}
	return p.writeManifest(&m, between)
}

func (p *place) writeManifest(m *manifest, between func() error) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	root, at := p.root, bytes.Index(data, []byte(listBegin))+len(listBegin)
	tmp, err := writeTemp(root, func(w io.Writer) error {
		_, err := w.Write(data[:at])
		if err == nil {
			err = m.older.copyTo(w)
		}
		if err == nil {
			_, err = w.Write(data[at:])
		}
		return err
	})
	if err != nil {
		return err
	}
	age(root, tmp)
	failpoint.Hit("artifacts.manifest.written")
	if err := between(); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	failpoint.Hit("artifacts.placed")
	if err := root.Rename(tmp, manifestName); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	failpoint.Hit("artifacts.manifest.renamed")
	end := m.older.to - m.older.from + int64(at+bytes.Index(data[at:], []byte(listEnd)))
	p.stamp(m, end)
	if m.loose {
		return nil
	}
	return rooted.Sync(root)
}

// Filter chooses artifacts; a zero field chooses all.
type Filter struct {
	Type    Type
	Session superqode.SessionID
	Agent   superqode.AgentID
}

func (f Filter) match(a Artifact) bool {
	return (f.Type == "" || a.Type == f.Type) &&
		(f.Session.IsZero() || a.Session == f.Session) && (f.Agent.IsZero() || a.Agent == f.Agent)
}

// List returns the artifacts that f chooses, in the order in which they were
// added.
func (s *Store) List(ctx context.Context, f Filter) ([]Artifact, error) {
	all, err := s.all(ctx, f.Session)
	return slices.DeleteFunc(all, func(a Artifact) bool { return !f.match(a) }), err
}

// all returns the artifacts of a session, and maybe others; of all sessions if it is zero.
func (s *Store) all(ctx context.Context, of superqode.SessionID) (list []Artifact, err error) {
	p, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	m, _, problems, err := p.load(of) // no lock: the file is always whole
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
	f, err := rooted.File(p.root, a.Path.String())
	if cerr := p.close(); err == nil && cerr != nil {
		return nil, errors.Join(cerr, f.Close())
	}
	return f, notFound(err, a)
}

// Read returns the content of an artifact, or its first limit bytes; 0 means all of
// them.
func (s *Store) Read(a Artifact, limit int64) ([]byte, error) {
	f, err := s.OpenArtifact(a)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing is lost
	if limit > 0 {
		return io.ReadAll(io.LimitReader(f, limit))
	}
	return io.ReadAll(f)
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

// Prepare makes the store's folders, so that an origin where nothing can be
// written is found out before an hour's work and not after it.
func (s *Store) Prepare() error {
	p, err := s.open(true)
	if err != nil {
		return err
	}
	return p.close()
}

// Remove deletes all artifacts of one session, files and entries. A file that is not
// what the manifest recorded is someone's work: it stays, with its entry, and the
// problems name it.
func (s *Store) Remove(ctx context.Context, session superqode.SessionID) ([]Artifact, []Problem, error) {
	if session.IsZero() {
		return nil, nil, errors.New("remove artifacts: no session")
	}
	return s.remove(ctx, removal{choose: func([]Artifact) sessions { return sessions{session: true} }})
}

// PruneOptions says which sessions' artifacts may go. With both limits set a
// session must be beyond both.
type PruneOptions struct {
	KeepSessions int           // so many newest sessions stay; 0 sets no such limit
	OlderThan    time.Duration // sessions with a younger artifact stay; 0 sets no such limit
	Preserved    map[superqode.SessionID]bool
	DryRun       bool      // only say what would go
	Now          time.Time // zero means the present
}

// Prune deletes the artifacts of old sessions, as Remove does, but never those of
// preserved ones, nor what was added outside a session or saved under a name. Temporary files that a
// killed writer left more than a day ago go too. It returns what was removed and
// what stayed, and why.
func (s *Store) Prune(ctx context.Context, opt PruneOptions) ([]Artifact, []Problem, error) {
	if opt.KeepSessions < 0 || opt.OlderThan < 0 || opt.KeepSessions == 0 && opt.OlderThan == 0 {
		err := superqode.Errorf(superqode.ErrUsage, "prune needs a number of sessions to keep, an age, or both")
		return nil, nil, err
	}
	if opt.Now.IsZero() {
		opt.Now = time.Now()
	}
	return s.remove(ctx, removal{choose: opt.choose, dry: opt.DryRun, keepSaved: true})
}

// choose decides which sessions go.
func (opt PruneOptions) choose(all []Artifact) sessions {
	newest := map[superqode.SessionID]time.Time{}
	for _, a := range all {
		if t := newest[a.Session]; !a.Session.IsZero() && !a.CreatedAt.Before(t) {
			newest[a.Session] = a.CreatedAt
		}
	}
	order := slices.SortedFunc(maps.Keys(newest), func(a, b superqode.SessionID) int {
		return cmp.Or(newest[b].Compare(newest[a]), strings.Compare(b.String(), a.String()))
	})
	gone := sessions{}
	for i, id := range order {
		tooMany := opt.KeepSessions == 0 || i >= opt.KeepSessions
		tooOld := opt.OlderThan == 0 || opt.Now.Sub(newest[id]) > opt.OlderThan
		if tooMany && tooOld && !opt.Preserved[id] {
			gone[id] = true
		}
	}
	return gone
}

// sessions are those whose artifacts go.
type sessions map[superqode.SessionID]bool

// removal says which artifacts are deleted, and how.
type removal struct {
	choose    func([]Artifact) sessions
	dry       bool // only say what would go
	keepSaved bool // what was saved under a name stays; see Store.Save
}

func (s *Store) remove(ctx context.Context, how removal) (removed []Artifact, problems []Problem, err error) {
	if _, err := os.Lstat(s.Dir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	err = s.update(ctx, superqode.SessionID{}, func(p *place, m *manifest) (func() error, error) {
		gone := how.choose(m.artifacts())
		var failed error
		m.entries = slices.DeleteFunc(m.entries, func(e entry) bool {
			if failed != nil || e.opaque || !gone[e.Session] || how.keepSaved && e.version() > 0 {
				return false
			}
			if failed = ctx.Err(); failed != nil {
				return false
			}
			// Files go first: interrupted here, the entries are still there and the next
			// call finishes. In the other order nothing would name the files any more.
			why, err := removeFile(p.root, e.Artifact, how.dry)
			if err != nil {
				why = err.Error()
			}
			if why != "" {
				problems = append(problems, Problem{e.Path.String(), why})
				return false
			}
			removed = append(removed, e.Artifact)
			return true
		})
		m.index = nil
		if !how.dry {
			sweepTemps(p.root, m)
		}
		if how.dry || len(removed) == 0 {
			return nil, failed
		}
		m.updated = At(now())
		return func() error { return nil }, nil
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return removed, problems, err
}

// removeFile removes an artifact's file and the folders that it leaves empty, and
// says why it did not.
func removeFile(root *os.Root, a Artifact, dry bool) (why string, err error) {
	rel := a.Path.String()
	if !inFolder(rel) {
		return "spared: it is in none of our folders", nil
	}
	sum, size, err := hashBelow(root, rel)
	_, kind := errors.AsType[*rooted.KindError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case kind || err == nil && (sum != a.SHA256 || size != a.Size):
		return "spared: it was changed after it was recorded", nil
	case err != nil || dry:
		return "", err
	}
	if err := failpoint.Err("artifacts.remove"); err != nil {
		return "", err
	}
	remove := func(rel string) error {
		return in(root, path.Dir(rel), func(dir *os.Root) error { return dir.Remove(path.Base(rel)) })
	}
	if err := remove(rel); err != nil {
		return "", err
	}
	// Remove refuses a folder that is not empty: then there is a file of someone else in it.
	for d := path.Dir(rel); strings.Contains(d, "/") && remove(d) == nil; d = path.Dir(d) {
	}
	return "", nil
}

// sweepTemps removes the temporary files that a killed writer left. Failing to is
// no failure of what the caller wanted.
func sweepTemps(root *os.Root, m *manifest) {
	_ = rooted.Walk(root, func(dir *os.Root, rel string, info fs.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || !isTemp(path.Base(rel)) || m.byPath(rel) != nil {
			return nil
		}
		if time.Since(info.ModTime()) > staleTemp {
			_ = dir.Remove(path.Base(rel))
		}
		return nil
	})
}

// Check is what Verify found.
type Check struct {
	Checked  int        // entries whose file was hashed
	Missing  []Artifact // entries whose file is gone
	Changed  []Artifact // entries whose file has another content or is no regular file
	Unknown  []string   // files that no entry names, raw bytes below qe-artifacts
	Problems []Problem  // what could not be checked, and why
}

// OK reports whether every entry's file is there with the recorded content,
// nothing else is, and everything could be checked.
func (c Check) OK() bool {
	return len(c.Missing)+len(c.Changed)+len(c.Unknown)+len(c.Problems) == 0
}

// Verify compares every file with the manifest. What other processes add or
// remove meanwhile is no finding: the list of files is taken under the lock, and
// what does not fit is looked at a second time under it.
func (s *Store) Verify(ctx context.Context) (c Check, err error) {
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	p, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var m manifest
	err = s.whileLocked(ctx, p, func() (err error) {
		if m, err = s.loadForVerify(p, &c); err == nil {
			c.findUnknown(p, &m)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	var doubtful []Artifact
	for _, a := range m.artifacts() {
		if err := ctx.Err(); err != nil {
			return c, context.Cause(ctx)
		}
		if sum, size, err := hashBelow(p.root, a.Path.String()); err != nil || sum != a.SHA256 || size != a.Size {
			doubtful = append(doubtful, a)
			continue
		}
		c.Checked++
	}
	if len(doubtful) == 0 {
		return c, nil
	}
	err = s.whileLocked(ctx, p, func() error { return c.lookAgain(p, doubtful) })
	return c, err
}

// whileLocked runs do under the lock, or without it where the folder cannot be
// written: then nobody else writes to it either.
func (s *Store) whileLocked(ctx context.Context, p *place, do func() error) (err error) {
	unlock, err := s.lock(ctx, p)
	if atomicfile.Denied(err) {
		return do()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return do()
}

func (s *Store) loadForVerify(p *place, c *Check) (manifest, error) {
	m, _, problems, err := p.load(superqode.SessionID{})
	c.Problems = append(c.Problems, problems...)
	// It is not rebuilt here: that would verify files against themselves.
	if _, broken := errors.AsType[*brokenError](err); broken {
		c.Problems = append(c.Problems, Problem{manifestName, err.Error()})
		err = nil
	}
	return m, err
}

func (c *Check) findUnknown(p *place, m *manifest) {
	err := rooted.Walk(p.root, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case rel == manifestName || strings.HasPrefix(rel, brokenPrefix) || isTemp(path.Base(rel)):
		case m.byPath(rel) != nil: // hashed, and named there when it is no file
		case err != nil:
			c.Problems = append(c.Problems, Problem{rel, err.Error()})
		default:
			c.Unknown = append(c.Unknown, rel)
		}
		return nil
	})
	if err != nil {
		c.Problems = append(c.Problems, Problem{".", err.Error()})
	}
}

// lookAgain decides about the entries that did not fit, by the manifest of now.
func (c *Check) lookAgain(p *place, doubtful []Artifact) error {
	m, _, _, err := p.load(superqode.SessionID{})
	if _, broken := errors.AsType[*brokenError](err); err != nil && !broken {
		return err
	}
	for _, a := range doubtful {
		e := m.byPath(a.Path.String())
		if e == nil {
			continue // removed meanwhile
		}
		sum, size, err := hashBelow(p.root, a.Path.String())
		_, kind := errors.AsType[*rooted.KindError](err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Missing = append(c.Missing, e.Artifact)
		case kind || err == nil && (sum != e.SHA256 || size != e.Size):
			c.Changed = append(c.Changed, e.Artifact)
		case err != nil:
			c.Problems = append(c.Problems, Problem{a.Path.String(), err.Error()})
		default:
			c.Checked++
		}
	}
	return nil
}

// loadOrRebuild reads the manifest; a broken one, or a missing one where there are
// files, is rebuilt from what can still be read and from the files. With save the
// broken file is kept beside it first. The caller holds the lock.
func (s *Store) loadOrRebuild(p *place, of superqode.SessionID, save bool) (manifest, error) {
	m, data, problems, err := p.load(of)
	broken, isBroken := errors.AsType[*brokenError](err)
	if err != nil && !isBroken {
		return m, err
	}
	s.warn(problems...)
	if !isBroken && data != nil {
		return m, nil
	}
	kept := len(m.entries)
	found, problems := m.adopt(p.root)
	if !isBroken && found == 0 {
		return m, nil // a new store
	}
	why := "was missing"
	if isBroken {
		why = "was broken (" + broken.err.Error() + ")"
		if save {
			aside := freeName(p.root, brokenPrefix)
			if err := replaceFile(p.root, aside, data); err != nil {
				return m, err
			}
			why += ", is kept as " + aside
		}
	}
	why += fmt.Sprintf("; rebuilt: %d entries could be read, %d files entered anew", kept, found)
	s.warn(append([]Problem{{manifestName, why}}, problems...)...)
	if !save {
		return m, nil
	}
	m.updated = At(now())
	return m, p.writeManifest(&m, func() error { return nil })
}

// rebuildForReading rebuilds a broken manifest for a caller that only wants to
// read: on disk where that can be written, else in memory.
func (s *Store) rebuildForReading(ctx context.Context, p *place) (m manifest, err error) {
	unlock, err := s.lock(ctx, p)
	if atomicfile.Denied(err) {
		return s.loadOrRebuild(p, superqode.SessionID{}, false)
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err = s.loadOrRebuild(p, superqode.SessionID{}, true)
	if atomicfile.Denied(err) {
		return s.loadOrRebuild(p, superqode.SessionID{}, false)
	}
	return m, err
}

func freeName(root *os.Root, prefix string) string {
	for n := 1; ; n++ {
		name := fmt.Sprint(prefix, n)
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

type found struct {
	path string
	time time.Time
}

// adopt enters every file below root that no entry names, oldest first, and says
// for each what could not be known.
func (m *manifest) adopt(root *os.Root) (int, []Problem) {
	var files []found
	var problems []Problem
	visit := func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case !strings.Contains(rel, "/") || isTemp(path.Base(rel)) || m.byPath(rel) != nil:
		case err != nil:
			problems = append(problems, Problem{rel, err.Error()})
		case !info.Mode().IsRegular():
			problems = append(problems, Problem{rel, rooted.KindOf(info.Mode()) + ", left out"})
		case !inFolder(rel):
			problems = append(problems, Problem{rel, "in no folder of ours, left out"})
		default:
			files = append(files, found{rel, info.ModTime()})
		}
		return nil
	}
	if err := rooted.Walk(root, visit); err != nil {
		problems = append(problems, Problem{"", err.Error()})
	}
	slices.SortStableFunc(files, func(a, b found) int {
		return cmp.Or(a.time.Compare(b.time), strings.Compare(a.path, b.path))
	})
	n := 0
	for _, f := range files {
		a := Artifact{Type: TypeAt(f.path), Name: path.Base(f.path), CreatedAt: f.time, Session: sessionIn(f.path)}
		if name, version, ok := splitVersioned(a.Name); ok {
			a.Name, a.Metadata = name, map[string]any{metaVersion: version}
		}
		var err error
		if a.Path, err = superqode.ParseRelPath(f.path); err == nil {
			a.SHA256, a.Size, err = hashBelow(root, f.path)
		}
		if err != nil {
			problems = append(problems, Problem{f.path, err.Error()})
			continue
		}
		a = m.add(a)
		n++
		lost := "id, description, metadata, original file and agent"
		if a.Session.IsZero() {
			lost += " and session"
		}
		why := "entered anew as " + a.ID + ": its " + lost + " could not be known"
		problems = append(problems, Problem{f.path, why})
	}
	return n, problems
}

// sessionIn finds a session id in a path, as a component or within one.
func sessionIn(rel string) superqode.SessionID {
	text := regexp.MustCompile(`qe-[0-9]{8}-[0-9]{6}-[a-z2-7]{6}`).FindString(rel)
	id, _ := superqode.ParseSessionID(text) // zero where there is none
	return id
}
