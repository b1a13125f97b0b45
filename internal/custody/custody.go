// Package custody keeps a session's own state from the session's program: it
// takes the files into custody before the program starts, and when the program has
// ended puts back what was changed and says which files these were.
package custody

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gitfiles"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Custody holds what a session's state files said when its program was started.
// A program of the same user can reach these files where no kernel layer keeps it
// out; what it writes there is put back, named in the report, and never believed.
type Custody struct {
	dir     string
	names   []string          // of the files in fixed, and of those that must not be there
	fixed   map[string]sealed // files that do not change while a program runs
	growth  map[string][]byte // files that are only appended to, as they were
	added   [][]byte          // lines of findings.jsonl that this supervisor wrote since
	aside   *openFiles        // in git_snapshot mode: what the origin would be brought back from
	results *openFiles        // what lies in the origin's .superqode, where the kernel does not keep it
	record  state.Record      // the fields of session.json that never change once a session is open
}

// sealed is one file's hash and a copy that has no name any more, so that big
// snapshots need not be held in memory and cannot be reached by a path.
type sealed struct {
	sum  [sha256.Size]byte
	copy *os.File
}

// sealedFiles are the state files that no supervisor writes during a run.
func sealedFiles() []string {
	return append([]string{
		"base.snap", "origin.snap", "state.json", "state", "commit.index", state.RepositorySnap, state.IgnoredFile,
		state.GuardStateFile,
		state.SetupStateFile, state.SuppressionsCopy,
	}, state.SetupFiles()...)
}

// sealedSalvages returns the files of a session's salvages. A program may add
// files there, which harm nothing: restore writes into a fresh folder only.
func sealedSalvages(dir string) ([]string, error) {
	names, err := state.Names(salvage.Dir(dir))
	var files []string
	for _, name := range names {
		_, record := salvage.Number(name, ".json")
		_, list := salvage.Number(name, ".snap")
		if record || list {
			files = append(files, filepath.Join(filepath.Base(salvage.Dir(dir)), name))
		}
	}
	slices.Sort(files)
	return files, err
}

// growingFiles are the state files that are only appended to.
func growingFiles() []string { return []string{state.FindingsFile, state.RunsFile} }

// Take begins the custody of the state in a session's folder. Release or Close ends
// it. kept says that the kernel keeps the origin's artifacts from the program.
func Take(dir string, rec state.Record, kept bool) (_ *Custody, err error) {
	c := &Custody{dir: dir, fixed: map[string]sealed{}, growth: map[string][]byte{}, record: rec}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	salvages, err := sealedSalvages(dir)
	if err != nil {
		return nil, err
	}
	repositories, err := state.Names(filepath.Join(dir, gitfiles.Folder))
	if err != nil {
		return nil, err
	}
	c.names = append(sealedFiles(), salvages...)
	for _, name := range repositories {
		c.names = append(c.names, filepath.Join(gitfiles.Folder, name))
	}
	if err := c.seal(); err != nil {
		return nil, err
	}
	for _, name := range growingFiles() {
		data, err := atomicfile.Read(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		c.growth[name] = data
	}
	kind := mode.Of(rec.Mode)
	if kind.Exclusive() {
		p := state.Project{Dir: filepath.Dir(filepath.Dir(dir))}
		if c.aside, err = hold(p.Dir, filepath.Join(dir, "aside"), p.StorePath()); err != nil {
			return nil, err
		}
	}
	if !kept {
		if c.results, err = hold(string(rec.Origin), filepath.Join(string(rec.Origin), ".superqode")); err == nil {
			c.results.shared = !kind.InPlace
		}
	}
	return c, err
}

// seal takes the files that are there, side by side: of many files some are large.
func (c *Custody) seal() error {
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	for _, name := range c.names {
		all.Go(func() error {
			f, err := sealFile(c.dir, name)
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				c.fixed[name] = f
			}
			return err
		})
	}
	return all.Wait()
}

// hashes are those of the files as they are now, or why there are none.
func (c *Custody) hashes() (sums [][sha256.Size]byte, errs []error) {
	sums, errs = make([][sha256.Size]byte, len(c.names)), make([]error, len(c.names))
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i, name := range c.names {
		all.Go(func() error {
			sums[i], errs[i] = atomicfile.Hash(filepath.Join(c.dir, name))
			return nil
		})
	}
	_ = all.Wait() // none fails by itself
	return sums, errs
}

func sealFile(dir, name string) (f sealed, err error) {
	src, err := atomicfile.Open(filepath.Join(dir, name))
	if err != nil {
		return f, err
	}
	defer src.Close()
	if f.copy, err = os.CreateTemp(dir, ".seal-*"); err != nil {
		return f, err
	}
	if err := os.Remove(f.copy.Name()); err != nil {
		return f, errors.Join(err, f.copy.Close())
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f.copy, h), src); err != nil {
		return f, errors.Join(err, f.copy.Close())
	}
	h.Sum(f.sum[:0])
	return f, nil
}

// Close drops the copies.
func (c *Custody) Close() error {
	err := errors.Join(c.aside.close(), c.results.close())
	for _, f := range c.fixed {
		err = errors.Join(err, f.copy.Close())
	}
	return err
}

// restore puts back every sealed file that differs and returns their names.
func (c *Custody) restore() (tampered []string, err error) {
	sums, errs := c.hashes()
	for i, name := range c.names {
		want, have := c.fixed[name]
		path, got, rerr := filepath.Join(c.dir, name), sums[i], errs[i]
		switch {
		case have && rerr == nil && (got == want.sum || name == state.GuardStateFile && c.joined(path, want)):
			continue
		case !have && errors.Is(rerr, os.ErrNotExist):
			continue
		case have:
			err = errors.Join(err, want.putBack(path))
		default:
			err = errors.Join(err, os.RemoveAll(path))
		}
		tampered = append(tampered, name)
	}
	for _, name := range growingFiles() {
		path := filepath.Join(c.dir, name)
		got, rerr := atomicfile.Read(path)
		if errors.Is(rerr, os.ErrNotExist) && len(c.growth[name]) == 0 && len(c.added) == 0 {
			continue
		}
		want, intact := c.growth[name], rerr == nil && bytes.HasPrefix(got, c.growth[name])
		if name == state.FindingsFile {
			for _, line := range c.added {
				want, intact = ledger.Extend(want, line), intact && bytes.Contains(got, line)
			}
		}
		if !intact {
			err = errors.Join(err, atomicfile.ClearWay(path), atomicfile.Write(path, want, 0o600))
			tampered = append(tampered, name)
		}
	}
	return tampered, err
}

// joined reports whether the guard's file differs in nothing but its supervisors, since
// other commands ran programs in the session meanwhile.
func (c *Custody) joined(path string, was sealed) bool {
	if rec, _ := state.Believe(c.dir, c.record); rec.Runs == c.record.Runs {
		return false
	}
	var old, now map[string]json.RawMessage
	data, err := atomicfile.Read(path)
	if _, serr := was.copy.Seek(0, io.SeekStart); err != nil || serr != nil || json.Unmarshal(data, &now) != nil ||
		json.NewDecoder(was.copy).Decode(&old) != nil {
		return false
	}
	delete(old, "supervisors")
	delete(now, "supervisors")
	return maps.EqualFunc(old, now, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

func (f sealed) putBack(path string) error {
	if st, err := os.Lstat(filepath.Dir(path)); err == nil && !st.IsDir() { // the folder of the salvages
		if err := os.Remove(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Chmod(filepath.Dir(path), 0o700),
		atomicfile.ClearWay(path)); err != nil {
		return err
	}
	return rewrite(path, 0o600, f.copy)
}

// restoreFolders makes the session's and the project's folders anew where the
// program took them away or put something else there, and clears what is no file
// from the places of files that are written as they stand.
func restoreFolders(s *site.Site) error {
	err := state.ReopenSession(s.Folder)
	folders := []string{s.Folder, s.Project.TrashPath(), filepath.Join(s.Project.Dir, "qe")}
	for _, name := range state.SessionFolders() {
		folders = append(folders, filepath.Join(s.Folder, name))
	}
	for _, dir := range folders {
		if st, lerr := os.Lstat(dir); lerr == nil && !st.IsDir() {
			err = errors.Join(err, os.Remove(dir))
		}
		err = errors.Join(err, os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)) // the program may have closed it
	}
	files := []string{s.Project.LockPath()}
	for _, name := range []string{"lock", "record.lock", "findings.lock", "seen.json", "log/command.log"} {
		files = append(files, filepath.Join(s.Folder, name))
	}
	for _, file := range files {
		err = errors.Join(err, atomicfile.ClearWay(file))
	}
	if st, lerr := os.Lstat(s.Project.StorePath()); lerr == nil && !st.IsDir() {
		err = errors.Join(err, os.Remove(s.Project.StorePath()))
	}
	err = errors.Join(err, atomicfile.ClearWay(filepath.Join(s.Project.StorePath(), store.LockName)))
	s.Store = nil // what it knew of its folder may be wrong
	return err
}

// Release ends the custody when the program has ended: state files are put back,
// and what was found is recorded in the session's record and shown.
func (c *Custody) Release(s *site.Site) error {
	err := restoreFolders(s)
	tampered, rerr := c.restore()
	changed := c.results.changed()
	if broken, verr := c.results.restoreMissing(); broken || verr != nil { // a manifest of another's making, too
		tampered, rerr = append(tampered, ".superqode"), errors.Join(rerr, verr)
	}
	if broken, verr := c.aside.restore(); broken || verr != nil {
		tampered, rerr = append(tampered, "aside"), errors.Join(rerr, verr)
	}
	err = errors.Join(err, rerr, c.Close())
	rec, bad := state.Believe(c.dir, c.record)
	if bad {
		tampered = append(tampered, "session.json")
	}
	s.Rec = rec
	for _, name := range tampered {
		s.Rec.Tampered = state.Merged(s.Rec.Tampered, []string{name})
		s.Tell(fmt.Sprintf("the program changed superqode's own state (%s of session %s); it was put back",
			name, s.Rec.ID))
	}
	if len(changed) > 0 {
		first, stay := text.Printable(changed[0]), "stays"
		if len(changed) > 1 {
			first, stay = first+", …", "stay"
		}
		s.Warn(fmt.Sprintf("%s changed while the program ran, and %s so: %s; superqode artifacts verify",
			text.Plural(len(changed), "earlier artifact"), stay, first))
	}
	if err != nil {
		return fmt.Errorf("put back the session's state: %w", err)
	}
	if len(tampered) == 0 {
		return nil
	}
	return errors.Join(atomicfile.ClearWay(state.RecordPath(s.Folder)), s.Save())
}

// Wrote tells of lines that this supervisor appended to findings.jsonl while the
// program ran. It is nothing to a nil Custody: no program runs.
func (c *Custody) Wrote(lines []byte) {
	if c != nil {
		c.added = append(c.added, lines)
	}
}
