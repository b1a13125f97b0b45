// Package findings gathers what the programs of a session found. It reads findings
// that were reported while they worked, and those in the files that they left in
// the formats of other tools; it keeps them in the session's folder, marks those
// that the origin's file of suppressions names, and files the patches that would
// mend them.
package findings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Log keeps the findings of one session in its folder, one JSON object a line:
// those that were reported in state.FindingsFile, those that were read from files that the
// program left in a file of their own, which is written anew each time the session
// is collected.
type Log struct {
	Dir    string    // the session's folder
	Roots  []string  // absolute folders that stand for the origin's top
	Origin string    // absolute
	Ended  bool      // the suppressions of now count, and not those of the session's beginning
	At     time.Time // now
}

const importedName = "imported.jsonl"

// maxLog bounds the log, in bytes: a program must not fill the disk.
const maxLog = 64 << 20

// Added is what became of one finding.
type Added struct {
	ID      string
	Ignored []string // fields that are not known
	Err     error    // a *artifacts.FieldError, or about the JSON; nil when it was added
}

// addOptions say how findings are added.
type addOptions struct {
	foundBy string // who found what names no finder
	// done says that the session is done: its findings are those reported, and nothing
	// is appended to its log.
	done     bool
	reported []artifacts.Finding
	wrote    func([]byte) // called with what is appended; nil calls nothing
}

// lock keeps others from changing a session's findings and report until unlock is
// called.
func lock(ctx context.Context, dir string) (unlock func() error, err error) {
	return lockfile.Lock(ctx, filepath.Join(dir, "findings.lock"))
}

// add checks findings, gives each an id and appends them with one write. Those that
// are wrong are named in list, in the order given, and the others are kept. The
// caller holds the lock.
func (l Log) add(raws []json.RawMessage, opt addOptions) (list []Added, added []artifacts.Finding, err error) {
	taken, size := map[string]bool{}, 0
	var lines []byte
	if opt.done {
		for _, f := range opt.reported {
			taken[f.ID] = true
		}
	} else if taken, size, err = l.state(); err != nil {
		return nil, nil, err
	}
	list = make([]Added, len(raws))
	for i, raw := range raws {
		f, err := l.complete(raw, opt.foundBy, taken)
		if err != nil {
			list[i].Err = err
			continue
		}
		line, err := ledger.Lines(f)
		if err != nil {
			return nil, nil, err
		}
		if len(taken) >= maxFindings || size+len(lines)+len(line) > maxLog {
			n := len(taken)
			list[i].Err = superqode.Errorf(superqode.ErrUsage, "the session has %d findings, and takes no more", n)
			continue
		}
		taken[f.ID] = true
		list[i].ID, list[i].Ignored = f.ID, f.Ignored
		lines, added = append(lines, line...), append(added, f)
	}
	if len(added) == 0 || opt.done {
		return list, added, nil
	}
	if opt.wrote != nil {
		opt.wrote(lines)
	}
	return list, added, ledger.AppendLines(filepath.Join(l.Dir, state.FindingsFile), lines, true)
}

// complete checks one finding and fills in what it does not state.
func (l Log) complete(raw json.RawMessage, foundBy string, taken map[string]bool) (artifacts.Finding, error) {
	f, err := artifacts.ParseFinding(raw, l.Roots...)
	if err != nil {
		return f, err
	}
	f.Suppressed, f.Source = nil, "" // who finds has no say in what counts
	if f.ID != "" && taken[f.ID] {
		return f, &artifacts.FieldError{Field: "id", Reason: fmt.Sprintf("%q is taken", f.ID)}
	}
	for n := len(taken) + 1; f.ID == "" || taken[f.ID]; n++ {
		f.ID = fmt.Sprintf("finding-%03d", n)
	}
	if f.FoundBy == "" {
		f.FoundBy = foundBy
	}
	return f, nil
}

// state returns the ids in the log, and its size. Only the ids are read: a session
// may have thousands of findings.
func (l Log) state() (taken map[string]bool, size int, err error) {
	data, err := readIfThere(filepath.Join(l.Dir, state.FindingsFile))
	if err != nil {
		return nil, 0, err
	}
	ids, _ := ledger.Parse[struct {
		ID string `json:"id"`
	}](data)
	taken = map[string]bool{}
	for _, f := range ids {
		if f.ID != "" {
			taken[f.ID] = true
		}
	}
	return taken, len(data), nil
}

func readIfThere(path string) ([]byte, error) {
	data, err := atomicfile.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// List returns what was found, as it was reported, in the order in which it came,
// marked by the suppressions. A line that is no finding (cut by a crash) is passed
// over.
func (l Log) List() ([]artifacts.Finding, error) {
	list := []artifacts.Finding{}
	for _, name := range []string{state.FindingsFile, importedName} {
		data, err := readIfThere(filepath.Join(l.Dir, name))
		if err != nil {
			return nil, err
		}
		list = append(list, parse(data)...)
	}
	entries, _ := l.Suppressions()
	return entries.Mark(list, l.At), nil
}

// parse reads the findings of a file. A line that is none is passed over.
func parse(data []byte) []artifacts.Finding {
	list, _ := ledger.ParseFunc(data, func(line []byte) (artifacts.Finding, error) {
		return artifacts.ParseFinding(line)
	})
	return list
}

// KeepSuppressions copies the origin's file of suppressions when the session is
// opened.
func (l Log) KeepSuppressions() error {
	data, err := File{Origin: l.Origin}.data()
	if err != nil || data == nil {
		return err
	}
	return atomicfile.Write(filepath.Join(l.Dir, state.SuppressionsCopy), data, 0o600)
}

// Suppressions returns the entries that the session goes by: those of its
// beginning, or, once it has ended, those of now. A file that cannot be read
// suppresses nothing, and the warnings say so.
func (l Log) Suppressions() (entries Suppressions, warnings []string) {
	data, err := readIfThere(filepath.Join(l.Dir, state.SuppressionsCopy))
	if l.Ended {
		data, err = File{Origin: l.Origin}.data()
	}
	if err != nil {
		return nil, []string{err.Error()}
	}
	entries, problems, err := ParseSuppressions(data)
	if err != nil {
		return nil, []string{err.Error() + "; nothing is suppressed"}
	}
	for _, p := range problems {
		warnings = append(warnings, p.String())
	}
	return entries, warnings
}

// Import reads what the program left in its artifact folder and keeps it with what
// it reported. The warnings name what could not be read.
func (l Log) Import(folder string) (warnings []string, err error) {
	list, problems, err := Import(folder, l.Roots...)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		warnings = append(warnings, "findings: "+p.String())
	}
	taken, _, err := l.state()
	if err != nil {
		return warnings, err
	}
	for i := range list {
		for n := 2; taken[list[i].ID]; n++ {
			list[i].ID = fmt.Sprintf("imported-%03d", len(list)+n)
		}
		taken[list[i].ID] = true
	}
	lines, err := ledger.Lines(list...)
	if err != nil {
		return warnings, err
	}
	path := filepath.Join(l.Dir, importedName)
	if len(lines) == 0 {
		return warnings, os.RemoveAll(path)
	}
	return warnings, errors.Join(atomicfile.ClearWay(path), atomicfile.Write(path, lines, 0o600))
}

// Inherit appends the findings of an agent's own session, once: a mark beside each
// of its files says that it was taken. Ids follow on those that are there; ids that
// the agent chose stay.
func (l Log) Inherit(agent Log) error {
	for _, name := range []string{state.FindingsFile, importedName} {
		if atomicfile.Exists(agent.mark(name)) {
			continue
		}
		data, err := readIfThere(filepath.Join(agent.Dir, name))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			continue
		}
		// Not imported.jsonl, which is written anew when this session is collected.
		path := filepath.Join(l.Dir, state.FindingsFile)
		have, err := readIfThere(path)
		if err != nil {
			return err
		}
		if data, err = renumber(have, data); err != nil {
			return err
		}
		if err := atomicfile.Write(path, ledger.Extend(have, data), 0o600); err != nil {
			return err
		}
		if err := atomicfile.Write(agent.mark(name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// inherited reports whether the findings were taken by Inherit.
func (l Log) inherited() bool { return atomicfile.Exists(l.mark(state.FindingsFile)) }

func (l Log) mark(name string) string { return filepath.Join(l.Dir, name+".taken") }

func renumber(have, more []byte) ([]byte, error) {
	n := bytes.Count(have, []byte("\n"))
	list := parse(more)
	for i := range list {
		n++
		if f := &list[i]; strings.HasPrefix(f.ID, "finding-") || strings.HasPrefix(f.ID, "imported-") {
			f.ID = fmt.Sprintf("finding-%03d", n)
		}
	}
	return ledger.Lines(list...)
}

// Find returns the finding that ref means, an id or a fingerprint or the beginning
// of one; nil when it is a whole fingerprint of none.
func Find(list []artifacts.Finding, ref string) (*artifacts.Finding, error) {
	var hits []artifacts.Finding
	for _, f := range list {
		if f.ID == ref || f.Fingerprint() == ref {
			return &f, nil
		}
		known := func(h artifacts.Finding) bool { return h.Fingerprint() == f.Fingerprint() }
		if len(ref) >= 4 && strings.HasPrefix(f.Fingerprint(), ref) && !slices.ContainsFunc(hits, known) {
			hits = append(hits, f)
		}
	}
	switch {
	case len(hits) == 1:
		return &hits[0], nil
	case len(hits) > 1:
		return nil, superqode.Errorf(superqode.ErrUsage, "%q begins the fingerprints of %d findings", ref, len(hits))
	case artifacts.IsFingerprint(ref):
		return nil, nil
	}
	err := superqode.Errorf(superqode.ErrNotFound, "no finding has the id or the fingerprint %q", ref)
	return nil, superqode.WithHint(err, "superqode finding list")
}
