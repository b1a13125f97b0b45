package session

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// seal holds what a session's state files said when its program was started. A
// program of the same user can reach these files where no kernel layer keeps it
// out; what it writes there is put back, named in the report, and never
// believed.
type seal struct {
	dir     string
	names   []string          // of the files in fixed, and of those that must not be there
	fixed   map[string]sealed // files that do not change while a program runs
	growth  map[string][]byte // files that are only appended to, as they were
	added   [][]byte          // lines of findings.jsonl that this supervisor wrote since
	vault   *vault            // in git_snapshot mode: what the origin would be brought back from
	results *vault            // in place: what lies in the origin's .superqode
	record  state.Record      // the fields of session.json that never change once a session is open
}

// sealed is one file's hash and a copy that has no name any more, so that big
// snapshots need not be held in memory and can not be reached by a path.
type sealed struct {
	sum  [sha256.Size]byte
	copy *os.File
}

// sealedFiles are the state files that no supervisor writes during a run.
func sealedFiles() []string {
	return append([]string{"base.snap", "origin.snap", "state.json", "state", state.RepositorySnap, state.IgnoredFile, state.GuardStateFile, state.SetupStateFile, state.SuppressionsCopy}, state.SetupFiles()...)
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
func growingFiles() []string { return []string{"findings.jsonl", state.RunsFile} }

func newSeal(dir string, rec state.Record) (_ *seal, err error) {
	s := &seal{dir: dir, fixed: map[string]sealed{}, growth: map[string][]byte{}, record: rec}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	salvages, err := sealedSalvages(dir)
	if err != nil {
		return nil, err
	}
	s.names = append(sealedFiles(), salvages...)
	for _, name := range s.names {
		f, err := sealFile(dir, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.fixed[name] = f
	}
	for _, name := range growingFiles() {
		data, err := atomicfile.Read(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		s.growth[name] = data
	}
	if rec.Mode == superqode.ModeGitSnapshot {
		p := state.Project{Dir: filepath.Dir(filepath.Dir(dir))}
		if s.vault, err = openVault(p.Dir, filepath.Join(dir, "aside"), p.StorePath()); err != nil {
			return nil, err
		}
	}
	if rec.Mode.InPlace() && !rec.GitReadOnly { // else the same mount keeps them
		s.results, err = openVault(string(rec.Origin), filepath.Join(string(rec.Origin), ".superqode"))
	}
	return s, err
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

// close drops the copies.
func (s *seal) close() error {
	err := errors.Join(s.vault.close(), s.results.close())
	for _, f := range s.fixed {
		err = errors.Join(err, f.copy.Close())
	}
	return err
}

// restore puts back every sealed file that differs and returns their names.
func (s *seal) restore() (tampered []string, err error) {
	for _, name := range s.names {
		want, have := s.fixed[name]
		path := filepath.Join(s.dir, name)
		got, rerr := fileHash(path)
		switch {
		case have && rerr == nil && got == want.sum:
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
		path := filepath.Join(s.dir, name)
		got, rerr := atomicfile.Read(path)
		if errors.Is(rerr, os.ErrNotExist) && len(s.growth[name]) == 0 && len(s.added) == 0 {
			continue
		}
		want, intact := s.growth[name], rerr == nil && bytes.HasPrefix(got, s.growth[name])
		if name == findings.LogName {
			for _, line := range s.added {
				want, intact = ledger.Extend(want, line), intact && bytes.Contains(got, line)
			}
		}
		if !intact {
			err = errors.Join(err, clearWay(path), atomicfile.Write(path, want, 0o600))
			tampered = append(tampered, name)
		}
	}
	return tampered, err
}

func (f sealed) putBack(path string) error {
	if st, err := os.Lstat(filepath.Dir(path)); err == nil && !st.IsDir() { // the folder of the salvages
		if err := os.Remove(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Chmod(filepath.Dir(path), 0o700), clearWay(path)); err != nil {
		return err
	}
	if _, err := f.copy.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return atomicfile.WriteFunc(path, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, f.copy)
		return err
	})
}

func fileHash(path string) (sum [sha256.Size]byte, err error) {
	f, err := atomicfile.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, err
}

// clearWay removes what stands at path when it is not a regular file, so that a
// file can be renamed there.
func clearWay(path string) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return os.RemoveAll(path)
	}
	return nil
}

// restoreFolders makes the session's and the project's folders anew where the
// program took them away or put something else there, and clears what is no file
// from the places of files that are written as they stand.
func (s *Session) restoreFolders() error {
	var err error
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
		err = errors.Join(err, clearWay(file))
	}
	if st, lerr := os.Lstat(s.Project.StorePath()); lerr == nil && !st.IsDir() {
		err = errors.Join(err, os.Remove(s.Project.StorePath()))
	}
	err = errors.Join(err, clearWay(filepath.Join(s.Project.StorePath(), snapshot.StoreLock)))
	s.Store = nil // what it knew of its folder may be wrong
	return err
}

// unseal ends a run: state files are put back, and what was found is recorded
// and shown.
func (s *Session) unseal(sl *seal) error {
	err := s.restoreFolders()
	tampered, rerr := sl.restore()
	if broken, verr := sl.results.restoreMissing(); broken || verr != nil {
		tampered, rerr = append(tampered, ".superqode"), errors.Join(rerr, verr)
	}
	if broken, verr := sl.vault.restore(); broken || verr != nil {
		tampered, rerr = append(tampered, "aside"), errors.Join(rerr, verr)
	}
	err = errors.Join(err, rerr, sl.close())
	rec, bad := state.Believe(sl.dir, sl.record)
	if bad {
		tampered = append(tampered, "session.json")
	}
	s.Rec = rec
	for _, name := range tampered {
		s.Rec.Tampered = state.Merged(s.Rec.Tampered, []string{name})
		s.Tell(fmt.Sprintf("the program changed superqode's own state (%s of session %s); it was put back", name, s.Rec.ID))
	}
	if err != nil {
		return fmt.Errorf("put back the session's state: %w", err)
	}
	if len(tampered) == 0 {
		return nil
	}
	return errors.Join(clearWay(state.RecordPath(s.Folder)), s.Save())
}
