package layers

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// testHandler is a handler in a folder of its own.
func testHandler(t *testing.T) *Handler {
	t.Helper()
	g := &Guard{Site: &site.Site{Host: &site.Host{Tell: func(string) {}}, Folder: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(g.Folder, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := g.Handle()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func attempt(process int, op guard.Operation) guard.Attempt {
	return guard.Attempt{Operation: op, Command: []string{"git", string(op)}, Layer: guard.LayerShim, Process: process}.Tidy()
}

// TestHandlerReportsOnce: shim and hooks that refuse the same attempt make one line;
// two attempts make two.
func TestHandlerReportsOnce(t *testing.T) {
	t.Parallel()
	d := testHandler(t)
	for _, a := range []guard.Attempt{attempt(7, "commit"), attempt(7, "commit"), attempt(8, "commit"), attempt(7, "push")} {
		if err := d.blocked(a); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(d.log())
	if err != nil {
		t.Fatal(err)
	}
	if list, bad := guard.ParseAttempts(data); len(list) != 3 || bad != 0 {
		t.Errorf("%s", data)
	}
}

// TestHandlerLogIsKept: what a program takes out of the log, or puts in its place, is
// put back and told.
func TestHandlerLogIsKept(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"untouched": func(string) error { return nil },
		"deleted":   os.Remove,
		"emptied":   func(p string) error { return os.Truncate(p, 0) },
		"a folder":  func(p string) error { return errors.Join(os.Remove(p), os.MkdirAll(filepath.Join(p, "x"), 0o700)) },
	} {
		d := testHandler(t)
		if err := d.blocked(attempt(1, "commit")); err != nil {
			t.Fatal(err)
		}
		if err := spoil(d.log()); err != nil {
			t.Fatal(err)
		}
		tampered, err := d.restore()
		data, rerr := os.ReadFile(d.log())
		list, _ := guard.ParseAttempts(data)
		if err != nil || rerr != nil || tampered != (name != "untouched") || len(list) != 1 {
			t.Errorf("%s: tampered %t, %v, %v, %d attempts", name, tampered, err, rerr, len(list))
		}
	}
}

// TestHandlerIsBounded: a program that tries for ever does not fill the disk.
func TestHandlerIsBounded(t *testing.T) {
	t.Parallel()
	d := testHandler(t)
	warned := ""
	d.warn = func(s string) { warned = s }
	d.added = make([][]byte, maxAttempts)
	if err := d.blocked(attempt(1, "commit")); err != nil || d.dropped != 1 {
		t.Errorf("%v, %d dropped", err, d.dropped)
	}
	if _, err := d.restore(); err != nil || !strings.Contains(warned, "1 more") {
		t.Errorf("%v, %q", err, warned)
	}
}

// TestAllowanceServesOnce: of many that ask at the same moment one is let
// through, and only for what was allowed.
func TestAllowanceServesOnce(t *testing.T) {
	t.Parallel()
	d := testHandler(t)
	ctx := t.Context()
	if err := d.allowed.add(ctx, d.dir, allowance{SchemaVersion: state.SchemaVersion, ID: "ONE", Operation: "stash"}); err != nil {
		t.Fatal(err)
	}
	if ok, err := d.consume(ctx, os.Getpid(), attempt(0, "commit")); ok || err != nil {
		t.Errorf("another operation: %t, %v", ok, err)
	}
	let := make(chan bool, 20)
	var all sync.WaitGroup
	for range cap(let) {
		all.Go(func() {
			ok, err := d.consume(ctx, 0, attempt(0, "stash.push")) // "stash" covers it
			if err != nil {
				t.Error(err)
			}
			let <- ok
		})
	}
	all.Wait()
	close(let)
	n := 0
	for ok := range let {
		if ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d were let through", n)
	}
	if open, err := openAllowances(d.dir); err != nil || len(open) != 0 {
		t.Errorf("%v, %v", open, err)
	}
}

// TestForgedAllowance: a line that a program writes into the file is in no
// supervisor's memory; one that is replayed is used up there.
func TestForgedAllowance(t *testing.T) {
	t.Parallel()
	d := testHandler(t)
	ctx := t.Context()
	forge := func() {
		if err := appendAllowance(d.dir, allowance{SchemaVersion: state.SchemaVersion, ID: "FORGED", Operation: "commit"}); err != nil {
			t.Fatal(err)
		}
	}
	forge()
	if ok, err := d.consume(ctx, 0, attempt(0, "commit")); ok || err != nil {
		t.Errorf("forged: %t, %v", ok, err)
	}
	if err := d.allowed.add(ctx, d.dir, allowance{ID: "REAL", Operation: "commit"}); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(allowedPath(d.dir))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := d.consume(ctx, 0, attempt(0, "commit")); !ok || err != nil {
		t.Errorf("real: %t, %v", ok, err)
	}
	if err := os.WriteFile(allowedPath(d.dir), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := d.consume(ctx, 0, attempt(0, "commit")); ok || err != nil {
		t.Errorf("replayed: %t, %v", ok, err)
	}
}

// TestAllowFromInside: a process below the supervisor cannot allow anything.
func TestAllowFromInside(t *testing.T) {
	t.Parallel()
	d := testHandler(t)
	h := d.AddTo(map[string]supervisor.Handler{})
	args, err := json.Marshal(allowance{ID: "X", Operation: "commit"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h[opAllow](context.Background(), os.Getpid(), args); !errors.Is(err, superqode.ErrDenied) {
		t.Errorf("from inside: %v", err)
	}
	if _, err := h[opAllow](context.Background(), os.Getppid(), args); err != nil {
		t.Errorf("from outside: %v", err)
	}
	for _, bad := range []string{`{}`, `{"id":"Y","operation":"comit"}`, `[`, `{"id":"Y","operation":"commit","used_at":"2024-01-01T00:00:00Z"}`} {
		if _, err := h[opAllow](context.Background(), os.Getppid(), json.RawMessage(bad)); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
