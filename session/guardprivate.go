package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// private reports whether git needs an index and an object store of the session's
// own: the kernel layer keeps those of the repository read-only. The shim leads it
// there.
func (s *Session) private(r GuardRecord) bool {
	return r.Shim == guard.LayerActive && s.rec.GitReadOnly && (s.rec.Mode == superqode.ModeWorktree || s.rec.Mode.InPlace())
}

func (s *Session) privateGit() *guard.PrivateGit {
	dir := filepath.Join(realPrefix(s.dir), "tmp", "git")
	return &guard.PrivateGit{Index: HostPath(filepath.Join(dir, "index")), Objects: HostPath(filepath.Join(dir, "objects"))}
}

// makePrivate makes them before the first program. The index begins as the
// workspace's own; what the program stages ends with the session.
func (s *Session) makePrivate() error {
	if !s.private(s.rec.Guard) {
		return nil
	}
	p := s.privateGit()
	if err := os.MkdirAll(string(p.Objects), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(string(p.Index)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	gitDir := s.rec.AdminDir
	if s.rec.Mode.InPlace() {
		gitDir = s.rec.GitDir
	}
	index, err := atomicfile.Read(filepath.Join(string(gitDir), "index"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the workspace's index: %w", err)
	}
	return os.WriteFile(string(p.Index), index, 0o600)
}
