package artifacts

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseManifest(t *testing.T) {
	t.Parallel()
	const entry = `{"id":"log-007","type":"log","path":"logs/a"}`
	for _, tt := range []struct {
		in               string
		entries, counter int
		problems         int
		err              string
	}{
		{`{}`, 0, 0, 0, ""},
		{`{"schema_version":1,"counter":3,"artifacts":[` + entry + `]}`, 1, 7, 0, ""},
		{`{"counter":9,"artifacts":[` + entry + `,42,{"id":"x"},{"id":"x","path":"../y"}]}`, 4, 9, 3, ""},
		{`{"artifacts":[{"id":"video-1","type":"video","path":"evidence/v"}]}`, 1, 1, 0, ""},
		{``, 0, 0, 0, "not a JSON object"},
		{`null`, 0, 0, 0, "not a JSON object"},
		{`[]`, 0, 0, 0, "not a JSON object"},
		{`{"artifacts":{}}`, 0, 0, 0, "not a list"},
		{`{"artifacts":[` + entry + `,{"id":`, 1, 7, 0, "artifacts[1]"},
		{`{"artifacts":[` + entry + `]`, 1, 7, 0, "EOF"},
		{`{"artifacts":[` + entry + `]} x`, 1, 7, 0, "after the end"},
		{`{"counter":-1}`, 0, 0, 0, "counter"},
		{`{"counter":1e30}`, 0, 0, 0, "counter"},
		{`{"counter":"1"}`, 0, 0, 0, "counter"},
		{`{"schema_version":0}`, 0, 0, 0, "schema_version"},
		{`{"updated_at":"yesterday"}`, 0, 0, 0, "updated_at"},
		{strings.Repeat("[", 100000), 0, 0, 0, "not a JSON object"},
		{`{"x":` + strings.Repeat("[", 100000), 0, 0, 0, "depth"},
	} {
		m, problems, err := parseManifest([]byte(tt.in))
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("parseManifest(%.80s) = %v, want an error with %q", tt.in, err, tt.err)
		}
		if len(m.entries) != tt.entries || m.counter != tt.counter || len(problems) != tt.problems {
			t.Errorf("parseManifest(%.80s): %d entries, counter %d, problems %v", tt.in, len(m.entries), m.counter, problems)
		}
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	s, id := openStore(t), sessionAt(t, 0)
	log := New{Type: TypeLog, Path: SessionLog(id, "setup"), Session: id, Data: []byte("1")}
	mustAdd(t, s, log)
	mustAdd(t, s, New{Type: TypeTrace, Name: "t"})
	name := filepath.Join(s.Dir(), manifestName)
	text := mustRead(t, name)
	text = strings.Replace(text, `"counter"`, `"future": {"a": 1e400, "b": [null]}, "counter"`, 1)
	text = strings.ReplaceAll(text, `"size"`, `"stars": 5, "size"`)
	text = strings.Replace(text, `"artifacts": [`, `"artifacts": [ {"id": 7, "odd": true},`, 1)
	mustWrite(t, text, name)
	log.Data = []byte("changed")
	mustAdd(t, s, log)
	mustAdd(t, s, New{Type: TypeTrace, Name: "u"})
	got := mustRead(t, name)
	for want, n := range map[string]int{`"future"`: 1, `1e400`: 1, `"stars": 5`: 2, `"odd": true`: 1, `"id": 7`: 1} {
		if strings.Count(got, want) != n {
			t.Errorf("the manifest has %q %d times, want %d:\n%s", want, strings.Count(got, want), n, got)
		}
	}
	wantCount(t, s, 3)
}

func TestNewerManifest(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	mustAdd(t, s, New{Type: TypeTrace, Name: "t"})
	name := filepath.Join(s.Dir(), manifestName)
	text := strings.Replace(mustRead(t, name), `"schema_version": 1`, `"schema_version": 2`, 1)
	mustWrite(t, text, name)
	if _, err := s.Add(context.Background(), New{Type: TypeTrace, Name: "u"}); err == nil || !strings.Contains(err.Error(), "newer superqode") {
		t.Errorf("Add to a newer manifest: %v", err)
	}
	if mustRead(t, name) != text {
		t.Error("a newer manifest was touched")
	}
	if list, err := os.ReadDir(filepath.Join(s.Dir(), "evidence", "manual")); err != nil || len(list) != 1 {
		t.Errorf("the refused file stayed: %v %v", list, err)
	}
}

func TestRebuild(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		breakIt func(string) string
		kept    string
	}{
		"truncated": {func(s string) string { return s[:strings.Index(s, `"trace-002"`)] }, "log-001 log-004"},
		"empty":     {func(string) string { return "" }, ""},
		"garbage":   {func(string) string { return "\x00\xff" }, ""},
		"missing":   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, id, ctx := openStore(t), sessionAt(t, 0), context.Background()
			mustAdd(t, s, New{Type: TypeLog, Name: "first", Path: SessionLog(id, "command"), Session: id, Data: []byte("1"), Description: "kept"})
			mustAdd(t, s, New{Type: TypeTrace, Name: "second", Session: id, Data: []byte("2")})
			mustAdd(t, s, New{Type: TypeTestUnit, Name: "third", Session: id, Data: []byte("3")})
			file := filepath.Join(s.Dir(), manifestName)
			old := mustRead(t, file)
			if tt.breakIt == nil {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			} else {
				mustWrite(t, tt.breakIt(old), file)
			}
			if c := mustVerify(t, s); c.OK() {
				t.Error("Verify found nothing wrong")
			}
			if tt.breakIt == nil { // only who writes rebuilds a missing manifest
				mustAdd(t, s, New{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte("1")})
			}
			list, err := s.List(ctx, Filter{Session: id})
			if err != nil || len(list) != 3 {
				t.Fatalf("List = %+v, %v", list, err)
			}
			wantOK(t, s, 3)
			warned := ""
			for _, w := range s.Warnings() {
				warned += w.String() + "\n"
			}
			if tt.breakIt != nil {
				if got := mustRead(t, file+".broken-1"); got != tt.breakIt(old) {
					t.Errorf("the broken manifest was kept as %q", got)
				}
				if !strings.Contains(warned, "kept as manifest.json.broken-1") {
					t.Errorf("warnings: %s", warned)
				}
			}
			if !strings.Contains(warned, "generated-tests/unit/"+id.String()+"/third: entered anew as test-unit-") {
				t.Errorf("warnings: %s", warned)
			}
			if name == "truncated" && (list[0].Description != "kept" || list[0].ID != "log-001") {
				t.Errorf("what could be read was not kept: %+v", list[0])
			}
			ids := map[string]bool{}
			for _, a := range list {
				ids[a.ID] = true
			}
			if len(ids) != 3 {
				t.Errorf("ids are not unique: %v", ids)
			}
		})
	}
}

func TestTwiceBroken(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	mustAdd(t, s, New{Type: TypeTrace, Name: "t"})
	for _, text := range []string{"one", "two"} {
		mustWrite(t, text, s.Dir(), manifestName)
		wantCount(t, s, 1)
	}
	if a, b := mustRead(t, s.Dir(), manifestName+".broken-1"), mustRead(t, s.Dir(), manifestName+".broken-2"); a != "one" || b != "two" {
		t.Errorf("kept %q and %q", a, b)
	}
	wantOK(t, s, 1)
}

// FuzzManifest states the law: whatever the bytes, no panic; what parses is
// written back with every entry and every unknown field; and a file cut anywhere
// still gives the entries before the cut.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"session_id":"qe-20260102-030000-abcdea","updated_at":"2026-01-02T03:04:05Z","counter":2,"artifacts":[{"id":"log-001","type":"log","name":"n","path":"logs/a","metadata":{"x":1},"new":[1]},7],"more":{"a":1}}`), 60)
	f.Add([]byte(`{"artifacts":[{"id":"a","path":"p"}],"artifacts":[{"id":"b","path":"q"}]}`), 40)
	f.Add([]byte(`{"Artifacts":[],"COUNTER":5,"":null}`), 3)
	f.Add([]byte("{\"a\xff\":\"\xff\",\"artifacts\":[{\"id\":\"\xff\",\"path\":\"\xff\"}]}"), 9)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		m, _, err := parseManifest(data)
		if err != nil {
			return
		}
		out, err := m.encode()
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		again, _, err := parseManifest(out)
		if err != nil {
			t.Fatalf("parse again: %v\n%s", err, out)
		}
		if len(again.entries) != len(m.entries) || len(again.extra) != len(m.extra) || again.counter != m.counter {
			t.Fatalf("%d entries and %d unknown fields became %d and %d", len(m.entries), len(m.extra), len(again.entries), len(again.extra))
		}
		for i := range m.entries {
			a, b := &m.entries[i], &again.entries[i]
			if a.opaque != b.opaque || !a.opaque && !reflect.DeepEqual(mustJSON(t, a.Artifact), mustJSON(t, b.Artifact)) {
				t.Fatalf("entry %d changed: %s, %s", i, a.raw, b.raw)
			}
		}
		if cut >= 0 && cut < len(data) {
			part, _, _ := parseManifest(data[:cut])
			if len(part.entries) > len(m.entries) {
				t.Fatalf("cutting made entries")
			}
			for i := range part.entries {
				if string(part.entries[i].raw) != string(m.entries[i].raw) && i < len(part.entries)-1 {
					t.Fatalf("cutting changed entry %d", i)
				}
			}
		}
	})
}

func mustJSON(t testing.TB, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
