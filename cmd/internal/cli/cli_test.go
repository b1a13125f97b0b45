package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/session"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	other := errors.New("disk on fire")
	verification := superqode.Errorf(superqode.ErrVerification, "v")
	for _, tt := range []struct {
		name    string
		err     error
		command string
		want    int
		code    string
	}{
		{"none", nil, "run <cmd>", 0, ""},
		{"failure", other, "workspace list", 1, "failure"},
		{"own failure of run", other, "run <cmd>", 125, "internal"},
		{"own failure of exec", other, "workspace exec <cmd>", 125, "internal"},
		{"end is no exec", other, "workspace end", 1, "failure"},
		{"denied", superqode.ErrDenied, "x", 3, "denied"},
		{"conflict", superqode.ErrConflict, "x", 4, "conflict"},
		{"locked", superqode.WithHint(superqode.ErrLocked, "h"), "run <cmd>", 5, "locked"},
		{"verification", verification, "run <cmd>", 6, "verification"},
		{"not found", superqode.Errorf(superqode.ErrNotFound, "n"), "x", 7, "not_found"},
		{"usage", superqode.ErrUsage, "run <cmd>", 80, "usage"},
		{"joined", errors.Join(other, superqode.ErrConflict), "x", 4, "conflict"},
		{"not executable", &runner.StartError{Name: "x", Code: 126, Err: other}, "run <cmd>", 126, "not_started"},
		{"program not found", fmt.Errorf("w: %w", &runner.StartError{Name: "x", Code: 127, Err: other}), "run <cmd>", 127, "not_started"},
		{"interrupted", &session.InterruptError{Signal: syscall.SIGINT}, "run <cmd>", 130, "interrupted"},
		{"terminated", &session.InterruptError{Signal: syscall.SIGTERM}, "workspace end", 143, "interrupted"},
		{"canceled", context.Canceled, "x", 130, "interrupted"},
		{"nobody reads", syscall.EPIPE, "workspace diff", 141, "pipe"},
		{"program's own", programError(3, nil), "run <cmd>", 3, "status"},
		{"program and verification", programError(3, verification), "run <cmd>", 3, "verification"},
		{"verification alone", programError(0, verification), "run <cmd>", 6, "verification"},
		{"not started and verification", programError(127, errors.Join(&runner.StartError{Code: 127, Err: other}, verification)), "run <cmd>", 127, "not_started"},
	} {
		code, name := classify(tt.err, tt.command)
		if code != tt.want || name != tt.code {
			t.Errorf("%s: got %d %q, want %d %q", tt.name, code, name, tt.want, tt.code)
		}
	}
}

func TestErrorPaths(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "/x/y", Err: syscall.EACCES})
	if got := errorPaths(err); !cmp.Equal(got, []string{"/x/y"}) {
		t.Errorf("got %q", got)
	}
	if got := errorPaths(errors.New("x")); got == nil || len(got) != 0 {
		t.Errorf("got %#v, want an empty list", got)
	}
}

func TestPatchWriter(t *testing.T) {
	t.Parallel()
	in := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n--- old\n+new\x1b[2J\n c\tc\n\\ No newline at end of file\nindex 1..2\nlast"
	const b, r, g, c, n = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
	want := b + "diff --git a/x b/x" + n + "\n" + b + "--- a/x" + n + "\n" + b + "+++ b/x" + n + "\n" + c + "@@ -1,2 +1,2 @@ f" + n + "\n" +
		r + "--- old" + n + "\n" + g + `+new\x1b[2J` + n + "\n c\tc\n\\ No newline at end of file\n" + b + "index 1..2" + n + "\nlast\n"
	for size := 1; size < len(in); size += 7 {
		var out bytes.Buffer
		p := &patchWriter{w: &out, color: true}
		for rest := in; rest != ""; {
			k := min(size, len(rest))
			if _, err := p.Write([]byte(rest[:k])); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Fatalf("pieces of %d: %s", size, d)
		}
	}
}

func TestFlagValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"30": 30 * time.Second, "1.5s": 1500 * time.Millisecond, "15m": 15 * time.Minute, "0": 0, "-1s": 0, "x": 0, "": 0} {
		var d durationFlag
		if err := d.UnmarshalText([]byte(in)); (err == nil) != (want > 0) || time.Duration(d) != want {
			t.Errorf("duration %q: %v, %v", in, time.Duration(d), err)
		}
	}
	for in, want := range map[string]int64{"512": 512, "1k": 1024, "10M": 10 << 20, "2GiB": 2 << 30, "3kb": 3072, "1T": 1 << 40, "0": 0, "-1": 0, "9999999999T": 0, "M": 0, "1x": 0} {
		var z sizeFlag
		if err := z.UnmarshalText([]byte(in)); (err == nil) != (want > 0) || int64(z) != want {
			t.Errorf("size %q: %d, %v", in, z, err)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]artifacts.LineRange{"3": {Start: 3, End: 3}, "3-9": {Start: 3, End: 9}, "0": {}, "9-3": {}, "a": {}, "1-": {}} {
		if got, err := parseLines(in); got != want || (err == nil) != (want.Start > 0) {
			t.Errorf("lines %q: %v, %v", in, got, err)
		}
	}
}

// TestSummaryIsShort holds the block that ends a session to its size, and to
// text that a terminal only shows.
func TestSummaryIsShort(t *testing.T) {
	t.Parallel()
	id, err := superqode.ParseSessionID("qe-20260101-000000-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	res := &artifacts.Result{SessionID: id, Mode: superqode.ModeWorktree, Origin: "/or\x1bigin", ExitCode: 1, Workspace: artifacts.Workspace{Path: "/w\x1b", Preserved: true}}
	for i := range 1000 {
		p, err := superqode.ParseRelPath(fmt.Sprintf("evil\x1b]0;%d", i))
		if err != nil {
			t.Fatal(err)
		}
		res.Changes = append(res.Changes, superqode.Change{Path: p, Type: superqode.ChangeCreated, LinesAdded: 1})
	}
	patch, err := superqode.ParseRelPath("patches/x.patch")
	if err != nil {
		t.Fatal(err)
	}
	res.Artifacts = []artifacts.Ref{{Type: artifacts.TypePatch, Path: patch}}
	var out bytes.Buffer
	newApp(IO{Err: &out}).summary(res)
	if n := strings.Count(out.String(), "\n"); n > 20 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("escapes in %q", out.String())
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	if got, want := cutLeft("/home/me/.superqode/qe/abc", 8), "…/qe/abc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := cutLeft("short", 0); got != "short" {
		t.Errorf("got %q", got)
	}
}
