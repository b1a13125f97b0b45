package findings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// SuppressionsFile is the file in an origin's top folder that names the findings
// that do not count. It stands beside superqode.yaml and is meant to be committed,
// so that a team decides once:
//
//   - fingerprint: 0123456789abcdef
//     reason: the password is that of the example
//     title: Password in the source
//     added: 2026-11-21
//
// Only fingerprint and reason are needed. With expires, a date, an entry stops
// counting on that day.
const SuppressionsFile = "superqode.suppressions.yaml"

// Suppression is one entry of SuppressionsFile.
type Suppression struct {
	Fingerprint string `yaml:"fingerprint"`
	Reason      string `yaml:"reason"`
	Title       string `yaml:"title"`
	File        string `yaml:"file"`
	Added       string `yaml:"added"`
	Expires     string `yaml:"expires"`
}

// maxSuppressions bounds the file, in bytes.
const maxSuppressions = 4 << 20

// Suppressions are the entries of SuppressionsFile by their fingerprints.
type Suppressions map[string]Suppression

// ParseSuppressions reads the content of SuppressionsFile. The problems name each
// entry that is wrong by its number; the others hold.
func ParseSuppressions(data []byte) (Suppressions, []artifacts.Problem, error) {
	if len(data) > maxSuppressions {
		return nil, nil, fmt.Errorf("%s: %s, more than %s", SuppressionsFile, text.Size(int64(len(data))), text.Size(maxSuppressions))
	}
	var list []Suppression
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&list)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("%s: %s", SuppressionsFile, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	all := Suppressions{}
	var problems []artifacts.Problem
	for i, s := range list {
		if err := s.check(); err != nil {
			why := fmt.Sprintf("entry %d: %v", i+1, err)
			problems = append(problems, artifacts.Problem{Path: SuppressionsFile, Reason: why})
			continue
		}
		all[s.Fingerprint] = s
	}
	return all, problems, nil
}

func (s Suppression) check() error {
	wrong := func(field, format string, args ...any) error {
		return &artifacts.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	_, err := time.Parse(time.DateOnly, s.Expires)
	switch {
	case !artifacts.IsFingerprint(s.Fingerprint):
		return wrong("fingerprint", "%q is not one (16 hex digits)", text.Clip(s.Fingerprint, 80))
	case strings.TrimSpace(s.Reason) == "":
		return wrong("reason", "missing")
	case s.Expires != "" && err != nil:
		return wrong("expires", "%q is not a date like 2026-12-31", text.Clip(s.Expires, 80))
	}
	return nil
}

// Holds reports whether the entry counts at the given time.
func (s Suppression) Holds(now time.Time) bool {
	end, err := time.Parse(time.DateOnly, s.Expires)
	return s.Expires == "" || err == nil && now.Before(end)
}

// YAML returns the entry as it is appended to SuppressionsFile.
func (s Suppression) YAML() []byte {
	var b bytes.Buffer
	for i, kv := range [][2]string{
		{"fingerprint", s.Fingerprint}, {"reason", s.Reason}, {"title", s.Title}, {"file", s.File}, {"added", s.Added},
		{"expires", s.Expires},
	} {
		if kv[1] == "" {
			continue
		}
		quoted, _ := json.Marshal(kv[1]) // a string of JSON is one of YAML
		fmt.Fprintf(&b, "%s%s: %s\n", map[bool]string{true: "- ", false: "  "}[i == 0], kv[0], quoted)
	}
	return b.Bytes()
}

// Mark returns the findings, those marked that an entry stands for at the given
// time, and the marks of entries that are gone taken off.
func (all Suppressions) Mark(list []artifacts.Finding, now time.Time) []artifacts.Finding {
	out := make([]artifacts.Finding, len(list))
	for i, f := range list {
		if f.Suppressed != nil && f.Suppressed.By == SuppressionsFile {
			f.Suppressed = nil // by an entry that may be gone
		}
		if s, ok := all[f.Fingerprint()]; ok && s.Holds(now) {
			f.Suppressed = &artifacts.Suppressed{Reason: s.Reason, By: SuppressionsFile}
		}
		out[i] = f
	}
	return out
}

// File is an origin's SuppressionsFile. What a person wrote there stays, comments
// too, and several processes may edit it at once.
type File struct {
	Origin string    // absolute
	Locks  string    // private folder for its lock, made where it is missing
	Now    time.Time // zero: the present
}

// data returns the content, nil where there is no file. A link is followed, as for
// other files that the user keeps in the origin.
func (f File) data() ([]byte, error) {
	data, err := atomicfile.ReadThrough(filepath.Join(f.Origin, SuppressionsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Enter appends an entry, in the place of older ones with its fingerprint, and
// returns it as it stands there.
func (f File) Enter(ctx context.Context, entry Suppression) (Suppression, error) {
	if entry.Added == "" {
		entry.Added = f.now().UTC().Format(time.DateOnly)
	}
	return entry, f.edit(ctx, func(data []byte, entries Suppressions) ([]byte, error) {
		old, there := entries[entry.Fingerprint]
		if there && old.Reason == entry.Reason && old.Expires == entry.Expires {
			return data, nil
		}
		if there {
			var err error
			if data, err = withoutSuppression(data, entry.Fingerprint); err != nil {
				return nil, err
			}
		}
		return withSuppression(data, entry)
	})
}

// Remove takes out the entry whose fingerprint is, or begins with, ref. The error
// wraps superqode.ErrNotFound when there is none.
func (f File) Remove(ctx context.Context, ref string) (gone Suppression, err error) {
	return gone, f.edit(ctx, func(data []byte, entries Suppressions) ([]byte, error) {
		var hits []string
		for print := range entries {
			if print == ref || len(ref) >= 4 && strings.HasPrefix(print, ref) {
				hits = append(hits, print)
			}
		}
		switch len(hits) {
		case 0:
			err := superqode.Errorf(superqode.ErrNotFound, "%s has no entry for %q", SuppressionsFile, ref)
			return nil, superqode.WithHint(err, "superqode finding list")
		case 1:
			gone = entries[hits[0]]
			return withoutSuppression(data, hits[0])
		}
		return nil, superqode.Errorf(superqode.ErrUsage, "%q begins the fingerprints of %d entries of %s",
			ref, len(hits), SuppressionsFile)
	})
}

func (f File) now() time.Time {
	if f.Now.IsZero() {
		return time.Now()
	}
	return f.Now
}

// edit rewrites the file under a lock, unless change leaves it as it is.
func (f File) edit(ctx context.Context, change func([]byte, Suppressions) ([]byte, error)) (err error) {
	if err := os.MkdirAll(f.Locks, 0o700); err != nil { // cleanup may have taken it
		return err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(f.Locks, "suppressions.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	data, err := f.data()
	if err != nil {
		return err
	}
	entries, _, err := ParseSuppressions(data)
	if err != nil {
		return superqode.Errorf(superqode.ErrUsage, "%v", err)
	}
	changed, err := change(data, entries)
	if err != nil || string(changed) == string(data) {
		return err
	}
	path := filepath.Join(f.Origin, SuppressionsFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return atomicfile.Write(path, changed, 0o644)
}

// withSuppression returns the content of SuppressionsFile with an entry more.
// What stands there stays, comments too. The error wraps superqode.ErrUsage when
// the content is no list that can be added to.
func withSuppression(data []byte, entry Suppression) ([]byte, error) {
	out := bytes.Clone(data)
	if len(bytes.TrimSpace(out)) == 0 {
		out = []byte("# Findings that were looked at and do not count: superqode finding suppress\n")
	}
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	out = append(out, entry.YAML()...)
	if _, _, err := ParseSuppressions(out); err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a list that can be added to: %v",
			SuppressionsFile, err)
	}
	return out, nil
}

// withoutSuppression returns the content of SuppressionsFile without the entries
// of a fingerprint. Comments stay, and so do all other entries: where that cannot
// be done, because several stand in one line, the error wraps superqode.ErrUsage.
func withoutSuppression(data []byte, fingerprint string) ([]byte, error) {
	before, _, err := ParseSuppressions(data)
	if err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
	}
	drop, err := entryLines(data, fingerprint)
	if err != nil {
		return nil, err
	}
	var out []byte
	n := 0
	for line := range bytes.Lines(data) {
		if n++; !drop[n] {
			out = append(out, line...)
		}
	}
	after, _, err := ParseSuppressions(out)
	delete(before, fingerprint)
	if err != nil || !maps.Equal(before, after) {
		return nil, superqode.Errorf(superqode.ErrUsage, "the entry of %s cannot be taken out of %s alone; take it out by hand",
			fingerprint, SuppressionsFile)
	}
	return out, nil
}

// entryLines returns the lines, from 1, on which the entries of a fingerprint
// stand: from an entry's dash to the last line before the next entry that is
// neither empty nor a comment.
func entryLines(data []byte, fingerprint string) (map[int]bool, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s: %v", SuppressionsFile, err)
	}
	lines := bytes.Split(data, []byte("\n"))
	drop := map[int]bool{}
	for _, doc := range file.Docs {
		list, ok := doc.Body.(*ast.SequenceNode)
		if !ok || list.IsFlowStyle {
			continue
		}
		for i, entry := range list.Entries {
			if !isEntryOf(entry.Value, fingerprint) {
				continue
			}
			end := len(lines)
			if i+1 < len(list.Entries) {
				end = list.Entries[i+1].Start.Position.Line - 1
			}
			for text := true; end > entry.Start.Position.Line && text; {
				line := bytes.TrimSpace(lines[end-1])
				if text = len(line) == 0 || line[0] == '#'; text {
					end--
				}
			}
			for n := entry.Start.Position.Line; n <= end; n++ {
				drop[n] = true
			}
		}
	}
	return drop, nil
}

func isEntryOf(n ast.Node, fingerprint string) bool {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return false
	}
	for _, kv := range m.Values {
		if v, ok := kv.Value.(*ast.StringNode); ok && kv.Key.String() == "fingerprint" && v.Value == fingerprint {
			return true
		}
	}
	return false
}
