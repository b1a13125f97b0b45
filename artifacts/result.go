package artifacts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
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
	Setup           []SetupStep         `json:"setup"`
	Error           *Failure            `json:"error"` // nil: superqode could do everything
	// paths of the workspace that git ignores and that came along; a folder for several of its files
	Included  []superqode.HostPath `json:"included_ignored"`
	Applied   *Applied             `json:"applied,omitempty"`   // nil: nobody asked for it. It came after OriginCheck
	Commits   *Commits             `json:"commits,omitempty"`   // nil: it made none that are new
	Agents    AgentRuns            `json:"agents,omitempty"`    // of a session of several agents
	Limit     string               `json:"limit,omitempty"`     // the limit that ended the program: memory, pids, cpu_time or disk
	Truncated bool                 `json:"truncated,omitempty"` // not all of the program's output was passed on, or logged
	Case      string               `json:"case_id,omitempty"`
	CaseBytes string               `json:"case_id_bytes,omitempty"` // base64, where the id is no UTF-8
	Runner    string               `json:"runner_id,omitempty"`     // the agent of a session that has one
	Outputs   *Outputs             `json:"outputs,omitempty"`       // nil: none were asked for
	Idle      bool                 `json:"-"`                       // no program ran, so the exit code says nothing
	Found     Summary              `json:"-"`                       // the findings of the report, which holds them
}

// Failure is what superqode itself could not do.
type Failure struct {
	Kind      string   `json:"kind"` // as error.code of a document without a session: conflict, setup, …
	Message   string   `json:"message"`
	Hint      string   `json:"hint"`
	RetrySafe bool     `json:"retry_safe"` // the origin is as it was, so that the same command can be run again
	Paths     []string `json:"paths"`
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
	s := fmt.Sprintf("%s, kept: superqode workspace apply --session %s --commits", text.Plural(c.Count, "commit"), id)
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
	Policy string `json:"policy"` // qe or contained
	// AllowedBy says why git operations went through: policy, or allow-git-operations.
	AllowedBy string    `json:"allowed_by"`
	Layers    Layers    `json:"layers"`
	Kernel    Kernel    `json:"kernel"`
	Blocked   []Blocked `json:"blocked"`
	// KernelRefusals are the paths that the kernel layer kept the program from writing,
	// as far as the recorded output shows it; the most often refused first.
	KernelRefusals []KernelRefusal `json:"kernel_refusals"`
}

// KernelRefusal is a path, and how many lines of the output say that writing it was
// refused.
type KernelRefusal struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
}

// Layers holds the state of each layer: "active", "off" or "unavailable: <why>".
type Layers struct {
	Shim   string `json:"shim"`
	Hooks  string `json:"hooks"`
	Kernel string `json:"kernel"`
}

// Kernel says what the kernel layer is made of.
type Kernel struct {
	Layer   string   `json:"layer"`   // mounts, landlock or none
	Missing []string `json:"missing"` // sentences on what it does not cover, or closes although it should be open
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
	Method      string           `json:"method"`             // stat or full; none: what the program did in place stays; "" when nothing was checked
	Differences []string         `json:"differences"`        // what is still not as it was
	Salvages    []string         `json:"salvages,omitempty"` // ids of what was saved before it was overwritten or removed in the origin
}

// Workspace says where the program worked and whether that is still there.
type Workspace struct {
	Path      string `json:"path"`             // absolute
	Inside    string `json:"inside,omitempty"` // where the programs saw it, when that is not Path
	Preserved bool   `json:"preserved"`
}

// OriginCheck compares the origin after the session with the origin before.
type OriginCheck struct {
	Unchanged   bool     `json:"unchanged"` // as far as it is covered
	Differences []string `json:"differences"`
	Method      string   `json:"method"`      // kernel+stat, stat or full; "" when nothing was checked
	NotCovered  []string `json:"not_covered"` // what the check cannot speak for: what it is, and why
}

type resultJSON Result

// MarshalJSON writes the shape of docs/formats.md. Paths that are not UTF-8
// are made printable; changes and artifacts carry the exact bytes beside them.
func (r Result) MarshalJSON() ([]byte, error) {
	r.SchemaVersion = 1
	r.Changes, r.Artifacts, r.Setup = notNull(r.Changes), notNull(r.Artifacts), notNull(r.Setup)
	r.Included = notNull(r.Included)
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
	g.Blocked, g.KernelRefusals, g.Kernel.Missing = blocked, notNull(g.KernelRefusals), notNull(g.Kernel.Missing)
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
	c.Differences, c.NotCovered = notNull(c.Differences), notNull(c.NotCovered)
	return c
}

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
	a.Applied, a.Already = notNull(a.Applied), notNull(a.Already)
	a.Conflicts, a.LeftOut = notNull(a.Conflicts), notNull(a.LeftOut)
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

// ApplyConflict is one path that cannot be brought into the origin.
type ApplyConflict struct {
	Path    superqode.RelPath
	Kind    string // content, binary, add/add, modify/delete, …
	Message string // as git prints it
}

type applyConflictJSON struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Kind      string `json:"kind"`
	Message   string `json:"message"`
}

// MarshalJSON keeps every byte of the path.
func (c ApplyConflict) MarshalJSON() ([]byte, error) {
	j := applyConflictJSON{Kind: c.Kind, Message: strings.ToValidUTF8(c.Message, "\uFFFD")}
	j.Path, j.PathBytes = superqode.JSONPath(c.Path.String())
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *ApplyConflict) UnmarshalJSON(b []byte) (err error) {
	var j applyConflictJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	c.Kind, c.Message = j.Kind, j.Message
	c.Path, err = pathFromJSON(j.Path, j.PathBytes)
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
		return "nothing: " + text.Plural(len(a.Conflicts), "conflict")
	case len(a.Applied)+len(a.Already) == 0:
		return "nothing: nothing was changed"
	}
	s := text.Plural(len(a.Applied), "path")
	if n := len(a.Already); n > 0 {
		s += fmt.Sprintf(", %d more had that already", n)
	}
	if a.Salvage != "" {
		s += "; what was overwritten is in salvage " + a.Salvage
	}
	return s
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

// Outputs are the files that a session was asked to give back.
type Outputs struct {
	Files        []Output        `json:"files"` // by folder (workspace, output, artifacts) and path
	Bytes        int64           `json:"bytes"` // of all of them
	Skipped      []SkippedOutput `json:"skipped"`
	SkippedCount int             `json:"skipped_count"` // Skipped lists the first 1000
	Cut          *CutOutputs     `json:"cut,omitempty"` // nil: no limit was reached
	Unmatched    []string        `json:"unmatched"`     // patterns to which no file answers
}

// Output is one file.
type Output struct {
	Root      string `json:"root"` // workspace, output or artifacts: the folder that the path counts from
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"` // base64, where the path is no UTF-8
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	Mode      string `json:"mode"`               // octal, four digits
	Artifact  string `json:"artifact,omitempty"` // name@version, where it was saved
	Encoding  string `json:"encoding,omitempty"` // utf-8 or base64, where the content is here
	Content   string `json:"content,omitempty"`
}

// SkippedOutput is one file that matched and was not taken.
type SkippedOutput struct {
	Root      string `json:"root"`
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Reason    string `json:"reason"`
}

// CutOutputs tells what the limits kept out.
type CutOutputs struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Reasons []string `json:"reasons"`
}

type outputsJSON Outputs

// MarshalJSON writes lists that are never null.
func (o Outputs) MarshalJSON() ([]byte, error) {
	o.Files, o.Skipped, o.Unmatched = notNull(o.Files), notNull(o.Skipped), notNull(o.Unmatched)
	return json.Marshal(outputsJSON(o))
}

// TypeOfFile tells the type of a file that a session gave back, by its extension.
func TypeOfFile(name string) Type {
	if t, ok := evidenceTypes()[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return TypeTrace
}

// Time is a moment in JSON: RFC 3339 in UTC, and "" for the zero value.
type Time struct{ time.Time }

// At wraps t.
func At(t time.Time) Time { return Time{t} }

// MarshalText writes RFC 3339 in UTC, or nothing for the zero value.
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UTC().AppendFormat(nil, time.RFC3339Nano), nil
}

// MarshalJSON writes MarshalText's text as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) {
	b, err := t.MarshalText()
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(b))
}

// UnmarshalText reads RFC 3339, or the zero value from an empty text.
func (t *Time) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*t = Time{}
		return nil
	}
	t.Time, err = time.Parse(time.RFC3339Nano, string(b))
	return err
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return t.UnmarshalText([]byte(s))
}
