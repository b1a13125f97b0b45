package life

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// What cannot be read is opened, a folder before what is in it, and closed
// again as it was; links are left alone, and so is everything in place.
func TestOpenUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, folder, outside := filepath.Join(dir, "f"), filepath.Join(dir, "d"), filepath.Join(t.TempDir(), "out")
	for _, err := range []error{
		os.WriteFile(file, nil, 0o600), os.WriteFile(outside, nil, 0o600), os.Mkdir(folder, 0o700), os.Symlink(outside, filepath.Join(dir, "l")),
		os.Chmod(file, 0o011), os.Chmod(outside, 0), os.Chmod(folder, 0o055),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var problems []snapshot.Problem
	for _, name := range []superqode.RelPath{"f", "d", "l", "none"} {
		problems = append(problems, snapshot.Problem{Path: name, Err: syscall.EACCES})
	}
	perm := func(path string) os.FileMode {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode().Perm()
	}
	if inPlace := (&mode.Look{InPlace: true}); inPlace.Open(dir, problems) || perm(file) != 0o011 {
		t.Error("opened a file of the origin")
	}
	l := &mode.Look{}
	if !l.Open(dir, problems) || perm(file) != 0o411 || perm(folder) != 0o555 || perm(outside) != 0 {
		t.Errorf("opened: file %o, folder %o, link's target %o", perm(file), perm(folder), perm(outside))
	}
	if l.Open(dir, problems) {
		t.Error("opened twice")
	}
	if err := l.Close(); err != nil || perm(file) != 0o011 || perm(folder) != 0o055 {
		t.Errorf("closed: %v, file %o, folder %o", err, perm(file), perm(folder))
	}
}
