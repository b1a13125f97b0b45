package findings

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

func bareLog(t *testing.T) Log { return Log{Dir: t.TempDir(), At: time.Now()} }

func add(t *testing.T, l Log, raws ...string) []Added {
	t.Helper()
	unlock, err := lock(context.Background(), l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	list := make([]json.RawMessage, len(raws))
	for i, r := range raws {
		list[i] = json.RawMessage(r)
	}
	out, _, err := l.add(list, addOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAddFindings(t *testing.T) {
	t.Parallel()
	l := bareLog(t)
	list := add(t, l, `{"severity":"low","title":"a"}`, `{"severity":"odd","title":"b"}`, `{"severity":"low","title":"c","id":"own","wat":1}`,
		`{"severity":"low","title":"d","id":"own"}`, `7`, `{"severity":"low","title":"e","suppressed":{"reason":"mine"}}`)
	for i, want := range []string{"finding-001", "", "own", "", "", "finding-003"} {
		if list[i].ID != want || (list[i].Err == nil) != (want != "") {
			t.Errorf("finding %d: %+v", i, list[i])
		}
	}
	if len(list[2].Ignored) != 1 {
		t.Errorf("ignored: %v", list[2].Ignored)
	}
	// half a line that a killed writer left costs no other
	f, err := atomicfile.Append(filepath.Join(l.Dir, state.FindingsFile), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"severity":"low","ti`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if a := add(t, l, `{"severity":"high","title":"after"}`)[0]; a.Err != nil || a.ID != "finding-004" {
		t.Fatalf("%+v", a)
	}
	all, err := l.List()
	if err != nil || len(all) != 4 || all[3].Title != "after" || all[2].Suppressed != nil {
		t.Errorf("%+v %v", all, err)
	}
}

// TestAddFindingsAtOnce adds from many sides; each finding has its own id.
func TestAddFindingsAtOnce(t *testing.T) {
	t.Parallel()
	l := bareLog(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if a := add(t, l, fmt.Sprintf(`{"severity":"info","title":"t%d"}`, i))[0]; a.Err != nil {
				t.Error(a.Err)
			}
		})
	}
	wg.Wait()
	all, err := l.List()
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
	l := bareLog(t)
	line := []byte(`{"severity":"low","title":"x","description":"` + strings.Repeat("y", 900<<10) + `","id":"big"}` + "\n")
	if err := os.WriteFile(filepath.Join(l.Dir, state.FindingsFile), []byte(strings.Repeat(string(line), maxLog/len(line))), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := add(t, l, strings.Replace(string(line), "big", "more", 1))[0]; a.Err == nil || !strings.Contains(a.Err.Error(), "takes no more") {
		t.Errorf("%v", a.Err)
	}
}

func TestFindFinding(t *testing.T) {
	t.Parallel()
	l := bareLog(t)
	for _, title := range []string{"one", "two"} {
		add(t, l, `{"severity":"low","title":"`+title+`"}`)
	}
	list, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	fp := list[1].Fingerprint()
	for _, ref := range []string{"finding-002", fp, fp[:6]} {
		if f, err := Find(list, ref); err != nil || f == nil || f.Title != "two" {
			t.Errorf("%s: %+v %v", ref, f, err)
		}
	}
	if f, err := Find(list, "0123456789abcdef"); err != nil || f != nil {
		t.Errorf("a fingerprint of none: %+v %v", f, err)
	}
	for _, ref := range []string{"", "x", "finding-003"} {
		if _, err := Find(list, ref); err == nil {
			t.Errorf("%q was found", ref)
		}
	}
}
