package layers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/state"
)

// probed is what a probe of shim and hooks found, kept in the cache below a key
// of everything that it depends on: git, the helper, the kernel.
type probed struct {
	SchemaVersion int       `json:"schema_version"`
	Shim          string    `json:"shim"`
	Hooks         string    `json:"hooks"`
	At            time.Time `json:"at"`
}

// badProbe is how long a probe that found a layer missing counts: what was in the
// way may have been for the moment only.
const badProbe = time.Minute

// Probe returns the states of shim and hooks, tried in a scratch repository with
// the user's git.
func (m *Machine) Probe(ctx context.Context, st *guard.SessionState) (shim, hooks string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", "", err
	}
	file, err := m.probeFile(st)
	if err != nil {
		return "", "", err
	}
	var p probed
	data, err := atomicfile.Read(file)
	if err == nil && json.Unmarshal(data, &p) == nil && p.SchemaVersion == state.SchemaVersion {
		if p.Shim == kernel.Active && p.Hooks == kernel.Active || m.Now().Sub(p.At) < badProbe {
			return p.Shim, p.Hooks, nil
		}
	}
	p = probed{SchemaVersion: state.SchemaVersion, At: m.Now().UTC()}
	if p.Shim, p.Hooks, err = m.runProbe(ctx, st); err != nil {
		return "", "", fmt.Errorf("try the guard: %w", err)
	}
	return p.Shim, p.Hooks, atomicfile.Loose.WriteJSON(file, p)
}

func (m *Machine) probeFile(st *guard.SessionState) (string, error) {
	gitKey, _, err := fileKey(string(st.Git.Bin))
	if err != nil {
		return "", err
	}
	helper, err := m.Helper()
	if err != nil {
		return "", err
	}
	helperKey, _, err := fileKey(helper)
	if err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", gitKey, helperKey, unix.ByteSliceToString(u.Release[:]),
		unix.ByteSliceToString(u.Version[:])))
	return filepath.Join(m.CachePath(), "probe-"+hex.EncodeToString(sum[:6])+".json"), nil
}

// scratch is a repository with one commit and an edited file, and a folder that
// stands for a session's.
type scratch struct {
	repo, session string
	git           *git.Git
	env           []string // of a program in that session
	head          string
}

const scratchText = "not committed\n"

func (m *Machine) runProbe(ctx context.Context, st *guard.SessionState) (shim, hooks string, err error) {
	if err := os.MkdirAll(m.CachePath(), 0o700); err != nil {
		return "", "", state.Unwritable(err, m.CachePath())
	}
	dir, err := os.MkdirTemp(m.CachePath(), ".probe-*")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	c, err := m.makeScratch(ctx, dir, st)
	if err != nil {
		return "", "", err
	}
	return layerState(c.tryShim(ctx)), layerState(c.tryHooks(ctx)), nil
}

func layerState(err error) string {
	if err != nil {
		return Unavailable(err)
	}
	return kernel.Active
}

func (m *Machine) makeScratch(ctx context.Context, dir string, st *guard.SessionState) (*scratch, error) {
	c := &scratch{repo: filepath.Join(dir, "repo"), session: filepath.Join(dir, "session"),
		git: git.At(string(st.Git.Bin), m.Env)}
	if err := os.MkdirAll(filepath.Join(c.session, "log"), 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(c.repo, "file")
	steps := [][]string{
		{"init", "-q", "--template=", c.repo},
		{"-C", c.repo, "add", "file"},
		{"-C", c.repo, "-c", "user.name=probe", "-c", "user.email=probe@localhost", "-c", "commit.gpgSign=false",
			"commit", "-q", "-m", "probe"},
	}
	for i, args := range steps {
		if i == 1 {
			if err := os.WriteFile(file, []byte("committed\n"), 0o600); err != nil {
				return nil, err
			}
		}
		if err := c.git.Run(ctx, git.Cmd{Args: args}); err != nil {
			return nil, err
		}
	}
	var err error
	if c.head, err = c.commit(ctx); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(scratchText), 0o600); err != nil {
		return nil, err
	}
	own := *st
	own.WorkTree, own.Origin, own.Workspace = true, superqode.HostPath(c.repo), superqode.HostPath(c.repo)
	own.GitDirs, own.Trees, own.Allow, own.Deny, own.HooksPath = []superqode.HostPath{superqode.HostPath(filepath.Join(c.repo, ".git"))}, []superqode.HostPath{}, []string{}, []string{}, ""
	if err := m.FillShim(ctx, &own, c.session); err != nil {
		return nil, err
	}
	if err := m.FillHooks(ctx, &own, c.session, nil); err != nil {
		return nil, err
	}
	if err := own.Save(c.session); err != nil {
		return nil, err
	}
	c.env = superqode.Override(git.CleanEnv(m.Env), []string{
		"PATH=" + filepath.Join(c.session, "bin") + string(filepath.ListSeparator) + superqode.Getenv(m.Env, "PATH"),
		"GIT_EXEC_PATH=" + filepath.Join(c.session, "exec"), "SUPERQODE_SOCKET=", "LC_ALL=C",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_NAME=probe", "GIT_AUTHOR_EMAIL=probe@localhost", "GIT_COMMITTER_NAME=probe", "GIT_COMMITTER_EMAIL=probe@localhost",
	})
	c.env = superqode.Override(c.env, own.HookEnv)
	return c, nil
}

func (c *scratch) commit(ctx context.Context) (string, error) {
	out, err := c.git.Output(ctx, git.Cmd{Dir: c.repo, Args: []string{"rev-parse", "HEAD"}})
	return strings.TrimSpace(string(out)), err
}

// run runs a program as one in the session would, and returns its exit code and
// what it printed.
func (c *scratch) run(ctx context.Context, env []string, args ...string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.repo, env, probeTimeout // a busy machine is slow to hand over the output
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return exit.ExitCode(), string(out), nil
	}
	return 0, string(out), err
}

const probeTimeout = 10 * time.Second

// unchanged reports whether commit and edit are still there.
func (c *scratch) unchanged(ctx context.Context) error {
	head, err := c.commit(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.repo, "file"))
	switch {
	case err != nil:
		return err
	case head != c.head:
		return errors.New("a commit was made in the probe")
	case string(text) != scratchText:
		return errors.New("an edit was lost in the probe")
	}
	return nil
}

// tryShim holds the shim to what it promises: it lets a reading command through,
// and refuses a commit, from an alias's shell too.
func (c *scratch) tryShim(ctx context.Context) error {
	shim := filepath.Join(c.session, "bin", "git")
	code, out, err := c.run(ctx, c.env, shim, "rev-parse", "HEAD")
	if err != nil || code != 0 || strings.TrimSpace(out) != c.head {
		return fmt.Errorf("a reading command did not work: exit code %d, %v: %.200q", code, err, out)
	}
	for _, args := range [][]string{
		{shim, "commit", "--allow-empty", "-m", "x"},
		{shim, "reset", "--hard"},
		{c.git.Bin, "-c", "alias.x=!git commit --allow-empty -m x", "x"},
	} {
		code, out, err := c.run(ctx, c.env, args...)
		if err == nil && code != 3 {
			err = fmt.Errorf("exit code %d: %.200q", code, out)
		}
		if err = errors.Join(err, c.unchanged(ctx)); err != nil {
			return fmt.Errorf("%s was not refused: %w", strings.Join(slices.Concat([]string{"git"}, args[1:]), " "),
				err)
		}
	}
	return nil
}
