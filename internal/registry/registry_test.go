package registry

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

func listed(t *testing.T, id, name string, in superqode.State) state.Listed {
	t.Helper()
	sid, err := superqode.ParseSessionID(id)
	if err != nil {
		t.Fatal(err)
	}
	return state.Listed{Record: state.Record{ID: sid, Name: name, State: in}}
}

func TestPick(t *testing.T) {
	t.Parallel()
	sessions := []state.Listed{
		listed(t, "qe-20260101-000000-aaaaaa", "", superqode.StateActive),
		listed(t, "qe-20260101-000000-aaabbb", "fuzz", superqode.StateDone),
		listed(t, "qe-20260202-000000-cccbbb", "", superqode.StateDone),
		listed(t, "qe-20260203-000000-aaauuu", "", superqode.StateDone),
		listed(t, "qe-20260204-000000-aaauua", "u", superqode.StateDone),
	}
	broken := []state.Broken{{ID: "qe-20260303-000000-dddddd", Err: state.ErrBroken}}
	for ref, want := range map[string]any{
		"":                          "qe-20260101-000000-aaaaaa",
		"qe-20260101-000000-aaaaaa": "qe-20260101-000000-aaaaaa",
		"aaaaaa":                    "qe-20260101-000000-aaaaaa",
		"qe-20260202":               "qe-20260202-000000-cccbbb",
		"fuzz":                      "qe-20260101-000000-aaabbb",
		"u":                         "qe-20260204-000000-aaauua", // and the end of another's id
		"bbb":                       superqode.ErrUsage,
		"qe-2026":                   superqode.ErrUsage,
		"zzz":                       superqode.ErrNotFound,
		"dddddd":                    state.ErrBroken,
	} {
		got, err := pick(sessions, broken, ref)
		if id, ok := want.(string); ok && (err != nil || got.ID.String() != id) {
			t.Errorf("%q: got %s, %v; want %s", ref, got.ID, err, id)
		}
		if werr, ok := want.(error); ok && !errors.Is(err, werr) {
			t.Errorf("%q: got %s, %v; want %v", ref, got.ID, err, werr)
		}
	}
	if _, err := pick(append(sessions, listed(t, "qe-20260102-000000-eeeeee", "", superqode.StatePreserved)), nil, ""); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("two open sessions and none named: %v", err)
	}
}

// TestResolveReadsFew holds what a session is found by that nobody named, or that was
// named by its whole id, and that the records of those that have ended are not read for it.
func TestResolveReadsFew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &site.Host{Home: t.TempDir(), Now: time.Now}
	p := m.ProjectOf(&site.Origin{Top: dir})
	if err := p.Create(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	parent := listed(t, "qe-20260101-000000-aaaaaa", "", superqode.StatePreserved)
	child := listed(t, "qe-20260101-000001-bbbbbb", "", superqode.StatePreserved)
	child.Parent = parent.ID
	done := listed(t, "qe-20260102-000000-cccccc", "", superqode.StateDone)
	for _, l := range []state.Listed{parent, child, done} {
		l.Mode, l.SchemaVersion = superqode.ModeWorktree, state.SchemaVersion
		at := p.SessionPath(l.ID.String())
		if err := errors.Join(os.Mkdir(at, 0o700), state.WriteRecord(at, &l.Record)); err != nil {
			t.Fatal(err)
		}
		if l.State != superqode.StateDone {
			put(t, filepath.Join(at, "tmp"), "")
		}
	}
	for ref, want := range map[string]state.Listed{"": parent, parent.ID.String(): parent, done.ID.String(): done} {
		if l, err := Resolve(t.Context(), m, dir, ref); err != nil || l.ID != want.ID {
			t.Errorf("%q: got %s, %v; want %s", ref, l.ID, err, want.ID)
		}
	}
	if l, err := Resolve(t.Context(), m, dir, child.ID.String()); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("a session of one agent of several: %s, %v", l.ID, err)
	}
	ended := parent.Record
	ended.State, ended.Mode, ended.SchemaVersion = superqode.StateActive, superqode.ModeWorktree, state.SchemaVersion
	at := p.SessionPath(parent.ID.String())
	if err := errors.Join(os.Remove(filepath.Join(at, "tmp")), state.WriteRecord(at, &ended)); err != nil {
		t.Fatal(err)
	}
	if l, err := Resolve(t.Context(), m, dir, ""); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("the record of a session was read whose folders are gone: %s, %v", l.ID, err)
	}
}

func TestLoadNamesBrokenRecords(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"empty":        "",
		"cut":          `{"schema_version":1,"session_id":"qe-`,
		"other id":     `{"schema_version":1,"session_id":"qe-20260101-000000-bbbbbb","mode":"worktree","state":"active"}`,
		"newer":        `{"schema_version":9,"session_id":"qe-20260101-000000-aaaaaa","mode":"worktree","state":"active"}`,
		"bad state":    `{"schema_version":1,"session_id":"qe-20260101-000000-aaaaaa","mode":"worktree","state":"asleep"}`,
		"no state":     `{"schema_version":1,"session_id":"qe-20260101-000000-aaaaaa","mode":"worktree"}`,
		"an array":     `[]`,
		"wrong values": `{"schema_version":1,"session_id":7}`,
	} {
		dir := filepath.Join(t.TempDir(), "qe-20260101-000000-aaaaaa")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, state.RecordPath(dir), data)
		if _, err := state.Load(dir); !errors.Is(err, state.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordKeepsEveryByteOfPaths(t *testing.T) {
	t.Parallel()
	id := superqode.NewSessionID(time.Now())
	dir := filepath.Join(t.TempDir(), id.String())
	rec := state.Record{SchemaVersion: 1, ID: id, Mode: superqode.ModeWorktree, State: superqode.StateActive, Origin: "/origin\xff", Workspace: "/ws"}
	if err := errors.Join(os.Mkdir(dir, 0o700), state.WriteRecord(dir, &rec)); err != nil {
		t.Fatal(err)
	}
	got, err := state.ReadRecord(dir)
	if err != nil || got.Origin != rec.Origin {
		t.Errorf("origin %q came back as %q (%v)", rec.Origin, got.Origin, err)
	}
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
