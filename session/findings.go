package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// findings are kept one JSON object a line in the session's folder and turned
// into the report's list at its end. Those that were read from files that the
// program left stand in a file of their own, which is written anew each time the
// session is collected.
func (s *Session) findingsPath() string { return filepath.Join(s.Folder, findingsName) }
func (s *Session) importedPath() string { return filepath.Join(s.Folder, importedName) }

const (
	findingsName = "findings.jsonl"
	importedName = "imported.jsonl"
)

// renumberFindings gives the findings of an agent's own session ids that follow
// on those that are there; ids that the agent chose stay.
func renumberFindings(have, more []byte) ([]byte, error) {
	n := bytes.Count(have, []byte("\n"))
	list := parseFindings(more)
	for i := range list {
		n++
		if f := &list[i]; strings.HasPrefix(f.ID, "finding-") || strings.HasPrefix(f.ID, "imported-") {
			f.ID = fmt.Sprintf("finding-%03d", n)
		}
	}
	return ledger.Lines(list...)
}

// parseFindings reads the findings of a file. A line that is none is passed over.
func parseFindings(data []byte) []artifacts.Finding {
	list, _ := ledger.ParseFunc(data, func(line []byte) (artifacts.Finding, error) { return artifacts.ParseFinding(line) })
	return list
}

// maxFindingsFile bounds findings.jsonl: a program must not fill the disk.
const maxFindingsFile = 64 << 20

// AddedFinding is what became of one finding.
type AddedFinding struct {
	ID      string
	Ignored []string // fields that are not known
	Err     error    // a *artifacts.FieldError, or about the JSON; nil when it was added
}

// AddFinding checks a finding, gives it an id and keeps it.
func (s *Session) AddFinding(ctx context.Context, raw json.RawMessage) (AddedFinding, error) {
	list, err := s.AddFindings(ctx, []json.RawMessage{raw})
	if err != nil {
		return AddedFinding{}, err
	}
	return list[0], list[0].Err
}

// AddFindings adds several findings with one write; those that are wrong are told
// in the answer, in the order given, and the others are kept. The report of a
// session that has ended is written anew.
func (s *Session) AddFindings(ctx context.Context, raws []json.RawMessage) (list []AddedFinding, err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "findings.lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	ended := s.Rec.State == superqode.StateDone
	used, size, err := s.usedIDs(ended)
	if err != nil {
		return nil, err
	}
	var added []artifacts.Finding
	var lines []byte
	list = make([]AddedFinding, len(raws))
	for i, raw := range raws {
		f, err := s.newFinding(raw, used)
		if err != nil {
			list[i].Err = err
			continue
		}
		line, err := ledger.Lines(f)
		if err != nil {
			return nil, err
		}
		if len(used) >= artifacts.MaxFindings || size+len(lines)+len(line) > maxFindingsFile {
			list[i].Err = superqode.Errorf(superqode.ErrUsage, "the session has %d findings, and takes no more", len(used))
			continue
		}
		used[f.ID] = true
		list[i].ID, list[i].Ignored = f.ID, f.Ignored
		lines, added = append(lines, line...), append(added, f)
	}
	if len(added) == 0 {
		return list, nil
	}
	if !ended {
		if err := s.appendFindings(lines); err != nil || s.Rec.State != superqode.StatePreserved {
			return list, err
		}
	}
	err = s.reportAgain(ctx, func(rep artifacts.Report) artifacts.Report {
		return rep.WithFindings(append(rep.AllFindings(), added...))
	})
	if !ended && errors.Is(err, superqode.ErrNotFound) { // preserved before it had a report
		err = nil
	}
	return list, err
}

// newFinding checks one finding and completes it.
func (s *Session) newFinding(raw json.RawMessage, used map[string]bool) (artifacts.Finding, error) {
	f, err := artifacts.ParseFinding(raw, string(s.Rec.Workspace), string(s.Rec.Origin))
	if err != nil {
		return f, err
	}
	f.Suppressed, f.Source = nil, "" // who finds has no say in what counts
	if f.ID != "" && used[f.ID] {
		return f, &artifacts.FieldError{Field: "id", Reason: fmt.Sprintf("%q is taken", f.ID)}
	}
	for n := len(used) + 1; f.ID == "" || used[f.ID]; n++ {
		f.ID = fmt.Sprintf("finding-%03d", n)
	}
	if f.FoundBy == "" {
		f.FoundBy = s.Actor().String()
	}
	return f, nil
}

// usedIDs returns the ids of the findings that there are, and the size of their
// file. Only the ids are read: a session may have thousands.
func (s *Session) usedIDs(ended bool) (map[string]bool, int, error) {
	used := map[string]bool{}
	if ended {
		rep, err := s.readReport(s.shownReportPath())
		for _, f := range rep.AllFindings() {
			used[f.ID] = true
		}
		return used, 0, err
	}
	data, err := atomicfile.Read(s.findingsPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, err
	}
	ids, _ := ledger.Parse[struct {
		ID string `json:"id"`
	}](data)
	for _, f := range ids {
		if f.ID != "" {
			used[f.ID] = true
		}
	}
	return used, len(data), nil
}

func (s *Session) appendFindings(lines []byte) error {
	if s.seal != nil {
		s.seal.added = append(s.seal.added, lines)
	}
	return ledger.AppendLines(s.findingsPath(), lines, true)
}

// Findings returns the session's findings in the order in which they came, those
// that do not count among them, with secrets masked.
func (s *Session) Findings() ([]artifacts.Finding, error) {
	if s.Rec.State == superqode.StateDone {
		rep, err := s.readReport(s.shownReportPath())
		if !errors.Is(err, superqode.ErrNotFound) {
			return rep.AllFindings(), err
		}
	}
	list, err := s.rawFindings()
	return maskedFindings(list, s.redactor()), err
}

// rawFindings returns what was found, as it was told. A line that is no finding
// (cut by a crash) is passed over.
func (s *Session) rawFindings() ([]artifacts.Finding, error) {
	list := []artifacts.Finding{}
	for _, path := range []string{s.findingsPath(), s.importedPath()} {
		data, err := atomicfile.Read(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		list = append(list, parseFindings(data)...)
	}
	entries, _, err := s.suppressions()
	return artifacts.Suppress(list, entries, s.Now()), err
}

// importFindings reads what the program left in its artifact folder and keeps it
// beside the findings that it told.
func (s *Session) importFindings() (warnings []string, err error) {
	list, problems, err := artifacts.ImportFindings(artifacts.ImportOptions{
		Staging: s.ArtifactDir(), Roots: []string{string(s.Rec.Workspace), string(s.Rec.Origin)},
	})
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		warnings = append(warnings, "findings: "+p.String())
	}
	used, _, err := s.usedIDs(false)
	if err != nil {
		return warnings, err
	}
	for i := range list {
		for n := 2; used[list[i].ID]; n++ {
			list[i].ID = fmt.Sprintf("imported-%03d", len(list)+n)
		}
		used[list[i].ID] = true
	}
	lines, err := ledger.Lines(list...)
	if err != nil {
		return warnings, err
	}
	if err := clearWay(s.importedPath()); err != nil {
		return warnings, err
	}
	if len(lines) == 0 {
		if err := os.Remove(s.importedPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return warnings, err
		}
		return warnings, nil
	}
	return warnings, atomicfile.Write(s.importedPath(), lines, 0o600)
}

// findingHandlers are what a program in the session may ask for.
func (s *Session) findingHandlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	m["finding.add"] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		a, err := s.AddFinding(ctx, args)
		if field, ok := errors.AsType[*artifacts.FieldError](err); ok {
			err = superqode.Errorf(superqode.ErrUsage, "finding: %s", field)
		}
		return FindingReply{ID: a.ID, Ignored: a.Ignored}, err
	}
	m[opFindings] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		var raws []json.RawMessage
		if err := json.Unmarshal(args, &raws); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "not a list of findings: %v", err)
		}
		list, err := s.AddFindings(ctx, raws)
		replies := make([]FindingReply, len(list))
		for i, a := range list {
			replies[i] = FindingReply{ID: a.ID, Ignored: a.Ignored}
			if a.Err != nil {
				replies[i].Error = a.Err.Error()
			}
		}
		return replies, err
	}
	return m
}

// opFindings adds several findings at once.
const opFindings = "findings.add"

// FindingReply is the supervisor's answer about one finding.
type FindingReply struct {
	ID      string   `json:"id"`
	Ignored []string `json:"ignored,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// SendFindings hands findings to the supervisor of the session that env names.
func SendFindings(ctx context.Context, env []string, raws []json.RawMessage) ([]AddedFinding, error) {
	var replies []FindingReply
	if err := supervisor.Call(ctx, env, opFindings, raws, &replies); err != nil {
		return nil, err
	}
	list := make([]AddedFinding, len(replies))
	for i, r := range replies {
		list[i] = AddedFinding{ID: r.ID, Ignored: r.Ignored}
		if r.Error != "" {
			list[i].Err = superqode.Errorf(superqode.ErrUsage, "%s", r.Error)
		}
	}
	return list, nil
}
