package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Nothing but a regular file is read or written, and nothing waits for a writer
// or a reader that never comes.
func TestReadRegularOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if data, err := atomicfile.Read(at("file")); string(data) != "text" || err != nil {
		t.Errorf("Read(file) = %q, %v", data, err)
	}
	if _, err := atomicfile.Read(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read(none): %v", err)
	}
	if data, err := atomicfile.ReadThrough(at("link")); string(data) != "text" || err != nil {
		t.Errorf("ReadThrough(link) = %q, %v", data, err)
	}
	if _, err := atomicfile.ReadThrough(at("fifo")); !errors.Is(err, atomicfile.ErrNotRegular) {
		t.Errorf("ReadThrough(fifo): %v", err)
	}
	for _, name := range []string{"link", "folder", "fifo"} {
		if _, err := atomicfile.Read(at(name)); !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("Read(%s): %v", name, err)
		}
		if _, err := atomicfile.Append(at(name), 0o600); !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("Append(%s): %v", name, err)
		}
	}
	f, err := atomicfile.Append(at("file"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" more"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := atomicfile.Read(at("file")); string(data) != "text more" || err != nil {
		t.Errorf("after Append: %q, %v", data, err)
	}
}
