package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	var list []Artifact
	for _, n := range []string{"good", "missing", "changed", "link", "same-size"} {
		list = append(list, mustAdd(t, s, New{Type: TypeTrace, Name: n, Data: []byte(n)}))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Remove(s.File(list[1])))
	must(os.WriteFile(s.File(list[2]), []byte("other"), 0o600))
	must(os.Remove(s.File(list[3])))
	must(os.Symlink(s.File(list[0]), s.File(list[3])))
	must(os.WriteFile(s.File(list[4]), []byte("SAME-size"), 0o600))
	mustWrite(t, "x", s.Dir(), "evidence/new\nfile")
	mustWrite(t, "x", s.Dir(), "stray")
	c := mustVerify(t, s)
	if c.Checked != 1 || len(c.Missing) != 1 || len(c.Changed) != 3 || len(c.Unknown) != 2 || c.OK() {
		t.Errorf("Verify = %+v", c)
	}
	if c.Unknown[0] != "evidence/new\nfile" || c.Unknown[1] != "stray" {
		t.Errorf("unknown: %q", c.Unknown)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	s, a, b, ctx := openStore(t), sessionAt(t, 0), sessionAt(t, 1), context.Background()
	for _, id := range []superqode.SessionID{a, b} {
		mustAdd(t, s, New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte("x")})
		mustAdd(t, s, New{Type: TypeTestUnit, Name: "x_test.go", Session: id, Data: []byte("x")})
		mustAdd(t, s, New{Type: TypeTrace, Name: "edited", Session: id, Data: []byte("x")})
	}
	edited, err := s.Get(ctx, "edited@1")
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, "precious", s.File(edited))
	removed, problems, err := s.Remove(ctx, a)
	if err != nil || len(removed) != 2 || len(problems) != 1 || !strings.Contains(problems[0].Reason, "spared") {
		t.Errorf("Remove = %+v, %v, %v", removed, problems, err)
	}
	if mustRead(t, s.File(edited)) != "precious" {
		t.Error("an edited file was removed")
	}
	if _, err := os.Lstat(filepath.Join(s.Dir(), "generated-tests/unit", a.String())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder stayed: %v", err)
	}
	wantCount(t, s, 4)
	mustWrite(t, "x", s.File(edited))
	if removed, _, err := s.Remove(ctx, a); err != nil || len(removed) != 1 {
		t.Errorf("Remove again = %v, %v", removed, err)
	}
	wantOK(t, s, 3)
	if _, _, err := s.Remove(ctx, superqode.SessionID{}); err == nil {
		t.Error("removed no session's artifacts")
	}
	if removed, _, err := openStore(t).Remove(ctx, a); err != nil || len(removed) > 0 {
		t.Errorf("Remove in an empty store = %v, %v", removed, err)
	}
}

func TestPruneChooses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	var all []Artifact
	for i := range 5 { // session 0 is the oldest: five days
		all = append(all, Artifact{Session: sessionAt(t, i), CreatedAt: at.AddDate(0, 0, i-5)}, Artifact{Session: sessionAt(t, i), CreatedAt: at.AddDate(0, 0, -30)})
	}
	all = append(all, Artifact{CreatedAt: at.AddDate(-1, 0, 0)}) // of no session
	day := 24 * time.Hour
	for _, tt := range []struct {
		opt  PruneOptions
		gone string
	}{
		{PruneOptions{KeepSessions: 2}, "012"},
		{PruneOptions{KeepSessions: 9}, ""},
		{PruneOptions{OlderThan: 3 * day}, "01"},
		{PruneOptions{OlderThan: time.Hour}, "01234"},
		{PruneOptions{KeepSessions: 4, OlderThan: 3 * day}, "0"},
		{PruneOptions{KeepSessions: 1, OlderThan: 3 * day}, "01"},
		{PruneOptions{OlderThan: time.Hour, Preserved: map[superqode.SessionID]bool{sessionAt(t, 1): true}}, "0234"},
	} {
		tt.opt.Now = at
		got := tt.opt.choose(all)
		for i := range 5 {
			if want := strings.Contains(tt.gone, string(rune('0'+i))); got[sessionAt(t, i)] != want {
				t.Errorf("%+v: session %d goes: %v, want %v", tt.opt, i, !want, want)
			}
		}
		if got[superqode.SessionID{}] {
			t.Errorf("%+v: what belongs to no session goes", tt.opt)
		}
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s, ctx := openStore(t), context.Background()
	for i := range 4 {
		mustAdd(t, s, New{Type: TypeTrace, Name: "x", Session: sessionAt(t, i), Data: []byte("x")})
	}
	mustAdd(t, s, New{Type: TypeTrace, Name: "mine", Data: []byte("x")})
	stale := filepath.Join(s.Dir(), "evidence", tempPrefix+"killed")
	mustWrite(t, "x", stale)
	if err := os.Chtimes(stale, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []PruneOptions{{}, {KeepSessions: -1}, {OlderThan: -1}} {
		if _, _, err := s.Prune(ctx, bad); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("Prune(%+v) = %v, want a usage error", bad, err)
		}
	}
	opt := PruneOptions{KeepSessions: 2, DryRun: true, Preserved: map[superqode.SessionID]bool{sessionAt(t, 0): true}}
	if removed, _, err := s.Prune(ctx, opt); err != nil || len(removed) != 1 || removed[0].Session != sessionAt(t, 1) {
		t.Errorf("Prune (dry run) = %v, %v", removed, err)
	}
	wantCount(t, s, 5)
	opt.DryRun = false
	if removed, problems, err := s.Prune(ctx, opt); err != nil || len(removed) != 1 || len(problems) > 0 {
		t.Errorf("Prune = %v, %v, %v", removed, problems, err)
	}
	wantOK(t, s, 4)
}
