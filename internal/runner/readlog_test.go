package runner

import (
	"io"
	"path/filepath"
	"testing"
)

func TestReadLog(t *testing.T) {
	t.Parallel()
	spec := shell(t, "logged() { until grep -q $1 $LOG; do sleep 0.01; done; }; "+
		"echo one; logged one; echo two >&2; logged two; echo three; logged three; echo four >&2")
	dir := t.TempDir()
	spec.Log, spec.LogIndex = filepath.Join(dir, "log"), filepath.Join(dir, "index")
	spec.Env = append(spec.Env, "LOG="+spec.Log)
	if _, _, _, err := output(t, spec); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]string{"": "one\ntwo\nthree\nfour\n", "stdout": "one\nthree\n", "stderr": "two\nfour\n"} {
		r, err := OpenLog(spec.Log, spec.LogIndex, stream)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil {
			t.Errorf("%q: %q %v", stream, got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := OpenLog(spec.Log, spec.LogIndex, "stdin"); err == nil {
		t.Error("stdin was opened")
	}
	if _, err := OpenLog("/dev/null", "", ""); err == nil {
		t.Error("a device was opened")
	}
}
