package hooks_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// session is a session's folder around a fixture, without the session: what the
// supervisor would have written, and the environment that a program would get.
type session struct {
	t   testing.TB
	st  *guard.SessionState
	dir string
	env []string
}

// realGit is the git that the tests run, by its absolute path.
func realGit(t testing.TB) string {
	t.Helper()
	bin, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

var testTime = time.Unix(1700000000, 0)

// userConfig reads the configuration of a fixture's repository as its user would.
func userConfig(t testing.TB, f *gittest.Fixture) func(context.Context) (iter.Seq2[string, string], error) {
	repo := &git.Repo{Git: git.At(realGit(t), f.Env()), TopLevel: f.Dir}
	return func(ctx context.Context) (iter.Seq2[string, string], error) {
		c, err := repo.Config(ctx)
		if err != nil {
			return nil, err
		}
		return c.All(), nil
	}
}

// askGit asks the real git, once in this process.
var askGit = sync.OnceValues(func() (real struct{ version, execPath string }, err error) {
	out, err := exec.Command("git", "version").Output()
	path, pathErr := exec.Command("git", "--exec-path").Output()
	real.version, real.execPath = string(out), strings.TrimSpace(string(path))
	return real, errors.Join(err, pathErr)
})

// gitVersion is that of the real git.
func gitVersion(t testing.TB) git.Version {
	t.Helper()
	real, err := askGit()
	if err != nil {
		t.Fatal(err)
	}
	v, err := git.ParseVersion(real.version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// newSession makes the folder of a session on the repository at origin, with the
// program working in workspace. change may alter the state before it is written.
func newSession(t testing.TB, f *gittest.Fixture, workspace string, change func(*guard.SessionState)) *session {
	t.Helper()
	dir := filepath.Join(f.Home, "session "+t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
	dir = dir[:min(len(dir), 200)]
	bin := realGit(t)
	real, err := askGit()
	if err != nil {
		t.Fatal(err)
	}
	self, _ := proctable.Read(os.Getpid())
	st := &guard.SessionState{
		Supervisors: []string{self.Name()}, ID: superqode.NewSessionID(testTime), WorkTree: true, Origin: superqode.HostPath(f.Dir), Workspace: superqode.HostPath(workspace),
		GitDirs: []superqode.HostPath{superqode.HostPath(filepath.Join(f.Dir, ".git"))},
		Git: guard.RealGit{Bin: superqode.HostPath(bin), ExecPath: superqode.HostPath(real.execPath),
			Version: gitVersion(t).String()},
	}
	if workspace != f.Dir {
		st.WorkTree, st.Trees = true, []superqode.HostPath{superqode.HostPath(f.Dir)}
	}
	if change != nil {
		change(st)
	}
	s := &session{t: t, st: st, dir: dir}
	for _, d := range []string{"bin", "log", "tmp"} {
		s.must(os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	s.must(st.Save(dir))
	helper := filepath.Join(dir, "bin", helperName)
	s.must(linkOrCopy(helper))
	s.must(hooks.Populate(t.Context(), st, hooks.Folder{Dir: filepath.Join(dir, "hooks"), Helper: helper, Config: userConfig(t, f)}))
	s.must(os.Symlink(helperName, filepath.Join(dir, "bin", hooks.RemoteHelper)))
	s.env = f.Env(append(hooks.Env(st, filepath.Join(dir, "hooks")), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+filepath.Join(dir, "tmp"))...)
	return s
}

func (s *session) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// linkOrCopy puts this test binary at path; it finds the session by that path. A
// copy is made by another process: a file that this one has open for writing is
// open in whatever another test starts meanwhile, and cannot be run.
func linkOrCopy(path string) error {
	self, err := os.Executable()
	if err != nil || os.Link(self, path) == nil {
		return err
	}
	return exec.Command("cp", self, path).Run()
}

// result is what a command in the session did.
type result struct {
	code        int
	out, errOut string
}

// refused reports whether the guard said no.
func (r result) refused() bool { return strings.Contains(r.errOut, "superqode: refused") }

// sh runs a line of shell text in the session.
func (s *session) sh(dir, line string, env ...string) result {
	s.t.Helper()
	return s.run(dir, []string{"sh", "-c", line}, env...)
}

func (s *session) run(dir string, argv []string, env ...string) result {
	s.t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, slices.Concat(s.env, env)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		s.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// attempts reads the session's log of refused attempts.
func (s *session) attempts() []guard.Attempt {
	s.t.Helper()
	data, err := os.ReadFile(s.st.LogPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	list, bad := guard.ParseAttempts(data)
	if bad > 0 {
		s.t.Errorf("%d bad lines in %s", bad, data)
	}
	return list
}
