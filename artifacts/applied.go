package artifacts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Applied tells what became of a session's changes in the origin. Either all of
// them are in Applied and Already, or there are Conflicts, or Why says what kept
// everything back; then nothing was changed.
type Applied struct {
	Checked   bool            `json:"checked"`   // decided only; nothing was changed
	Applied   []AppliedPath   `json:"applied"`   // brought in, or with Checked what would be
	Already   []AppliedPath   `json:"already"`   // was in the origin before
	Conflicts []ApplyConflict `json:"conflicts"` // why nothing was applied
	LeftOut   []string        `json:"left_out"`  // what no patch holds, one line each
	Why       string          `json:"why"`       // nothing was tried: why; else ""
	Salvage   string          `json:"salvage"`   // holds what was overwritten and deleted; "" for nothing
}

// MarshalJSON keeps lists from being null.
func (a Applied) MarshalJSON() ([]byte, error) {
	type plain Applied
	a.Applied, a.Already, a.Conflicts, a.LeftOut = notNull(a.Applied), notNull(a.Already), notNull(a.Conflicts), notNull(a.LeftOut)
	return json.Marshal(plain(a))
}

// AppliedPath is one path of an apply. Merged says that the contents are neither
// the session's nor those that the origin had.
type AppliedPath struct {
	superqode.Change
	Merged bool
}

// MarshalJSON writes the keys of a Change, and "merged".
func (p AppliedPath) MarshalJSON() ([]byte, error) {
	change, err := json.Marshal(p.Change)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(change, []byte("}")), `,"merged":%t}`, p.Merged), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *AppliedPath) UnmarshalJSON(b []byte) error {
	var j struct {
		Merged bool `json:"merged"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	p.Merged = j.Merged
	return json.Unmarshal(b, &p.Change)
}

// ApplyConflict is one path that can not be brought into the origin.
type ApplyConflict struct {
	Path    superqode.RelPath
	Kind    string // content, binary, add/add, modify/delete, …
	Message string // as git prints it
}

type applyConflictJSON struct {
	Path      string `json:"path"`
	PathBytes []byte `json:"path_bytes,omitempty"`
	Kind      string `json:"kind"`
	Message   string `json:"message"`
}

// MarshalJSON keeps every byte of the path.
func (c ApplyConflict) MarshalJSON() ([]byte, error) {
	j := applyConflictJSON{Kind: c.Kind, Message: strings.ToValidUTF8(c.Message, "\uFFFD")}
	var exact string
	if j.Path, exact = superqode.JSONPath(c.Path.String()); exact != "" {
		j.PathBytes = []byte(c.Path.String())
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *ApplyConflict) UnmarshalJSON(b []byte) (err error) {
	var j applyConflictJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if len(j.PathBytes) > 0 {
		j.Path = string(j.PathBytes)
	}
	c.Kind, c.Message = j.Kind, j.Message
	c.Path, err = superqode.ParseRelPath(j.Path)
	return err
}

// Done reports whether the origin has the changes. A nil Applied has none.
func (a *Applied) Done() bool {
	return a != nil && !a.Checked && a.Why == "" && len(a.Conflicts) == 0
}

// Text says in one line what became of it.
func (a *Applied) Text() string {
	switch {
	case a.Why != "":
		return "nothing: " + a.Why
	case len(a.Conflicts) > 0:
		return fmt.Sprintf("nothing: %s", counted(len(a.Conflicts), "conflict"))
	case len(a.Applied)+len(a.Already) == 0:
		return "nothing: nothing was changed"
	}
	s := counted(len(a.Applied), "path")
	if n := len(a.Already); n > 0 {
		s += fmt.Sprintf(", %d more had that already", n)
	}
	if a.Salvage != "" {
		s += "; what was overwritten is in salvage " + a.Salvage
	}
	return s
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AppliedCommits tells what became of a session's commits in the origin: all of them
// are on its branch, or there are Conflicts and nothing was done.
type AppliedCommits struct {
	Checked   bool            `json:"checked"` // only decided
	Branch    string          `json:"branch"`  // "" for a detached HEAD
	Head      string          `json:"head"`    // what HEAD is then
	Commits   []AppliedCommit `json:"commits"` // the oldest first; none when the origin had them
	Conflicts []ApplyConflict `json:"conflicts"`
	Salvage   string          `json:"salvage"` // of what was overwritten and had not been committed
}

// AppliedCommit is one commit. From is the session's own, the same one where it could
// be taken as it is.
type AppliedCommit struct {
	Commit  string `json:"commit"`
	From    string `json:"from"`
	Subject string `json:"subject"`
}

// MarshalJSON writes empty lists as such.
func (a AppliedCommits) MarshalJSON() ([]byte, error) {
	type plain AppliedCommits
	a.Commits, a.Conflicts = notNull(a.Commits), notNull(a.Conflicts)
	return json.Marshal(plain(a))
}
