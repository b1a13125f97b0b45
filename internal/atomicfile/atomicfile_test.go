package atomicfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	for _, tt := range []struct {
		data string
		perm os.FileMode
	}{{"one", 0o600}, {"", 0o644}, {strings.Repeat("two", 100_000), 0o755}} {
		if err := atomicfile.Write(p, []byte(tt.data), tt.perm); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(p)
		if err != nil || string(got) != tt.data {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if st, err := os.Stat(p); err != nil || runtime.GOOS != "windows" && st.Mode() != tt.perm {
			t.Errorf("mode %v, %v, want %v", st.Mode(), err, tt.perm)
		}
	}
	if d := cmp.Diff([]string{"f"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestWriteLongName(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	if err := atomicfile.Write(p, []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestErrorKeepsTheOldFile holds that nothing half-made stays, whatever fails.
func TestErrorKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	if err := atomicfile.Write(p, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := atomicfile.WriteFunc(p, 0o600, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("error is %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "folder"), []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if err := atomicfile.Write(filepath.Join(dir, "absent", "f"), []byte("x"), 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if got, err := os.ReadFile(p); err != nil || string(got) != "old" {
		t.Errorf("read %q, %v", got, err)
	}
	if d := cmp.Diff([]string{"f", "folder"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestReplace holds that Replace takes the place of whatever stands there, leaves
// nothing beside it, and on an error leaves the old file.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two", ""} {
		if err := atomicfile.Replace(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st, err)
	}
	folder := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(folder, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(folder, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if got, err := os.ReadDir(dir); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWriteReplacesALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "mine" {
		t.Errorf("the link was followed: %q, %v", got, err)
	}
}

func TestWriteJSONKeepsUnknownKeys(t *testing.T) {
	t.Parallel()
	type record struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for _, tt := range []struct{ name, old, want string }{
		{"none", "", "{\n \"a\": 1,\n \"b\": \"\"\n}\n"},
		{"known only", `{"b":"x","a":7}`, "{\n \"a\": 1,\n \"b\": \"\"\n}\n"},
		{"unknown kept", `{"z":{"deep":[1,2.50]},"a":7}`, "{\n \"a\": 1,\n \"b\": \"\",\n \"z\": {\n  \"deep\": [\n   1,\n   2.50\n  ]\n }\n}\n"},
		{"null", `null`, "{\n \"a\": 1,\n \"b\": \"\"\n}\n"},
		{"broken", `{"z":`, "{\n \"a\": 1,\n \"b\": \"\"\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := filepath.Join(t.TempDir(), "f.json")
			if tt.old != "" {
				if err := os.WriteFile(p, []byte(tt.old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := atomicfile.WriteJSON(p, record{A: 1}); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWriteJSONRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(p, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{nil, 1, []int{1}, func() {}} {
		if err := atomicfile.WriteJSON(p, v); err == nil {
			t.Errorf("%T was written", v)
		}
	}
	if got, err := os.ReadFile(p); err != nil || string(got) != `{"a":1}` {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestConcurrentWriters holds that a reader sees one writer's whole file at any
// time, and that no temporary file stays.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	contents := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%02d", i), 20_000) }
	if err := atomicfile.Write(p, contents(0), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 20 {
		writers.Go(func() {
			for range 5 {
				if err := atomicfile.Write(p, contents(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			got, err := os.ReadFile(p)
			if err != nil || len(got) != 40_000 || !bytes.Equal(got, bytes.Repeat(got[:2], 20_000)) {
				t.Errorf("read a torn file of %d bytes, %v", len(got), err)
				return
			}
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
	if d := cmp.Diff([]string{"f"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

// FuzzWriteJSON holds that what was written is a JSON object that has the new
// keys, whatever the old file held.
func FuzzWriteJSON(f *testing.F) {
	for _, s := range []string{"", "{}", "null", "[]", `{"a":2,"z":1}`, `{"z":`, "\xff", `{"A":1}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, old []byte) {
		p := filepath.Join(dir, "f.json")
		if err := os.WriteFile(p, old, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.WriteJSON(p, map[string]int{"a": 1}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(data, &got); err != nil || string(got["a"]) != "1" {
			t.Errorf("%q turned into %q: %v", old, data, err)
		}
	})
}
