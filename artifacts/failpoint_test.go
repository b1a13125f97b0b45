//go:build failpoint

package artifacts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
)

// pointsOf runs a child to its end and returns every failpoint on its way as
// name:n.
func pointsOf(t *testing.T, args ...string) []string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "points")
	cmd := childCommand(t, args...)
	cmd.Env = append(cmd.Env, "SUPERQODE_FAILPOINT_LOG="+log)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var list []string
	seen := map[string]int{}
	for name := range strings.Lines(mustRead(t, log)) {
		name = strings.TrimSpace(name)
		seen[name]++
		list = append(list, fmt.Sprintf("%s:%d", name, seen[name]))
	}
	return list
}

func runAt(t *testing.T, point, action string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := childCommand(t, args...)
	cmd.Env = append(cmd.Env, "SUPERQODE_FAILPOINT="+point+"="+action)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Logf("%s=%s: the child came to its end", point, action)
	}
	return cmd, string(out)
}

// prepared is a store with a log that the child will replace.
func prepared(t *testing.T, id superqode.SessionID) *Store {
	t.Helper()
	s := openStore(t)
	mustAdd(t, s, New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte("one")})
	return s
}

// TestKilledAnywhere kills a process that replaces one artifact and adds another
// at every durable step. Afterwards the manifest is whole, nothing that was
// recorded is lost, and doing it again ends as if nothing had happened.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	id := sessionAt(t, 0)
	points := pointsOf(t, "replace", prepared(t, id).origin, id.String(), "two")
	for _, want := range []string{"artifacts.create:3", "artifacts.write:3", "artifacts.place:2", "artifacts.manifest.written:1", "artifacts.placed:1", "artifacts.manifest.renamed:1"} {
		if !slices.Contains(points, want) {
			t.Errorf("%s is not on the way: %v", want, points)
		}
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := prepared(t, id)
			cmd, _ := runAt(t, point, "kill", "replace", s.origin, id.String(), "two")
			if cmd.ProcessState.Success() {
				t.Fatal("the child was not killed")
			}
			c := mustVerify(t, s)
			if len(c.Missing) > 0 || len(c.Problems) > 0 || c.Checked+len(c.Changed) == 0 {
				t.Errorf("after the kill: %+v", c)
			}
			if got := mustRead(t, s.Dir(), SessionLog(id, "command")); got != "one" && got != "two" {
				t.Errorf("the log holds %q", got)
			}
			if out, err := childCommand(t, "replace", s.origin, id.String(), "two").CombinedOutput(); err != nil {
				t.Fatalf("again: %v\n%s", err, out)
			}
			if c := mustVerify(t, s); !c.OK() || c.Checked != 2 {
				t.Errorf("after doing it again: %+v", c)
			}
			if got := mustRead(t, s.Dir(), SessionLog(id, "command")); got != "two" {
				t.Errorf("the log holds %q", got)
			}
			wantCount(t, s, 2)
		})
	}
}

// TestDiskFull lets every step that writes fail with ENOSPC: the error says so,
// the old state stands and nothing half-made stays.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	id := sessionAt(t, 0)
	for _, point := range pointsOf(t, "replace", prepared(t, id).origin, id.String(), "two") {
		if !strings.HasPrefix(point, "artifacts.create") && !strings.HasPrefix(point, "artifacts.write") && !strings.HasPrefix(point, "artifacts.place:") {
			continue // cannot fail by itself
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := prepared(t, id)
			cmd, out := runAt(t, point, "enospc", "replace", s.origin, id.String(), "two")
			if cmd.ProcessState.Success() || !strings.Contains(out, "no space left") {
				t.Fatalf("%v: %s", cmd.ProcessState, out)
			}
			wantOK(t, s, 1)
			if got := mustRead(t, s.Dir(), SessionLog(id, "command")); got != "one" {
				t.Errorf("the log holds %q", got)
			}
			if out, err := childCommand(t, "replace", s.origin, id.String(), "two").CombinedOutput(); err != nil {
				t.Fatalf("again: %v\n%s", err, out)
			}
			wantOK(t, s, 2)
		})
	}
}

func TestRemoveKilled(t *testing.T) {
	t.Parallel()
	id := sessionAt(t, 0)
	fill := func(t *testing.T) *Store {
		s := openStore(t)
		for i := range 3 {
			mustAdd(t, s, New{Type: TypeTrace, Name: fmt.Sprint(i), Session: id, Data: []byte("x")})
		}
		mustAdd(t, s, New{Type: TypeTrace, Name: "other", Data: []byte("x")})
		return s
	}
	for _, point := range pointsOf(t, "remove", fill(t).origin, id.String()) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := fill(t)
			runAt(t, point, "kill", "remove", s.origin, id.String())
			if c := mustVerify(t, s); len(c.Unknown) > 0 || len(c.Changed) > 0 || len(c.Problems) > 0 {
				t.Errorf("after the kill: %+v", c)
			}
			if _, _, err := s.Remove(context.Background(), id); err != nil {
				t.Fatal(err)
			}
			if c := mustVerify(t, s); !c.OK() || c.Checked != 1 {
				t.Errorf("after removing again: %+v", c)
			}
		})
	}
}

// TestRebuildKilled kills a process that rebuilds a broken manifest: the broken
// bytes are still there, in one file or the other.
func TestRebuildKilled(t *testing.T) {
	t.Parallel()
	const broken = `{"artifacts":[{"id":"log-009","type":"log","path":"logs/manual/kept"`
	fill := func(t *testing.T) *Store {
		s := openStore(t)
		mustAdd(t, s, New{Type: TypeTrace, Name: "x", Data: []byte("x")})
		mustWrite(t, broken, s.Dir(), manifestName)
		return s
	}
	for _, point := range pointsOf(t, "add", fill(t).origin, "y", "1") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := fill(t)
			runAt(t, point, "kill", "add", s.origin, "y", "1")
			aside, _ := os.ReadFile(filepath.Join(s.Dir(), manifestName+".broken-1"))
			if now := mustRead(t, s.Dir(), manifestName); now != broken && string(aside) != broken {
				t.Errorf("the broken manifest is gone: %q, %q", now, aside)
			}
			mustAdd(t, s, New{Type: TypeTrace, Name: "y-0", Data: []byte("y-0")})
			if c := mustVerify(t, s); !c.OK() || c.Checked != 2 {
				t.Errorf("afterwards: %+v", c)
			}
		})
	}
}
