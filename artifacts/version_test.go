package artifacts

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
)

func TestSavedVersions(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	save := func(data string) Named {
		t.Helper()
		n, err := s.Save(ctx, New{Type: TypeTrace, Name: "model.bin", Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, data := range []string{"one", "two", "one"} {
		if n := save(data); n.Version != i+1 || n.Name != "model.bin" {
			t.Errorf("save %d gave %v", i+1, n)
		}
	}
	if n := save("one"); n.Version != 3 {
		t.Errorf("saved again it became %v", n)
	}
	for ref, want := range map[string]int{"model.bin": 3, "model.bin@1": 1, "model.bin@2": 2, "trace-002": 2} {
		if n, err := s.Resolve(ctx, ref); err != nil || n.Version != want {
			t.Errorf("%s: %v %v", ref, n, err)
		}
	}
	for _, ref := range []string{"model.bin@4", "model.bin@0", "model.bin@x", "other", "@1", ""} {
		if _, err := s.Resolve(ctx, ref); !errors.Is(err, superqode.ErrNotFound) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	for _, name := range []string{"", "../x", "a/b", "a@1", ".x", "a\nb"} {
		if _, err := s.Save(ctx, New{Type: TypeTrace, Name: name}); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q was accepted: %v", name, err)
		}
	}
	// a lost manifest is rebuilt with the versions
	if err := os.Remove(filepath.Join(s.Dir(), manifestName)); err != nil {
		t.Fatal(err)
	}
	if n := save("four"); n.Version != 4 {
		t.Errorf("after the rebuild: %v", n)
	}
	if n, err := s.Resolve(ctx, "model.bin@2"); err != nil || n.Version != 2 {
		t.Errorf("after the rebuild: %v %v", n, err)
	}
}

// TestVersionIsNeverGivenTwice holds that name@2 does not change its meaning when
// it is removed.
func TestVersionIsNeverGivenTwice(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second := sessionAt(t, 1), sessionAt(t, 2)
	for i, id := range []superqode.SessionID{first, second} {
		if _, err := s.Save(t.Context(), New{Type: TypeTrace, Name: "x", Session: id, Data: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Remove(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Save(t.Context(), New{Type: TypeTrace, Name: "x", Session: first, Data: []byte("new")}); err != nil || n.Version != 3 {
		t.Errorf("%v %v", n, err)
	}
}

func TestSaveAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	seen := make([]int, 12)
	for i := range seen {
		wg.Go(func() {
			s, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := s.Save(t.Context(), New{Type: TypeLog, Name: "run", Data: []byte{byte(i)}})
			if err != nil || n.Version < 1 || n.Version > len(seen) {
				t.Errorf("%v %v", n, err)
				return
			}
			seen[i] = n.Version
		})
	}
	wg.Wait()
	used := map[int]bool{}
	for _, v := range seen {
		if used[v] {
			t.Errorf("version %d was given twice", v)
		}
		used[v] = true
	}
}
