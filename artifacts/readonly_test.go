package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadOnly looks at a store that it cannot write to. Root may write
// everywhere, so as root the test runs itself again as nobody.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		mustAdd(t, s, New{Type: TypeTrace, Name: fmt.Sprint(i), Data: []byte("x")})
	}
	if err := os.Remove(filepath.Join(s.origin, dotName, lockName)); err != nil {
		t.Fatal(err)
	}
	readable := func(dirMode, fileMode os.FileMode) {
		t.Helper()
		err := filepath.WalkDir(s.origin, func(p string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return os.Chmod(p, dirMode)
			}
			return os.Chmod(p, fileMode)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	readable(0o555, 0o444)
	defer readable(0o700, 0o600)
	cmd := childCommand(t, "readonly", s.origin)
	if os.Geteuid() == 0 {
		asNobody(t, cmd)
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip("nobody but root reaches the temporary folder")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// asNobody lets cmd, this test binary, run without root's rights: from a copy, for
// the go command's build folder is closed to others.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	src, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(filepath.Join(dir, "test"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	for d := dir; strings.HasPrefix(d, filepath.Clean(os.TempDir())+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Path, cmd.Args[0], cmd.Dir = dst.Name(), dst.Name(), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
}

func readOnlyChild(ctx context.Context, s *Store) error {
	list, err := s.List(ctx, Filter{})
	if err != nil || len(list) != 3 {
		return fmt.Errorf("List: %d entries, %w", len(list), err)
	}
	if c, err := s.Verify(ctx); err != nil || !c.OK() || c.Checked != 3 {
		return fmt.Errorf("Verify: %+v, %w", c, err)
	}
	if _, err := s.Add(ctx, New{Type: TypeTrace, Name: "new", Data: []byte("x")}); !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("Add: %w, want permission denied", err)
	}
	return nil
}
