package artifacts

import (
	"encoding/json"
	"fmt"

	"github.com/seed-2d964004/superqode"
)

// Result is what `run --json` prints about a session (docs/formats.md). Every
// key but "applied" is always present in its JSON, and lists are never null.
type Result struct {
	SchemaVersion   int                 `json:"schema_version"` // set by MarshalJSON
	SessionID       superqode.SessionID `json:"session_id"`
	Mode            superqode.Mode      `json:"mode"`
	Origin          string              `json:"origin"` // absolute
	State           superqode.State     `json:"state"`
	ExitCode        int                 `json:"exit_code"`
	TimedOut        bool                `json:"timed_out"`
	StartedAt       Time                `json:"started_at"`
	EndedAt         Time                `json:"ended_at"`
	DurationSeconds float64             `json:"duration_seconds"`
	Base            Base                `json:"base"`
	Final           Final               `json:"final"`
	Changes         []superqode.Change  `json:"changes"`
	Guard           Guard               `json:"guard"`
	Artifacts       []Ref               `json:"artifacts"`
	Revert          Revert              `json:"revert"`
	Workspace       Workspace           `json:"workspace"`
	OriginCheck     OriginCheck         `json:"origin_check"`
	Applied         *Applied            `json:"applied,omitempty"`   // nil: nobody asked for it. It came after OriginCheck
	Commits         *Commits            `json:"commits,omitempty"`   // nil: it made none that are new
	Agents          AgentRuns           `json:"agents,omitempty"`    // of a session of several agents
	Limit           string              `json:"limit,omitempty"`     // the limit that ended the program: memory, pids, cpu_time or disk
	Truncated       bool                `json:"truncated,omitempty"` // not all of the program's output was passed on, or logged
	Case            string              `json:"case_id,omitempty"`
	CaseBytes       string              `json:"case_id_bytes,omitempty"` // base64, where the id is no UTF-8
	Runner          string              `json:"runner_id,omitempty"`     // the agent of a session that has one
	Outputs         *Outputs            `json:"outputs,omitempty"`       // nil: none were asked for
	Idle            bool                `json:"-"`                       // no program ran, so the exit code says nothing
	Found           Summary             `json:"-"`                       // the findings of the report, which holds them
}

// Commits are those that a session made, where its policy lets it commit.
type Commits struct {
	Count  int    `json:"count"`
	Head   string `json:"head"`   // the last one
	Base   string `json:"base"`   // the commit that they stand on, "" for none
	Ref    string `json:"ref"`    // in the project's store
	Series string `json:"series"` // mails for git am, relative to qe-artifacts; "" when no commit changes anything
}

// Text tells of the commits, and how to have them.
func (c *Commits) Text(id superqode.SessionID) string {
	s := fmt.Sprintf("%s, kept: superqode workspace apply --session %s --commits", counted(c.Count, "commit"), id)
	if c.Series != "" {
		s += ", or git am .superqode/qe-artifacts/" + c.Series
	}
	return s
}

// Base is a session's first snapshot.
type Base struct {
	Digest superqode.Digest `json:"digest"`
	Head   string           `json:"head"` // the commit HEAD named, "" without git
	Files  int              `json:"files"`
	Bytes  int64            `json:"bytes"`
}

// Final is a session's last snapshot.
type Final struct {
	Digest superqode.Digest `json:"digest"`
}

// Guard says which layers were found active, by probing, and what they refused.
type Guard struct {
	Layers  Layers    `json:"layers"`
	Blocked []Blocked `json:"blocked"`
}

// Layers holds the state of each layer: "active", "off" or "unavailable: <why>".
type Layers struct {
	Shim   string `json:"shim"`
	Hooks  string `json:"hooks"`
	Kernel string `json:"kernel"`
}

// Blocked is one operation that the guard refused.
type Blocked struct {
	Operation string            `json:"operation"` // commit, reset, …
	Command   []string          `json:"command"`
	Layer     string            `json:"layer"` // shim, hooks or kernel
	At        Time              `json:"at"`
	Agent     superqode.AgentID `json:"agent_id"`
}

// Revert says how far bringing everything back was checked. The zero value says
// that nothing was.
type Revert struct {
	Verified    bool             `json:"verified"`
	Digest      superqode.Digest `json:"digest"`
	Method      string           `json:"method"`      // stat or full; none: what the program did in place stays; "" when nothing was checked
	Differences []string         `json:"differences"` // what is still not as it was
}

// Workspace says where the program worked and whether that is still there.
type Workspace struct {
	Path      string `json:"path"` // absolute
	Preserved bool   `json:"preserved"`
}

// OriginCheck compares the origin after the session with the origin before.
type OriginCheck struct {
	Unchanged   bool     `json:"unchanged"`
	Differences []string `json:"differences"`
}

type resultJSON Result

// MarshalJSON writes the shape of docs/formats.md. Paths that are not UTF-8
// are made printable; changes and artifacts carry the exact bytes beside them.
func (r Result) MarshalJSON() ([]byte, error) {
	r.SchemaVersion = 1
	r.Changes, r.Artifacts = notNull(r.Changes), notNull(r.Artifacts)
	r.Guard, r.Revert, r.OriginCheck = r.Guard.filled(), r.Revert.filled(), r.OriginCheck.filled()
	if len(r.Agents) > 0 {
		r.Agents = r.Agents.filled()
	}
	return json.Marshal(resultJSON(r))
}

func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (g Guard) filled() Guard {
	blocked := make([]Blocked, len(g.Blocked)) // a copy: the caller's is not ours to change
	for i, b := range g.Blocked {
		b.Command = notNull(b.Command)
		blocked[i] = b
	}
	g.Blocked = blocked
	return g
}

// AgentRuns are the agents of one session in the order given.
type AgentRuns []AgentRun

func (list AgentRuns) filled() AgentRuns {
	out := make(AgentRuns, len(list))
	for i, a := range list {
		a.Changes, a.Conflicts = notNull(a.Changes), notNull(a.Conflicts)
		out[i] = a
	}
	return out
}

func (r Revert) filled() Revert {
	r.Differences = notNull(r.Differences)
	return r
}

func (c OriginCheck) filled() OriginCheck {
	c.Differences = notNull(c.Differences)
	return c
}
