package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

func bareSession(t *testing.T) *Session {
	t.Helper()
	m := NewManager(Config{Home: t.TempDir()})
	return &Session{m: m, Site: &site.Site{Host: m.Host, Folder: t.TempDir(), Rec: state.Record{State: superqode.StateActive}}}
}

func TestAddFindings(t *testing.T) {
	t.Parallel()
	s, ctx := bareSession(t), context.Background()
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	list, err := s.AddFindings(ctx, []json.RawMessage{
		raw(`{"severity":"low","title":"a"}`), raw(`{"severity":"odd","title":"b"}`), raw(`{"severity":"low","title":"c","id":"own","wat":1}`),
		raw(`{"severity":"low","title":"d","id":"own"}`), raw(`7`), raw(`{"severity":"low","title":"e","suppressed":{"reason":"mine"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"finding-001", "", "own", "", "", "finding-003"} {
		if list[i].ID != want || (list[i].Err == nil) != (want != "") {
			t.Errorf("finding %d: %+v", i, list[i])
		}
	}
	if len(list[2].Ignored) != 1 {
		t.Errorf("ignored: %v", list[2].Ignored)
	}
	// half a line that a killed writer left costs no other
	f, err := atomicfile.Append(s.findingsPath(), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"severity":"low","ti`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if a, err := s.AddFinding(ctx, raw(`{"severity":"high","title":"after"}`)); err != nil || a.ID != "finding-004" {
		t.Fatalf("%+v %v", a, err)
	}
	all, err := s.Findings()
	if err != nil || len(all) != 4 || all[3].Title != "after" || all[2].Suppressed != nil {
		t.Errorf("%+v %v", all, err)
	}
}

// TestAddFindingsAtOnce adds from many sides; each finding has its own id.
func TestAddFindingsAtOnce(t *testing.T) {
	t.Parallel()
	s := bareSession(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			other := &Session{m: s.m, Site: &site.Site{Host: s.Host, Folder: s.Folder, Rec: s.Rec}}
			if _, err := other.AddFinding(context.Background(), json.RawMessage(fmt.Sprintf(`{"severity":"info","title":"t%d"}`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := s.Findings()
	seen := map[string]bool{}
	for _, f := range all {
		seen[f.ID] = true
	}
	if err != nil || len(all) != 20 || len(seen) != 20 {
		t.Errorf("%d findings, %d ids, %v", len(all), len(seen), err)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	s := bareSession(t)
	line := []byte(`{"severity":"low","title":"x","description":"` + strings.Repeat("y", 900<<10) + `","id":"big"}` + "\n")
	if err := os.WriteFile(s.findingsPath(), []byte(strings.Repeat(string(line), maxFindingsFile/len(line))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFinding(context.Background(), json.RawMessage(strings.Replace(string(line), "big", "more", 1))); err == nil || !strings.Contains(err.Error(), "takes no more") {
		t.Errorf("%v", err)
	}
}

func TestFindFinding(t *testing.T) {
	t.Parallel()
	s := bareSession(t)
	for _, title := range []string{"one", "two"} {
		if _, err := s.AddFinding(context.Background(), json.RawMessage(`{"severity":"low","title":"`+title+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Findings()
	if err != nil {
		t.Fatal(err)
	}
	fp := list[1].Fingerprint()
	for _, ref := range []string{"finding-002", fp, fp[:6]} {
		if f, err := findFinding(list, ref); err != nil || f == nil || f.Title != "two" {
			t.Errorf("%s: %+v %v", ref, f, err)
		}
	}
	if f, err := findFinding(list, "0123456789abcdef"); err != nil || f != nil {
		t.Errorf("a fingerprint of none: %+v %v", f, err)
	}
	for _, ref := range []string{"", "x", "finding-003"} {
		if _, err := findFinding(list, ref); err == nil {
			t.Errorf("%q was found", ref)
		}
	}
}
