package attach

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// WriteOut copies the workspace as it is now, all but git's own folder, into a folder
// that is made or empty, for tools that must see it. It returns what was written, and
// what could not be read.
func (s *Attached) WriteOut(ctx context.Context, dir string) (*snapshot.Snapshot, []snapshot.Problem, error) {
	if err := s.Usable(); err != nil {
		return nil, nil, err
	}
	if why, err := mode.WorkspaceGone(s.Site); err != nil || why != "" {
		return nil, nil, mode.Ended(s.Site)
	}
	if _, err := s.Mount(ctx); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, err
	}
	if superqode.Within(superqode.RelPath(real), superqode.RelPath(superqode.RealPrefix(string(s.Rec.Workspace)))) {
		return nil, nil, superqode.Errorf(superqode.ErrUsage, "%s lies in the workspace itself", dir)
	}
	switch there, err := os.ReadDir(real); {
	case err != nil:
		return nil, nil, err
	case len(there) > 0:
		return nil, nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is not empty", dir), "name a folder that is not there yet")
	}
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return nil, nil, err
	}
	now, problems, err := snapshot.Scan(ctx, s.WorkDir(), snapshot.ScanOptions{Format: format, Contents: snapshot.StatOnly, Skip: mode.Skip(s.Site)})
	if err != nil {
		return nil, nil, fmt.Errorf("read the workspace: %w", err)
	}
	made, left, err := treecopy.Copy(ctx, now, real, treecopy.CopyOptions{})
	return made, append(problems, left...), err
}
