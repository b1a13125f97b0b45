package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
)

type record struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// TestCut cuts a file at every byte, as a killed writer would, and appends: what was
// whole before is read, and so is what was appended.
func TestCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.jsonl")
	if err := errors.Join(ledger.Append(path, record{1, "a\nb"}, record{2, "ü"}), ledger.AppendSynced(path, record{3, ""}), ledger.Append[record](path)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) + 1 {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Count(data[:cut], []byte("\n"))
		before, bad, err := ledger.Read[record](path)
		if err != nil || len(bad) > 0 || len(before) < whole || len(before) > whole+1 {
			t.Fatalf("cut at %d: %v, %v, %v", cut, before, bad, err)
		}
		if err := ledger.Append(path, record{9, "new"}); err != nil {
			t.Fatal(err)
		}
		after, _, err := ledger.Read[record](path)
		if err != nil || !slices.Equal(after, append(before, record{9, "new"})) {
			t.Fatalf("cut at %d: %v, then %v, %v", cut, before, after, err)
		}
		got, err := os.ReadFile(path)
		if line, _ := ledger.Lines(record{9, "new"}); err != nil || !bytes.Equal(got, ledger.Extend(data[:cut], line)) {
			t.Fatalf("cut at %d: Append left %q, %v", cut, got, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, data string
		ids        []int
		bad        []int // lines
	}{
		{"nothing", "", nil, nil},
		{"no line end", `{"id":1}`, []int{1}, nil},
		{"torn", "{\"id\":1}\n{\"id\":", []int{1}, nil},
		{"ended later", "{\"id\":1}\n{\"id\":\n{\"id\":2}\n", []int{1, 2}, []int{2}},
		{"empty lines", "\n{\"id\":1}\n \r\n\n{\"id\":2}\r\n", []int{1, 2}, nil},
		{"unknown field", "{\"id\":1,\"later\":{\"x\":[]}}\n", []int{1}, nil},
		{"other types", "[]\n{\"id\":\"1\"}\n{\"id\":2}\n", []int{2}, []int{1, 2}},
	} {
		records, bad := ledger.Parse[record]([]byte(tt.data))
		var ids, lines []int
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		for _, b := range bad {
			lines = append(lines, b.Line)
			if !strings.HasPrefix(b.Error(), fmt.Sprintf("line %d: ", b.Line)) || errors.Unwrap(b) == nil {
				t.Errorf("%s: %v", tt.name, b)
			}
		}
		if !slices.Equal(ids, tt.ids) || !slices.Equal(lines, tt.bad) {
			t.Errorf("%s: records %v, bad lines %v", tt.name, ids, lines)
		}
	}
}

func TestNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if records, bad, err := ledger.Read[record](filepath.Join(dir, "none")); len(records)+len(bad) > 0 || err != nil {
		t.Error(records, bad, err)
	}
	if _, _, err := ledger.Read[record](dir); !errors.Is(err, atomicfile.ErrNotRegular) {
		t.Error(err)
	}
	if err := ledger.Append(dir, record{}); !errors.Is(err, atomicfile.ErrNotRegular) {
		t.Error(err)
	}
	if err := ledger.Append(filepath.Join(dir, "l"), func() {}); err == nil {
		t.Error("a function is a record")
	}
}

// TestSeveralAppend has many append at a time to a file that ends in half a line.
func TestSeveralAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.jsonl")
	if err := os.WriteFile(path, []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for writer := range 8 {
		all.Go(func() {
			for n := range 50 {
				if err := ledger.Append(path, record{writer*50 + n, strings.Repeat("x", n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	records, bad, err := ledger.Read[record](path)
	if len(records) != 400 || len(bad) != 1 || err != nil {
		t.Errorf("%d records, %v, %v", len(records), bad, err)
	}
}

// FuzzParse: what is appended to any file is read back behind what was read before,
// and every line is a record, empty, torn or reported.
func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"id\":1}\n{\"id"), "text")
	f.Add([]byte("\r\n\n[]\n"), "a\nb")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		before, bad := ledger.Parse[record](data)
		if lines := bytes.Count(data, []byte("\n")) + 1; len(before)+len(bad) > lines {
			t.Fatalf("%d records and %d bad lines of %d lines", len(before), len(bad), lines)
		}
		line, err := ledger.Lines(record{7, text})
		if err != nil {
			t.Fatal(err)
		}
		after, _ := ledger.Parse[record](ledger.Extend(data, line))
		var want record
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(after, append(before, want)) {
			t.Fatalf("%q: read %v, then %v", data, before, after)
		}
	})
}
