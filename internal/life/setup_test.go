package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/setup"
)

// testSetup is a file and two commands that tell how often they ran.
func testSetup(count string) prepare.Options {
	target, err := superqode.ParseRelPath("conf/file")
	if err != nil {
		panic(err)
	}
	line := func(n int) config.SetupEntry {
		text := fmt.Sprintf("echo ran >> '%s/%d'; mkdir -p made; echo %d > made/%d; echo %d >> README.md", count, n, n, n, n)
		return config.SetupEntry{Key: fmt.Sprintf("setup[%d].run", n), Run: &config.SetupRun{Command: text, Line: text, Shell: true, Timeout: time.Minute, Observed: []string{fmt.Sprintf("made/%d", n)}}}
	}
	return prepare.Options{Spec: setup.Spec{Entries: []config.SetupEntry{{Key: "setup[0].file", File: &config.SetupFile{Target: target, Content: "f\n"}}, line(1), line(2)}}}
}

// childSetup opens a session, or goes on with the one that is open.
func childSetup() int {
	ctx, m, dir := context.Background(), childManager(), os.Getenv("SUPERQODE_TEST_DIR")
	opt := testSetup(os.Getenv("SUPERQODE_TEST_COUNT"))
	s, err := m.Attach(ctx, dir, "")
	switch {
	case errors.Is(err, superqode.ErrNotFound):
		s, err = m.Create(ctx, OpenOptions{Dir: dir, Mode: superqode.Mode(os.Getenv("SUPERQODE_TEST_MODE")), Setup: opt, KernelOptions: program.KernelOptions{Enforce: kernel.EnforceOff}})
	case err == nil:
		_, err = s.Setup(ctx, opt)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}

func countRuns(t *testing.T, count string, n int) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(count, fmt.Sprint(n)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "ran")
}

func setupManager(f *gittest.Fixture) *Manager {
	return NewManager(Config{Home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), Env: f.Env()})
}

func changedPaths(t *testing.T, s *Session) []string {
	t.Helper()
	changes, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, c := range changes {
		list = append(list, string(c.Type)+" "+c.Path.String())
	}
	return list
}

// TestSetupIsNoChange holds that what the setup did is no change of the session's
// until a program changes it further, that the patch applies on the origin, and
// that nothing of it stays there.
func TestSetupIsNoChange(t *testing.T) {
	t.Parallel()
	for _, mode := range []superqode.Mode{superqode.ModeWorktree, superqode.ModeSnapshot, superqode.ModeGitSnapshot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f, count := gittest.Dirty(t), t.TempDir()
			before := f.Fingerprint(".superqode", ".git/worktrees")
			m := setupManager(f)
			s, err := m.Create(t.Context(), OpenOptions{Dir: f.Dir, Mode: mode, Setup: testSetup(count), KernelOptions: program.KernelOptions{Enforce: kernel.EnforceOff}, Exclude: []string{".git/**"}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{}, changedPaths(t, s)); d != "" {
				t.Error(d)
			}
			if _, err := s.Exec(t.Context(), program.ExecOptions{Args: []string{"sh", "-c", "echo more >> made/1; echo own > own; rm made/2"}}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"created made/1", "created own"}, changedPaths(t, s)); d != "" {
				t.Error(d)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = m.Attach(t.Context(), f.Dir, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Setup(t.Context(), testSetup(count)); err != nil {
				t.Fatal(err)
			}
			if countRuns(t, count, 1) != 2 || countRuns(t, count, 2) != 2 {
				t.Errorf("%d, %d runs", countRuns(t, count, 1), countRuns(t, count, 2))
			}
			if d := cmp.Diff([]string{"created own"}, changedPaths(t, s)); d != "" {
				t.Error(d)
			}
			if s, err = m.Attach(t.Context(), f.Dir, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil {
				t.Fatal(err)
			}
			gittest.Same(t, before, f.Fingerprint(".superqode", ".git/worktrees"))
		})
	}
}

// TestSetupsAtOnce holds that of several processes each entry is applied once.
func TestSetupsAtOnce(t *testing.T) {
	t.Parallel()
	f, count := gittest.Dirty(t), t.TempDir()
	m := setupManager(f)
	s, err := m.Create(t.Context(), OpenOptions{Dir: f.Dir, KernelOptions: program.KernelOptions{Enforce: kernel.EnforceOff}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			s, err := setupManager(f).Attach(t.Context(), f.Dir, "")
			if err == nil {
				_, err = s.Setup(t.Context(), testSetup(count))
				err = errors.Join(err, s.Close())
			}
			errs[i] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if countRuns(t, count, 1) != 1 || countRuns(t, count, 2) != 1 {
		t.Errorf("%d, %d runs", countRuns(t, count, 1), countRuns(t, count, 2))
	}
}
