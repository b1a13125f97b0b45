package guard

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/ledger"
)

// LayerName names one of the guard's layers.
type LayerName string

// The layers.
const (
	LayerShim   LayerName = "shim"
	LayerHooks  LayerName = "hooks"
	LayerKernel LayerName = "kernel"
)

// Attempt is one git operation that was refused, as it stands in guard.jsonl.
type Attempt struct {
	SchemaVersion int                `json:"schema_version"`
	Operation     Operation          `json:"operation"`
	Command       []string           `json:"command"` // without secrets
	Layer         LayerName          `json:"layer"`
	At            time.Time          `json:"at"`
	Dir           superqode.HostPath `json:"dir"`
	Agent         superqode.AgentID  `json:"agent_id"`
	// Process is the git process that was refused; the shim has the number that git
	// would have had. Two layers that refuse the same attempt give the same one.
	Process int `json:"process"`
	// Allowed marks an attempt that a person let through.
	Allowed bool `json:"allowed,omitempty"`
	// Path and Count are set where the kernel refused to write: seen in the output.
	Path  string `json:"path,omitempty"`
	Count int    `json:"count,omitempty"`
}

// maxShownArgs bounds what of a command is kept: enough to know it by.
const (
	maxShownArgs = 64
	maxShownArg  = 1024
)

// Tidy returns the attempt as it may be kept and shown: without secrets, and cut
// where it is very long.
func (a Attempt) Tidy() Attempt {
	a.SchemaVersion = sessionStateVersion
	words := a.Command[:min(len(a.Command), maxShownArgs)]
	out := make([]string, 0, len(words)+1)
	for _, w := range words {
		w = WithoutSecrets(w)
		if len(w) > maxShownArg {
			w = w[:maxShownArg] + "…"
		}
		out = append(out, strings.ToValidUTF8(w, "\uFFFD"))
	}
	if len(a.Command) > maxShownArgs {
		out = append(out, "…")
	}
	a.Command = out
	return a
}

// A secret is a pattern and what is left of what it matches.
type secret struct {
	pattern *regexp.Regexp
	left    string
}

// secrets are compiled when the first denial is reported; most calls of a
// helper tell of none.
var secrets = sync.OnceValue(func() []secret {
	return []secret{
		// The user part of an address.
		{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#]*@`), "${1}…@"},
		// A header, as in -c http.extraHeader.
		{regexp.MustCompile(`(?i)((?:authorization|private-token|cookie|x-[a-z-]*token)\s*[:=]\s*)\S.*`), "${1}…"},
		// A parameter of an address, or an option.
		{regexp.MustCompile(`(?i)((?:[?&]|^--?)(?:access_token|token|private[_-]token|api[_-]?key|password|passwd|secret|sig|signature)=)[^&\s]+`), "${1}…"},
		// What well-known services make their tokens look like.
		{regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{12,})`), "…"},
	}
})

// WithoutSecrets returns a word of a command line with what lets somebody in
// taken out: user and password of an address, tokens, headers.
func WithoutSecrets(word string) string {
	if !strings.ContainsAny(word, "@:=_-") {
		return word
	}
	for _, s := range secrets() {
		word = s.pattern.ReplaceAllString(word, s.left)
	}
	return word
}

// Append writes the attempt to the session's log itself.
func (a Attempt) Append(path string) error {
	return ledger.Append(path, a.Tidy())
}

// ParseAttempts reads a log of attempts. Lines that are no attempt (written by
// somebody else) are passed over and counted.
func ParseAttempts(data []byte) (list []Attempt, bad int) {
	list, others := ledger.ParseFunc(data, func(line []byte) (a Attempt, err error) {
		if err = json.Unmarshal(line, &a); err == nil && (a.SchemaVersion != sessionStateVersion || a.Operation == "") {
			err = errors.New("not an attempt")
		}
		return a, err
	})
	return list, len(others)
}
