package attribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Where several agents work in one workspace, who wrote what is known from what
// they say: after each edit an agent's hook calls `superqode track`, which comes
// here. What the file held at that moment is kept beside the statement, in
// sessions/<id>/track/, so that later the lines can be followed from one
// statement to the next.

// Track is an agent's statement that it has changed a file.
type Track struct {
	Agent superqode.AgentID
	Path  superqode.RelPath
	Lines []merge.LineRange // of the file as it is now; none: all that is new since the last statement about the file
	Edits []TrackEdit       // what was replaced by what, where the agent's hook tells; then Lines is none
}

// TrackEdit is one replacement of text.
type TrackEdit struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// trackEvent is a line of track.jsonl.
type trackEvent struct {
	SchemaVersion int               `json:"schema_version"`
	At            time.Time         `json:"at"`
	Agent         superqode.AgentID `json:"agent_id"`
	Path          []byte            `json:"path"`
	Content       string            `json:"content"` // sha256 of what the file held, "" when it was not there
	Mode          uint32            `json:"mode"`
	Lines         []merge.LineRange `json:"lines,omitempty"`
	Edits         []TrackEdit       `json:"edits,omitempty"`
}

// maxTracked is the size of a file beyond which no content is kept: nobody asks
// who wrote a line of one.
const maxTracked = 8 << 20

// Tracked reports whether there is something by which changes in one workspace
// can be told apart: statements of agents, or claims of several.
func (s *Authorship) Tracked() bool {
	if atomicfile.Exists(statements{s.Site}.path()) {
		return true
	}
	several := s.Rec.Shared || len(s.Rec.Agents) == 0 && s.Rec.Agent.IsZero()
	return several && s.Rec.Parent.IsZero() && atomicfile.Exists(coordinator.GrantsPath(s.Folder))
}

// OpTrack is the supervisor's operation behind `superqode track`.
const OpTrack = "track"

// trackArgs are its arguments. Paths are bytes.
type trackArgs struct {
	Agent superqode.AgentID `json:"agent_id"`
	Path  []byte            `json:"path"`
	Lines []merge.LineRange `json:"lines,omitempty"`
	Edits []TrackEdit       `json:"edits,omitempty"`
}

// TrackHandler answers opTrack. An agent of several speaks for itself only.
func (s *Authorship) TrackHandler() supervisor.Handler {
	actor, several := s.Actor(), len(s.Rec.Agents) > 0 || !s.Rec.Parent.IsZero()
	return func(ctx context.Context, _ int, raw json.RawMessage) (any, error) {
		var a trackArgs
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "not a statement about a file: %v", err)
		}
		if a.Agent.IsZero() {
			a.Agent = actor
		}
		if several && a.Agent != actor {
			return nil, superqode.Errorf(superqode.ErrDenied, "this is agent %s, which cannot speak for %s",
				actor, a.Agent)
		}
		path, err := superqode.ParseRelPath(string(a.Path))
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
		}
		return struct{}{}, s.Track(ctx, Track{Agent: a.Agent, Path: path, Lines: a.Lines, Edits: a.Edits})
	}
}

// SendTrack tells the supervisor of the session around what an agent changed.
func SendTrack(ctx context.Context, env []string, t Track) error {
	var reply struct{}
	return supervisor.Call(ctx, env, OpTrack, trackArgs{t.Agent, []byte(t.Path.String()), t.Lines, t.Edits}, &reply)
}

// Track keeps one statement.
func (s *Authorship) Track(ctx context.Context, t Track) (err error) {
	if path := t.Path.String(); t.Agent.IsZero() {
		err := superqode.Errorf(superqode.ErrUsage, "nobody is named who changed %s", text.Printable(path))
		return superqode.WithHint(err, "superqode track --agent NAME %s", text.QuotePOSIX(path))
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "track.lock"))
	if err != nil {
		return err
	}
	return errors.Join(statements{s.Site}.add(t), unlock())
}

// statements is the log of what agents said of their edits, track.jsonl in the
// session's folder, with the contents beside it.
type statements struct{ *site.Site }

func (l statements) path() string { return filepath.Join(l.Folder, "track.jsonl") }

// add keeps a statement and what its file holds now.
func (l statements) add(t Track) error {
	e := trackEvent{
		SchemaVersion: state.SchemaVersion, At: l.Now().UTC(), Agent: t.Agent, Path: []byte(t.Path.String()),
		Lines: t.Lines, Edits: t.Edits,
	}
	if err := l.keepContent(&e); err != nil {
		return err
	}
	return ledger.Append(l.path(), e)
}

// keepContent keeps what the file of a statement holds.
func (l statements) keepContent(e *trackEvent) error {
	root, err := site.OpenWork(context.Background(), l.Site)
	if err != nil {
		return err
	}
	defer root.Close()
	path := string(e.Path)
	st, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	e.Mode = uint32(st.Mode().Perm())
	if !st.Mode().IsRegular() || st.Size() > maxTracked {
		e.Content = "-"
		return nil
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTracked+1))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	e.Content = hex.EncodeToString(sum[:])
	file := l.contentPath(e)
	if atomicfile.Exists(file) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600)
}

func (l statements) contentPath(e *trackEvent) string {
	return filepath.Join(l.Folder, "track", filepath.Base(e.Content))
}

// read returns the statements, in their order, by path.
func (l statements) read() (map[string][]trackEvent, error) {
	events, _, err := ledger.Read[trackEvent](l.path())
	out := map[string][]trackEvent{}
	for _, e := range events {
		out[string(e.Path)] = append(out[string(e.Path)], e)
	}
	return out, err
}

// content returns what a file held when a statement was made; nil when that is
// not kept.
func (l statements) content(e *trackEvent) ([]byte, error) {
	if e.Content == "" || e.Content == "-" {
		return nil, nil
	}
	data, err := atomicfile.Read(l.contentPath(e))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.Content {
		return nil, superqode.Errorf(superqode.ErrVerification, "what is kept of %s is damaged",
			text.Printable(string(e.Path)))
	}
	return data, nil
}
