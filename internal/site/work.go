package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/overlay"
)

// HelperName is the small binary that stands in the sessions' folders as git and as
// git's hooks, confines programs and mounts workspaces.
const HelperName = "superqode-shim"

// ErrNoHelper means that there is no such binary.
var ErrNoHelper = errors.New(HelperName + " is not installed beside superqode")

// Helper returns that binary: the one that the caller named, else superqode-shim next to
// this program, else this program itself, which can do the same and starts more slowly.
func Helper(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(exe)
	if err != nil {
		real = exe
	}
	for _, dir := range []string{filepath.Dir(exe), filepath.Dir(real)} {
		p := filepath.Join(dir, HelperName)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	// Only superqode's own main knows what to do under the name of git. Any other
	// program of this package, a test say, would start itself over and over.
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, "/cmd/superqode") {
		return real, nil
	}
	return "", ErrNoHelper
}

// work is the mount of a workspace that programs see elsewhere, as this process has it
// open. The values of one session that were copied from one another share it.
type work struct {
	mu    sync.Mutex
	mount *overlay.Mount
}

// Upper is the folder that takes what is written to an overlay.
func (s *Site) Upper() string {
	return filepath.Join(superqode.RealPrefix(string(s.Rec.Workspace)), "upper")
}

func (s *Site) layers() overlay.Layers {
	dir := superqode.RealPrefix(string(s.Rec.Workspace))
	l := overlay.Layers{Upper: s.Upper(), Work: filepath.Join(dir, "work"),
		Socket: filepath.Join(kernel.SocketsDir(superqode.RealPrefix(s.Home)), s.Rec.ID.String())}
	l.Lower = s.Rec.Overlay.Lowers()
	return l
}

// Mount joins the mount of the session's overlay, or makes it, where the session has one.
func (s *Site) Mount(ctx context.Context) (_ *overlay.Mount, err error) {
	if s.Rec.Overlay == nil {
		return nil, nil
	}
	if s.work == nil {
		s.work = &work{}
	}
	s.work.mu.Lock()
	defer s.work.mu.Unlock()
	if s.work.mount != nil {
		return s.work.mount, nil
	}
	helper, err := Helper(s.Shim)
	if err != nil {
		return nil, err
	}
	l := s.layers()
	if _, err := os.Stat(l.Upper); err != nil { // the mounter would make another one
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(l.Socket), 0o700); err != nil {
		return nil, err
	}
	s.work.mount, err = overlay.Open(ctx, helper, l)
	if errors.Is(err, overlay.ErrLost) {
		err = superqode.WithHint(err, "superqode workspace end --session %s # collects what is there", s.Rec.ID)
	}
	if errors.Is(err, fs.ErrNotExist) { // a layer
		err = superqode.WithHint(err, "superqode workspace cleanup --force # salvages what was written, and removes the session")
	}
	if err != nil {
		err = errors.Join(err, overlay.Forget(s.Home))
		return nil, fmt.Errorf("mount the workspace of session %s: %w", s.Rec.ID, err)
	}
	return s.work.mount, nil
}

// Lost reports whether the machine was started anew before what the session's overlay
// holds was on the disk.
func Lost(s *Site) bool { return s.Rec.Overlay != nil && overlay.Lost(s.layers()) }

// Unmount lets go of the session's mount, as far as this process has it open.
func (s *Site) Unmount() error {
	if s.work == nil {
		return nil
	}
	s.work.mu.Lock()
	defer s.work.mu.Unlock()
	if s.work.mount == nil {
		return nil
	}
	err := s.work.mount.Close()
	s.work.mount = nil
	return err
}

// SyncWork waits until what an overlay holds is on the disk, so that it outlives the
// machine's next start.
func (s *Site) SyncWork() error {
	if s.Rec.Overlay == nil {
		return nil
	}
	return errors.Join(s.Unmount(), overlay.Sync(s.layers()))
}

// ForgetMount removes what a session's mount left in SUPERQODE_HOME.
func (s *Site) ForgetMount() error {
	if s.Rec.Overlay == nil {
		return nil
	}
	err := s.Unmount()
	for _, path := range []string{s.layers().Socket, s.layers().Socket + ".lock"} {
		if rerr := os.Remove(path); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// WorkDir is the folder through which superqode itself, and git where superqode runs it,
// reads and writes the workspace. It is not to be resolved, nor to be remembered. Where
// a mount is needed that cannot be had, it is a path that no system call takes: what is
// missing must not look as if it had been deleted. Mount says why.
func (s *Site) WorkDir() string {
	m, err := s.Mount(context.Background())
	switch {
	case err != nil:
		return "\x00" + err.Error()
	case m == nil:
		return string(s.Rec.Workspace)
	}
	return m.Dir()
}

// OpenWork opens WorkDir, or says why it cannot be had.
func OpenWork(ctx context.Context, s *Site) (*os.Root, error) {
	if _, err := s.Mount(ctx); err != nil {
		return nil, err
	}
	return atomicfile.OpenRoot(s.WorkDir())
}

// WorkOrOrigin is WorkDir for what is only read and mostly the same in the origin, which
// stands in for a workspace that cannot be mounted any more.
func WorkOrOrigin(s *Site) string {
	if _, err := s.Mount(context.Background()); err != nil {
		return string(s.Rec.Origin)
	}
	return s.WorkDir()
}
