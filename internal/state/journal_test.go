package state

import (
	"os"
	"testing"
	"time"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	j := OpenJournal(t.TempDir(), time.Now)
	for _, step := range []string{"open", "copy"} {
		if err := j.Write(step, map[string]string{"k": "v\n"}); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := j.read()
	if err != nil || len(steps) != 2 || steps[0].Step != "open" || steps[1].Step != "copy" {
		t.Fatalf("read %+v, %v", steps, err)
	}
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		steps, err := parseJournal(data[:cut])
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if want := cut / (len(data) / 2); len(steps) > want+1 {
			t.Errorf("cut at %d: %d steps", cut, len(steps))
		}
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte("{\"step\":\"open\"}\n{\"st"))
	f.Fuzz(func(t *testing.T, data []byte) {
		steps, _ := parseJournal(data)
		again, err := parseJournal(data)
		if err == nil && len(steps) != len(again) {
			t.Error("the same journal reads differently")
		}
	})
}
