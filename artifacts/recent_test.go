package artifacts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

// longManifest writes the manifest of so many sessions as superqode would have, of
// files that are gone.
func longManifest(t testing.TB, s *Store, sessions int) {
	t.Helper()
	m := manifest{version: manifestVersion, updated: At(now())}
	for i := range sessions {
		id, created := numberedSession(t, i)
		for _, ext := range []string{"json", "md", "html"} {
			path, err := superqode.ParseRelPath(ReportFile(id, ext))
			if err != nil {
				t.Fatal(err)
			}
			m.add(Artifact{Type: TypeQR, Name: "report", Path: path, Session: id, CreatedAt: created, SHA256: strings.Repeat("0", 64)})
		}
	}
	p, err := s.open(true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.writeManifest(&m, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// numberedSession returns the session that began n seconds after the first.
func numberedSession(t testing.TB, n int) (superqode.SessionID, time.Time) {
	t.Helper()
	began := time.Date(2026, 1, 2, 3, 0, n, 0, time.UTC)
	id, err := superqode.ParseSessionID("qe-" + began.Format("20060102-150405") + "-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return id, began.Add(time.Second / 2)
}

// TestAddingCostsWhatIsAdded counts the work of two additions by one session, as its
// end makes them, and of looking at them: what other sessions have left counts for nothing.
func TestAddingCostsWhatIsAdded(t *testing.T) {
	work := func(sessions int) float64 {
		s, n := openStore(t), sessions
		longManifest(t, s, sessions)
		return testing.AllocsPerRun(5, func() {
			n++
			id, _ := numberedSession(t, n)
			mustAdd(t, s, New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte("log")})
			mustAdd(t, s, New{Type: TypeQR, Path: ReportFile(id, "json"), Session: id, Data: []byte("{}")})
			if list, err := s.List(context.Background(), Filter{Session: id}); err != nil || len(list) != 2 {
				t.Errorf("List = %v, %v", list, err)
			}
		})
	}
	if few, many := work(100), work(5000); many > 1.2*few {
		t.Errorf("%.0f allocations with 100 sessions in the manifest, %.0f with 5,000", few, many)
	}
}

// TestRecentIsAsWhole states the law: what is added without reading the whole
// manifest is what is added with it.
func TestRecentIsAsWhole(t *testing.T) {
	t.Parallel()
	ctx, random := context.Background(), rand.New(rand.NewPCG(1, 2))
	recently, whole := openStore(t), openStore(t)
	longManifest(t, recently, 60)
	longManifest(t, whole, 60)
	times := regexp.MustCompile(`"(created|updated)_at": "[^"]*"`)
	for step := range 80 {
		id, _ := numberedSession(t, 60+random.IntN(5))
		other, _ := numberedSession(t, 60+random.IntN(5))
		data := fmt.Append(nil, random.IntN(3))
		n := New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: data}
		switch random.IntN(6) {
		case 0:
			n = New{Type: TypeTrace, Name: "t", Session: id, Data: data}
		case 1:
			n = New{Type: TypeQR, Path: ReportFile(id, "json"), Session: other, Data: data}
		case 2:
			n = New{Type: TypeTrace, Name: "manual", Data: data}
		}
		lose, save := random.IntN(8) == 0, random.IntN(10) == 0
		var did []string
		for _, s := range []*Store{recently, whole} {
			if s == whole {
				mustWrite(t, "", s.origin, dotName, lockName)
			}
			a, err := s.Add(ctx, n)
			if save {
				_, serr := s.Save(ctx, New{Type: TypeTrace, Name: "n", Session: id, Data: data})
				err = errors.Join(err, serr)
			}
			if lose && err == nil {
				if err := os.Remove(s.File(a)); err != nil {
					t.Fatal(err)
				}
			}
			list, lerr := s.List(ctx, Filter{Session: id})
			for i := range list {
				list[i].CreatedAt = a.CreatedAt
			}
			text := mustRead(t, s.Dir(), manifestName)
			if !json.Valid([]byte(text)) {
				t.Fatalf("step %d: not JSON:\n%s", step, text)
			}
			did = append(did, fmt.Sprint(a.ID, err, len(list), lerr, times.ReplaceAllString(text, "")))
		}
		if did[0] != did[1] {
			t.Fatalf("step %d: %s\n\nwith the whole manifest: %s", step, did[0], did[1])
		}
	}
}

// TestDamageAmidOldEntries: what somebody writes into the manifest, however soon after
// superqode and wherever, the next addition reads.
func TestDamageAmidOldEntries(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := openStore(t)
		longManifest(t, s, 100)
		id, _ := numberedSession(t, 100)
		old, _ := numberedSession(t, 1)
		name := filepath.Join(s.Dir(), manifestName)
		log := New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id}
		mustAdd(t, s, log)
		if info, err := os.Stat(name); err != nil || time.Since(info.ModTime()) < time.Second {
			t.Fatalf("a write within the same tick of the clock would not be seen: %v, %v", info.ModTime(), err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[bytes.Index(data, []byte(`"`+old.String()+`"`))] = 'X'
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		log.Data = []byte("more")
		mustAdd(t, s, log)
		if got, err := os.ReadFile(name + ".broken-1"); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("the damaged manifest was not kept: %v", err)
		}
	}
}
