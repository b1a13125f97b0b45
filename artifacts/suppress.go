package artifacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

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

// Suppressed says why a finding does not count.
type Suppressed struct {
	Reason string `json:"reason"`
	By     string `json:"by"` // SuppressionsFile, or the tool that reported the finding as suppressed
}

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

// ParseSuppressions reads the content of SuppressionsFile. An entry that is wrong
// is named in the problems, with its number, and the others hold.
func ParseSuppressions(data []byte) (map[string]Suppression, []Problem, error) {
	if len(data) > maxSuppressions {
		return nil, nil, fmt.Errorf("%s: %d bytes, more than %d", SuppressionsFile, len(data), maxSuppressions)
	}
	var list []Suppression
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&list)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("%s: %s", SuppressionsFile, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	all := map[string]Suppression{}
	var problems []Problem
	for i, s := range list {
		if err := s.check(); err != nil {
			problems = append(problems, Problem{SuppressionsFile, fmt.Sprintf("entry %d: %v", i+1, err)})
			continue
		}
		all[s.Fingerprint] = s
	}
	return all, problems, nil
}

const dateOnly = "2006-01-02"

func (s Suppression) check() error {
	switch {
	case !IsFingerprint(s.Fingerprint):
		return fieldErrorf("fingerprint", "%q is not one (16 hex digits)", text.Clip(s.Fingerprint, 80))
	case strings.TrimSpace(s.Reason) == "":
		return fieldErrorf("reason", "missing")
	case s.Expires != "":
		if _, err := time.Parse(dateOnly, s.Expires); err != nil {
			return fieldErrorf("expires", "%q is not a date like 2026-12-31", text.Clip(s.Expires, 80))
		}
	}
	return nil
}

// Holds reports whether the entry counts at the given time.
func (s Suppression) Holds(now time.Time) bool {
	end, err := time.Parse(dateOnly, s.Expires)
	return s.Expires == "" || err == nil && now.Before(end)
}

// YAML returns the entry as it is appended to SuppressionsFile.
func (s Suppression) YAML() []byte {
	var b bytes.Buffer
	for i, kv := range [][2]string{{"fingerprint", s.Fingerprint}, {"reason", s.Reason}, {"title", s.Title}, {"file", s.File}, {"added", s.Added}, {"expires", s.Expires}} {
		if kv[1] == "" {
			continue
		}
		quoted, _ := json.Marshal(kv[1]) // a string of JSON is one of YAML
		fmt.Fprintf(&b, "%s%s: %s\n", map[bool]string{true: "- ", false: "  "}[i == 0], kv[0], quoted)
	}
	return b.Bytes()
}

// Suppress marks the findings that an entry stands for.
func Suppress(list []Finding, entries map[string]Suppression, now time.Time) []Finding {
	out := make([]Finding, len(list))
	for i, f := range list {
		if f.Suppressed != nil && f.Suppressed.By == SuppressionsFile {
			f.Suppressed = nil // by an entry that may be gone
		}
		if s, ok := entries[f.Fingerprint()]; ok && s.Holds(now) {
			f.Suppressed = &Suppressed{Reason: s.Reason, By: SuppressionsFile}
		}
		out[i] = f
	}
	return out
}
