package life

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// TestWatcherKilled ends the watching half-way: what it saw keeps its time, and
// every change is found all the same.
func TestWatcherKilled(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	f.Write("b.txt", "one\n")
	f.Commit("first")
	m := NewManager(Config{Home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), Env: f.Env(), Log: zerolog.Nop()})
	s, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir, Watcher: state.WatcherOptions{Enabled: true, Debounce: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(string(s.Rec.Workspace), name), []byte("two\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := s.StartWatching()
	write("new.txt") // before, or after, it watches: it is new either way
	time.Sleep(20 * program.WatchAfter)
	write("a.txt")
	time.Sleep(20 * program.WatchAfter)
	w.Cancel()
	<-w.Done
	middle := time.Now()
	write("b.txt")
	write("later.txt")
	if err := s.StopWatching(w); err != nil {
		t.Fatal(err)
	}
	changes, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 4 {
		t.Fatalf("%+v", changes)
	}
	for _, c := range changes {
		name := c.Path.String()
		_, seen := w.First[name]
		if late := name == "b.txt" || name == "later.txt"; seen == late && late {
			t.Errorf("%s was seen by nobody, and has a time", name)
		} else if seen && !c.FirstSeen.Before(middle) {
			t.Errorf("%s was first seen at %s, before %s", name, c.FirstSeen, middle)
		}
	}
	if _, err := s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil {
		t.Fatal(err)
	}
}

// TestWatcherBroken runs with a watcher that cannot start.
func TestWatcherBroken(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	f.Commit("first")
	m := NewManager(Config{Home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), Env: f.Env(), Log: zerolog.Nop()})
	res, err := m.Run(t.Context(), OpenOptions{Dir: f.Dir, Watcher: state.WatcherOptions{Enabled: true, Ignore: []string{"[a"}}},
		program.ExecOptions{Args: []string{"sh", "-c", "echo two >a.txt; echo two >b.txt; sleep 0.2"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Changes) != 2 {
		t.Errorf("%+v", res.Changes)
	}
}
