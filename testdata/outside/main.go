// Command outside is a program of another module. It uses each public package of
// superqode on a scratch repository; TestOutside builds, vets and runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/codeexec"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/hooks/install"
	"github.com/seed-2d964004/superqode/revert"
	"github.com/seed-2d964004/superqode/session"
	"github.com/seed-2d964004/superqode/workspace"
	"github.com/seed-2d964004/superqode/worktree"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "outside")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &place{dir: dir, repo: filepath.Join(dir, "repo"), env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}}
	for _, args := range [][]string{{"init", "-q", p.repo}, {"-C", p.repo, "-c", "user.name=o", "-c", "user.email=o@example.org", "commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Env = p.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(p.repo, "file"), []byte("mine\n"), 0o600); err != nil {
		return err
	}
	for name, use := range map[string]func(context.Context) error{
		"superqode": p.root, "worktree": p.worktree, "guard": p.guard, "hooks": p.hooks, "hooks/install": p.install, "revert": p.revert, "artifacts": p.artifacts, "session": p.session, "workspace": p.workspace, "codeexec": p.codeexec,
	} {
		if err := use(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type place struct {
	dir, repo string
	env       []string
}

func (p *place) root(context.Context) error {
	path, err := superqode.ParseRelPath("a/b")
	if err != nil || path.String() != "a/b" {
		return fmt.Errorf("%v, %w", path, err)
	}
	if _, err := superqode.ParseSessionID("nonsense"); err == nil {
		return errors.New("nonsense is an id")
	}
	return nil
}

func (p *place) worktree(ctx context.Context) error {
	w, err := worktree.Create(ctx, worktree.Options{Repo: p.repo, Dir: filepath.Join(p.dir, "trees"), Env: p.env})
	if err != nil {
		return err
	}
	list, err := worktree.List(ctx, p.repo, p.env)
	if err != nil || len(list) != 1 || list[0].Path != w.Path {
		return fmt.Errorf("listed %v, %w", list, err)
	}
	return worktree.Remove(ctx, w)
}

func (p *place) guard(ctx context.Context) error {
	policy, err := guard.NewPolicy([]string{"stash"}, nil)
	if err != nil {
		return err
	}
	in := guard.Context{Dir: p.repo, Env: p.env, Policy: policy}
	if v := guard.Check(ctx, []string{"git", "push"}, in); !v.Denied() {
		return errors.New("a push passes")
	}
	if l := shelltext.Check(ctx, "cd / && git stash", in); l.Decision != guard.Allow {
		return fmt.Errorf("git stash: %v", l)
	}
	return nil
}

func (p *place) hooks(ctx context.Context) error {
	if !hooks.Serves("pre-push") {
		return errors.New("pre-push is no hook")
	}
	return nil
}

func (p *place) install(ctx context.Context) error {
	in, err := install.Open(ctx, p.repo, p.env)
	if err != nil {
		return err
	}
	in.Helper = "/nonexistent/superqode-shim"
	if changed, err := in.Install(ctx, install.Options{Strict: true}); err != nil || !changed {
		return fmt.Errorf("install: %t, %w", changed, err)
	}
	st, err := in.Inspect(ctx, filepath.Join(p.dir, "scratch"))
	if err != nil || !st.Installed || st.Method != install.MethodFolder {
		return fmt.Errorf("inspect: %+v, %w", st, err)
	}
	_, err = in.Uninstall(ctx)
	return err
}

func (p *place) revert(ctx context.Context) error {
	before, err := revert.Take(ctx, p.repo, revert.Options{Store: filepath.Join(p.dir, "store.git")})
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(p.repo, "file")); err != nil {
		return err
	}
	if done, err := before.Restore(ctx, revert.Full); err != nil || !done.Verified {
		return fmt.Errorf("restore: %+v, %w", done, err)
	}
	return nil
}

func (p *place) artifacts(ctx context.Context) error {
	store, err := artifacts.Open(p.repo)
	if err != nil {
		return err
	}
	a, err := store.Add(ctx, artifacts.New{Type: artifacts.TypeLog, Name: "build.log", Path: "logs/build.log", Data: []byte("ok\n")})
	if err != nil {
		return err
	}
	if c, err := store.Verify(ctx); err != nil || len(c.Problems) > 0 {
		return fmt.Errorf("%s: %+v, %w", a.Name, c, err)
	}
	return nil
}

func (p *place) session(ctx context.Context) error {
	var warnings []string
	m := session.NewManager(session.Config{Home: filepath.Join(p.dir, "home"), Env: p.env, Program: os.Getenv("SUPERQODE"), Warn: func(line string) { warnings = append(warnings, line) }})
	s, err := m.Open(ctx, session.OpenOptions{Dir: p.repo})
	if err != nil {
		return err
	}
	if err := p.detach(ctx, s); err != nil {
		return errors.Join(fmt.Errorf("detach: %w", err), s.Close())
	}
	if !slices.ContainsFunc(warnings, func(l string) bool { return strings.Contains(l, "superqode-shim is not installed") }) {
		return errors.Join(fmt.Errorf("nobody tells that git is not guarded: %q", warnings), s.Close())
	}
	res, err := s.Exec(ctx, session.ExecOptions{Args: []string{"sh", "-c", "echo spoilt >file"}})
	if err != nil || res.ExitCode != 0 {
		return errors.Join(fmt.Errorf("exit code %d, %w", res.ExitCode, err), s.Close())
	}
	end, err := s.End(ctx, session.EndOptions{})
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(p.repo, "file"))
	if trash, err := filepath.Glob(filepath.Join(p.dir, "home/working/*/trash/*")); err != nil || len(trash) > 0 {
		return fmt.Errorf("nobody empties the trash: %q, %w", trash, err)
	}
	if list, err := m.List(ctx, p.repo); err != nil || len(list) != 2 || list[0].State != superqode.StateDone || list[0].Alive {
		return fmt.Errorf("after the end: %+v, %w", list, err)
	}
	if err != nil || string(data) != "mine\n" || len(end.Changes) != 1 {
		return fmt.Errorf("the file holds %q, %d changes, %w", data, len(end.Changes), err)
	}
	return nil
}

// detach runs a program under superqode and, without one, is refused: this program would
// not know what to do as a supervisor.
func (p *place) detach(ctx context.Context, s *session.Session) error {
	alone := session.NewManager(session.Config{Home: filepath.Join(p.dir, "home"), Env: p.env})
	other, err := alone.Open(ctx, session.OpenOptions{Dir: p.repo})
	if err != nil {
		return err
	}
	if _, err := other.Detach(ctx, session.ExecOptions{Args: []string{"true"}}); !errors.Is(err, superqode.ErrUsage) {
		return fmt.Errorf("without superqode: %w", err)
	}
	if _, err := other.End(ctx, session.EndOptions{}); err != nil {
		return err
	}
	if err := other.Close(); err != nil {
		return err
	}
	n, err := s.Detach(ctx, session.ExecOptions{Args: []string{"sh", "-c", "command -v superqode && exit 3"}})
	if err != nil {
		return err
	}
	for {
		list, err := s.Runs()
		if err != nil || len(list) != n {
			return fmt.Errorf("the runs are %+v, %w", list, err)
		}
		if last := list[n-1]; !last.Running {
			if last.ExitCode != 3 {
				return fmt.Errorf("it ended with %d", last.ExitCode)
			}
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *place) workspace(ctx context.Context) error {
	dir, err := workspace.Open(filepath.Join(p.dir, "files"))
	if err != nil {
		return err
	}
	defer dir.Close()
	f := workspace.Scoped(dir, workspace.WithAllowWrite("out/**"))
	if err := workspace.AtomicWrite(ctx, f, "out/a", []byte("x")); err != nil {
		return err
	}
	if err := f.Write(ctx, "b", nil); !errors.Is(err, workspace.ErrAccessDenied) {
		return fmt.Errorf("a rule let a write through: %w", err)
	}
	return nil
}

func (p *place) codeexec(ctx context.Context) error {
	reg := codeexec.NewRegistry(session.NewManager(session.Config{Home: filepath.Join(p.dir, "code"), Env: p.env}), session.OpenOptions{Dir: p.repo, Mode: superqode.ModeDirectory})
	w, err := reg.Acquire(ctx, "job")
	if err != nil {
		return err
	}
	ran, err := w.RunBlocks(ctx, []codeexec.Block{{Code: "pwd", Language: "sh"}}, nil)
	if err != nil || ran[0].Stdout != filepath.Join(w.Dir.Root(), "work")+"\n" {
		return fmt.Errorf("ran %+v, %w", ran, err)
	}
	return reg.Release(ctx, "job")
}
