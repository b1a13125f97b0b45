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
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// findings are kept one JSON object a line in the session's folder and turned
// into the report's list at its end.
func (s *Session) findingsPath() string { return filepath.Join(s.dir, findingsName) }

const findingsName = "findings.jsonl"

// renumberFindings gives the findings of an agent's own session ids that follow
// on those that are there; ids that the agent chose stay.
func renumberFindings(have, more []byte) ([]byte, error) {
	n := bytes.Count(have, []byte("\n"))
	var out []byte
	for line := range bytes.Lines(more) {
		f, err := artifacts.ParseFinding(line)
		if err != nil {
			continue // cut by a crash
		}
		n++
		if strings.HasPrefix(f.ID, "finding-") {
			f.ID = fmt.Sprintf("finding-%03d", n)
		}
		raw, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		out = append(append(out, raw...), '\n')
	}
	return out, nil
}

// AddFinding checks a finding, gives it an id and keeps it. A session that has
// ended takes none: the error wraps ErrNotFound.
func (s *Session) AddFinding(ctx context.Context, raw json.RawMessage) (id string, err error) {
	if s.rec.State == superqode.StateDone { // its report is written, and no later one would hold the finding
		return "", s.ended()
	}
	f, err := artifacts.ParseFinding(raw)
	if err != nil {
		return "", err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.dir, "findings.lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	all, err := s.Findings()
	if err != nil {
		return "", err
	}
	if f.ID == "" {
		f.ID = fmt.Sprintf("finding-%03d", len(all)+1)
	}
	if f.FoundBy == "" {
		f.FoundBy = s.actor().String()
	}
	line, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	line = append(line, '\n')
	file, err := atomicfile.Append(s.findingsPath(), 0o600)
	if err != nil {
		return "", err
	}
	_, werr := file.Write(line)
	if s.seal != nil {
		s.seal.added = append(s.seal.added, line)
	}
	return f.ID, errors.Join(werr, file.Sync(), file.Close())
}

// Findings returns the session's findings in the order in which they came. A
// line that is no finding (cut by a crash) is passed over.
func (s *Session) Findings() ([]artifacts.Finding, error) {
	data, err := atomicfile.Read(s.findingsPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	list := []artifacts.Finding{}
	for line := range bytes.Lines(data) {
		if f, err := artifacts.ParseFinding(line); err == nil {
			list = append(list, f)
		}
	}
	return list, nil
}
