package frozen_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

func options(t *testing.T) frozen.Options {
	dir := t.TempDir()
	return frozen.Options{Dir: filepath.Join(dir, "base"), Top: t.TempDir(), Format: snapshot.SHA1, Trash: filepath.Join(dir, "trash")}
}

func current(t *testing.T, opt frozen.Options) *frozen.State {
	t.Helper()
	st, err := frozen.Current(t.Context(), opt)
	must(t, err)
	return st
}

// TestNotCopied holds that what cannot be copied any more is not shown as it was in a
// layer below, and is not a change of its own each time.
func TestNotCopied(t *testing.T) {
	t.Parallel()
	opt := options(t)
	at := func(name string) string { return filepath.Join(opt.Top, name) }
	for _, name := range []string{"socket", "secret", "dir/a", "dir/b", "shut/gone", "shut/kept", "new"} {
		must(t, os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte(name), 0o644))
	}
	for i := range 40 {
		must(t, os.WriteFile(at(fmt.Sprint("same", i)), nil, 0o644))
	}
	current(t, opt)
	must(t, os.Remove(at("socket")), unix.Mkfifo(at("socket"), 0o600))
	must(t, os.RemoveAll(at("dir")), unix.Mkfifo(at("dir"), 0o600))
	must(t, os.Remove(at("secret")), os.WriteFile(at("secret"), []byte("other"), 0o000))
	must(t, os.Remove(at("shut/gone")), os.Chmod(at("shut"), 0o555))
	must(t, os.Remove(at("new")), os.Mkdir(at("new"), 0o555))
	t.Cleanup(func() {
		for _, pattern := range []string{"shut", "new"} {
			dirs, err := filepath.Glob(filepath.Join(opt.Dir, "*", "tree", pattern))
			for _, dir := range append(dirs, at(pattern)) {
				err = errors.Join(err, os.Chmod(dir, 0o755))
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	st := current(t, opt)
	if len(st.Lower) != 2 {
		t.Errorf("layers: %q", st.Lower)
	}
	got := shown(t, st.Lower)
	for _, e := range st.Base.Entries {
		if o, ok := got[e.Path]; !ok || !e.Same(&o) {
			t.Errorf("%s: the layers show %+v, the base says %+v", e.Path, o, e)
		}
		delete(got, e.Path)
	}
	for path := range got {
		t.Errorf("%s is shown, and is not in the base", path)
	}
	if again := current(t, opt); again.Number != st.Number {
		t.Errorf("nothing was changed, and state %d became %d", st.Number, again.Number)
	}
}
