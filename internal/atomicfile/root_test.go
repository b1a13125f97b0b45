package atomicfile_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

func TestOpenRoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if r, err := atomicfile.OpenRoot(fifo); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("of a FIFO: %v, %v", r, err)
	}
	r, err := atomicfile.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Lstat("fifo"); err != nil {
		t.Error(err)
	}
}
