package life

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Two processes attached before one of them ended the session: the other must
// see that, and change nothing.
func TestSessionEndedByAnother(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	f.Commit("first")
	m := NewManager(Config{Home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), Env: f.Env(), Log: zerolog.Nop()})
	s, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir})
	if err != nil {
		t.Fatal(err)
	}
	id := s.Rec.ID.String()
	late, err := m.Attach(t.Context(), f.Dir, id) // the opener still holds the lock, so this one has none
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), program.ExecOptions{Args: []string{"true"}}); !errors.Is(err, superqode.ErrLocked) {
		t.Errorf("run a program in a session that another process holds: %v", err)
	}
	if _, err := late.End(t.Context(), EndOptions{}); !errors.Is(err, superqode.ErrLocked) {
		t.Errorf("end a session that another process holds: %v", err)
	}
	if _, err := s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(state.RecordPath(s.Folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Diff(t.Context(), io.Discard, attach.DiffOptions{}); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("look at what it changed: %v", err)
	}
	if _, err := late.End(t.Context(), EndOptions{}); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("end it a second time: %v", err)
	}
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	if r := m.recoverOne(t.Context(), state.Listed{Record: s.Rec, Dir: s.Folder}); r.Err != nil || r.Action != "ended" {
		t.Errorf("recover what has ended: %+v", r)
	}
	if after, err := os.ReadFile(state.RecordPath(s.Folder)); err != nil || string(after) != string(before) {
		t.Errorf("the record was changed (%v):\n%s\nwas\n%s", err, after, before)
	}
}
