package custody

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/state"
)

func session(t *testing.T) (dir string, rec state.Record) {
	t.Helper()
	id := superqode.NewSessionID(time.Now())
	dir = filepath.Join(t.TempDir(), id.String())
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rec = state.Record{SchemaVersion: 1, ID: id, Mode: superqode.ModeWorktree, State: superqode.StateActive, Origin: "/origin\xff", Workspace: "/ws", Warnings: []string{}, Tampered: []string{}, Command: []string{}}
	if err := state.WriteRecord(dir, &rec); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{salvage.Dir(dir), filepath.Join(dir, "log")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string]string{"salvage/1.json": "{}", "salvage/1.snap": "list", "base.snap": "base", "origin.snap": "origin", "log/runs.jsonl": "{\"run\":1}\n", "findings.jsonl": "{}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, rec
}

func TestPutsBack(t *testing.T) {
	t.Parallel()
	link := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", path); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		file   string
		tamper func(*testing.T, string)
		told   []string
	}{
		"nothing":          {"base.snap", func(*testing.T, string) {}, nil},
		"base overwritten": {"base.snap", func(t *testing.T, p string) { put(t, p, "forged") }, []string{"base.snap"}},
		"base deleted":     {"base.snap", func(t *testing.T, p string) { os.Remove(p) }, []string{"base.snap"}},
		"base a link":      {"base.snap", link, []string{"base.snap"}},
		"base a folder":    {"base.snap", func(t *testing.T, p string) { os.Remove(p); os.Mkdir(p, 0o700) }, []string{"base.snap"}},
		"state planted":    {"state.json", func(t *testing.T, p string) { put(t, p, "{}") }, []string{"state.json"}},
		"runs cut":         {"log/runs.jsonl", func(t *testing.T, p string) { put(t, p, "") }, []string{"log/runs.jsonl"}},
		"runs continued":   {"log/runs.jsonl", func(t *testing.T, p string) { put(t, p, "{\"run\":1}\n{}\n") }, nil},
		"salvage deleted":  {"salvage/1.snap", func(t *testing.T, p string) { os.Remove(p) }, []string{"salvage/1.snap"}},
		"salvages deleted": {"salvage/1.json", func(t *testing.T, p string) { os.RemoveAll(filepath.Dir(p)) }, []string{"salvage/1.json", "salvage/1.snap"}},
		"salvages a link": {"salvage/1.json", func(t *testing.T, p string) { os.RemoveAll(filepath.Dir(p)); os.Symlink("/", filepath.Dir(p)) },
			[]string{"salvage/1.json", "salvage/1.snap"}},
		"salvage planted":    {"salvage/1.json", func(t *testing.T, p string) { put(t, filepath.Join(filepath.Dir(p), "2.json"), "{}") }, nil},
		"findings withdrawn": {"findings.jsonl", func(t *testing.T, p string) { put(t, p, "") }, []string{"findings.jsonl"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, rec := session(t)
			path := filepath.Join(dir, c.file)
			before, _ := os.ReadFile(path)
			s, err := Take(dir, rec, false)
			if err != nil {
				t.Fatal(err)
			}
			c.tamper(t, path)
			told, err := s.restore()
			if err != nil || !slices.Equal(told, c.told) {
				t.Fatalf("restore told %v (%v), want %v", told, err, c.told)
			}
			after, _ := os.ReadFile(path)
			if name != "runs continued" && string(after) != string(before) {
				t.Errorf("%s holds %q, want %q", c.file, after, before)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBelievesOnlyWhatMayChange(t *testing.T) {
	t.Parallel()
	dir, rec := session(t)
	s, err := Take(dir, rec, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	honest := rec
	honest.Runs, honest.Command, honest.Pinned = 3, []string{"x"}, true
	if err := state.WriteRecord(dir, &honest); err != nil {
		t.Fatal(err)
	}
	if got, tampered := state.Believe(s.dir, s.record); tampered || got.Runs != 3 || !got.Pinned {
		t.Errorf("what another supervisor wrote counts as tampering: %v %+v", tampered, got)
	}
	for name, forge := range map[string]func(*state.Record){
		"workspace": func(r *state.Record) { r.Workspace = "/etc" },
		"admin dir": func(r *state.Record) { r.AdminDir = "/etc" },
		"origin":    func(r *state.Record) { r.Origin = "/etc" },
		"state":     func(r *state.Record) { r.State = superqode.StateDone },
		"base":      func(r *state.Record) { r.Base.Head = "0" },
	} {
		forged := rec
		forge(&forged)
		if err := state.WriteRecord(dir, &forged); err != nil {
			t.Fatal(err)
		}
		if got, tampered := state.Believe(s.dir, s.record); !tampered || got.Workspace != rec.Workspace || got.State != rec.State || got.Origin != rec.Origin {
			t.Errorf("%s: forged record was believed (%v): %+v", name, tampered, got)
		}
	}
	put(t, state.RecordPath(dir), "not json")
	if got, tampered := state.Believe(s.dir, s.record); !tampered || got.ID != rec.ID {
		t.Error("a destroyed record was believed")
	}
}

// TestBelievesWhileOthersWrite: a record and its copy of which a command beside has written
// only one yet are no tampering.
func TestBelievesWhileOthersWrite(t *testing.T) {
	t.Parallel()
	dir, rec := session(t)
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for other := rec; ; other.Runs++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			other.UpdatedAt = other.UpdatedAt.Add(time.Second)
			if err := state.WriteRecord(dir, &other); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 300 {
		if _, tampered := state.Believe(dir, rec); tampered {
			t.Error("what another command was writing counts as tampering")
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
