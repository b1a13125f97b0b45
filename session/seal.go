package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// seal holds what a session's state files said when its program was started. A
// program of the same user can reach these files where no kernel layer keeps it
// out; what it writes there is put back, named in the report, and never
// believed.
type seal struct {
	dir    string
	fixed  map[string][]byte // files that do not change while a program runs
	growth []byte            // the journal so far: later steps are only appended
	record Record            // the fields of session.json that never change once a session is open
}

// sealedFiles are the state files that no supervisor writes during a run.
func sealedFiles() []string { return []string{"base.snap", "origin.snap", "state.json", "state"} }

func newSeal(dir string, rec Record) (*seal, error) {
	s := &seal{dir: dir, fixed: map[string][]byte{}, record: rec}
	for _, name := range sealedFiles() {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.fixed[name] = data
	}
	var err error
	s.growth, err = os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	return s, err
}

// restore puts back every sealed file that differs and returns their names.
func (s *seal) restore() (tampered []string, err error) {
	for _, name := range sealedFiles() {
		want, sealed := s.fixed[name]
		path := filepath.Join(s.dir, name)
		got, rerr := os.ReadFile(path)
		switch {
		case sealed && rerr == nil && bytes.Equal(got, want):
			continue
		case !sealed && errors.Is(rerr, os.ErrNotExist):
			continue
		case sealed:
			err = errors.Join(err, replace(path, want))
		default:
			err = errors.Join(err, os.RemoveAll(path))
		}
		tampered = append(tampered, name)
	}
	path := filepath.Join(s.dir, "journal.jsonl")
	if got, rerr := os.ReadFile(path); rerr != nil || !bytes.HasPrefix(got, s.growth) {
		err = errors.Join(err, replace(path, s.growth))
		tampered = append(tampered, "journal.jsonl")
	}
	return tampered, err
}

// replace writes a file anew, whatever stands at its path.
func replace(path string, data []byte) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, data, 0o600)
}

// trusted reads session.json as a supervisor may believe it: fields that other
// supervisors of the session write are taken from the file, all others from
// memory. tampered reports that the file could not be read or told something
// else about a field that never changes.
func (s *seal) trusted() (rec Record, tampered bool) {
	rec = s.record
	disk, err := readRecord(s.dir)
	if err != nil {
		return rec, true
	}
	rec.Command, rec.Runs, rec.ExitCode, rec.TimedOut = disk.Command, disk.Runs, disk.ExitCode, disk.TimedOut
	rec.Pinned, rec.ChangeCount, rec.UpdatedAt = disk.Pinned, disk.ChangeCount, disk.UpdatedAt
	rec.Warnings, rec.Tampered = merged(rec.Warnings, disk.Warnings), merged(rec.Tampered, disk.Tampered)
	return rec, !sameFixed(rec, *disk)
}

// sameFixed compares two records in everything but what trusted takes over, by
// their JSON, so that a field added later is compared too.
func sameFixed(a, b Record) bool {
	b.Command, b.Runs, b.ExitCode, b.TimedOut = a.Command, a.Runs, a.ExitCode, a.TimedOut
	b.Pinned, b.ChangeCount, b.UpdatedAt, b.Warnings, b.Tampered = a.Pinned, a.ChangeCount, a.UpdatedAt, a.Warnings, a.Tampered
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

func merged(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// unseal ends a run: state files are put back, and what was found is recorded
// and shown.
func (s *Session) unseal(sl *seal) error {
	tampered, err := sl.restore()
	rec, bad := sl.trusted()
	if bad {
		tampered = append(tampered, "session.json")
	}
	s.rec = rec
	for _, name := range tampered {
		s.rec.Tampered = merged(s.rec.Tampered, []string{name})
		s.m.cfg.Warn(fmt.Sprintf("the program changed superqode's own state (%s of session %s); it was put back", name, s.rec.ID))
	}
	if err != nil {
		return fmt.Errorf("put back the session's state: %w", err)
	}
	if len(tampered) > 0 {
		if st, err := os.Lstat(recordPath(s.dir)); err == nil && !st.Mode().IsRegular() {
			if err := os.RemoveAll(recordPath(s.dir)); err != nil {
				return err
			}
		}
		return s.save()
	}
	return nil
}
