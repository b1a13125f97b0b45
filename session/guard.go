package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// GuardOptions says how a session is guarded. The zero value is the default
// policy with all layers that can be had.
type GuardOptions struct {
	Off   bool     // --allow-git-operations: nothing is denied
	Allow []string // guard.allow and guard.deny of the configuration
	Deny  []string
}

// newGuardRecord checks the options. The guard of a session is not got rid of by
// a session inside it.
func newGuardRecord(pl plan, p state.Project) (state.GuardRecord, error) {
	opt := pl.Guard
	if opt.Off && pl.Enforce == kernel.EnforceRequired {
		return state.GuardRecord{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "the kernel layer is required, and --allow-git-operations switches the guard off"), "add --enforce off")
	}
	if opt.Off {
		if id := supervisor.InsideOf(p); id != "" {
			return state.GuardRecord{}, superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "--allow-git-operations: this runs inside session %s of the same origin", id), "ask the user")
		}
	}
	if _, err := guard.NewPolicy(opt.Allow, opt.Deny); err != nil {
		return state.GuardRecord{}, superqode.WithHint(err, "superqode guard status --operations")
	}
	r := state.GuardRecord{Off: opt.Off, Allow: append([]string{}, opt.Allow...), Deny: append([]string{}, opt.Deny...), Shim: kernel.Off, Hooks: kernel.Off, Nested: []state.HostPath{}}
	return r, nil
}

// fillGuarded makes the workspace and the guard at the same time; fill joins them
// before it records that the session is active.
func (s *Session) fillGuarded(ctx context.Context, pl plan) error {
	own := *s // what it reads does not change; the record is filled in meanwhile
	done := make(chan error, 1)
	var found state.GuardRecord
	go func() {
		var err error
		found, err = own.openGuard(ctx)
		done <- err
	}()
	s.joinGuard = sync.OnceValue(func() error {
		err := <-done
		s.Rec.Guard = found
		return err
	})
	if err := s.fill(ctx, pl); err != nil {
		_ = s.joinGuard() // the folder is about to be removed; the first error is the one to tell
		return err
	}
	return s.guardNested(ctx)
}

// openGuard puts shim and hooks into the session's folder and finds out whether
// they hold. It touches nothing of the origin's. What can not be had is told by
// the record, not by an error.
func (s *Session) openGuard(ctx context.Context) (state.GuardRecord, error) {
	r := s.Rec.Guard
	if r.Off {
		return r, nil
	}
	st, err := s.guardState(ctx)
	if err == nil {
		r.HooksPath = st.HooksPath
		r.Shim, r.Hooks, err = s.m.machine().Probe(ctx, st)
	}
	if err == nil {
		var repo *git.Repo
		if s.Source != nil {
			repo = s.Source.Repo
		}
		err = s.makeGuard(ctx, st, r, repo)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		r.Shim, r.Hooks = layers.Unavailable(err), layers.Unavailable(err)
		if !errors.Is(err, layers.ErrNoHelper) {
			s.Log.Warn().Stringer("session", s.Rec.ID).Err(err).Msg("the guard can not stand")
		}
	}
	return r, nil
}

// guardState gathers what the layers have to know.
func (s *Session) guardState(ctx context.Context) (*guard.SessionState, error) {
	g, err := s.CheckedGit(ctx)
	if err != nil {
		return nil, err
	}
	st := &guard.SessionState{
		ID: s.PublicID(), Agent: s.Rec.Agent, Mode: s.Rec.Mode, Off: s.Rec.Guard.Off, OpenedAt: s.Rec.CreatedAt, Origin: s.Rec.Origin, Workspace: state.HostPath(superqode.RealPrefix(string(s.Rec.Workspace))),
		GitDirs: []state.HostPath{}, Trees: []state.HostPath{}, UserConfig: []state.HostPath{}, HookEnv: []string{}, Allow: s.Rec.Guard.Allow, Deny: s.Rec.Guard.Deny, HooksPath: s.Rec.Guard.HooksPath,
		Git: guard.RealGit{Bin: state.HostPath(g.Bin), Version: g.Version.String()},
	}
	if s.Rec.CommonDir != "" {
		st.GitDirs = append(st.GitDirs, s.Rec.CommonDir)
	}
	st.GitDirs = append(st.GitDirs, s.Rec.Guard.Nested...)
	if !s.Rec.Mode.InPlace() {
		st.Trees = append(st.Trees, s.Rec.Origin)
	}
	for _, f := range git.UserConfig(s.Env) {
		st.UserConfig = append(st.UserConfig, state.HostPath(f))
	}
	work, wctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		f, err := s.m.machine().Facts(wctx, g)
		if err == nil {
			st.Git.ExecPath = f.ExecPath
		}
		return err
	})
	if s.Source != nil && s.Source.Repo != nil {
		work.Go(func() error {
			path, _, err := s.Source.Repo.UserPath(wctx, "core.hookspath")
			st.HooksPath = superqode.HostPath(path)
			return err
		})
	}
	return st, work.Wait()
}

// makeGuard fills the session's folders with the layers that r says are to be
// had; repeating it heals them.
func (s *Session) makeGuard(ctx context.Context, st *guard.SessionState, r state.GuardRecord, repo *git.Repo) error {
	if gitdir.Needed(s.Site, r) {
		st.Kernel, st.Private = true, gitdir.Private(s.Site)
	}
	for _, d := range []string{"bin", "exec", "hooks"} { // both need them
		if err := os.MkdirAll(filepath.Join(s.Folder, d), 0o700); err != nil {
			return err
		}
	}
	work, wctx := errgroup.WithContext(ctx)
	if r.Shim == kernel.Active {
		work.Go(func() error { return s.m.machine().FillShim(wctx, st, s.Folder) })
	}
	if r.Hooks == kernel.Active {
		work.Go(func() error { return s.m.machine().FillHooks(wctx, st, s.Folder, repo) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return st.Save(s.Folder)
}

// guardEnv is what the environment of a session's program has beside PATH, so
// that git finds the layers.
func (s *Session) guardEnv() []string {
	var env []string
	if s.Rec.Guard.Shim == kernel.Active {
		env = append(env, "GIT_EXEC_PATH="+filepath.Join(s.Folder, "exec"))
	}
	if st, err := guard.LoadSessionState(s.Folder); err == nil {
		env = append(env, st.HookEnv...)
	}
	return env
}

// guardFiles are the files of the session's folder that the layers stand on.
func guardFiles(r state.GuardRecord) []string {
	var list []string
	if r.Shim == kernel.Active {
		list = append(list, "bin/git", "exec/git")
	}
	if r.Hooks == kernel.Active {
		list = append(list, layers.HookFiles()...)
	}
	return list
}

// guardSeal is what the guard's files were when a program was started.
type guardSeal map[string]os.FileInfo

// sealGuard makes sure that the guard's files are there, and remembers them. A
// program of an earlier run may have taken them away.
func (s *Session) sealGuard(ctx context.Context) (guardSeal, error) {
	files := guardFiles(s.Rec.Guard)
	if len(files) == 0 {
		return nil, nil
	}
	seal, err := s.lookAtGuard(files)
	if err != nil {
		st, err := s.guardState(ctx)
		if err == nil {
			err = s.makeGuard(ctx, st, s.Rec.Guard, nil)
		}
		if err == nil {
			seal, err = s.lookAtGuard(files)
		}
		if err != nil {
			return nil, fmt.Errorf("put the guard's files back: %w", err)
		}
	}
	return seal, gitdir.Make(ctx, s.Site)
}

// lookAtGuard reads what the guard's files are; the error says that they are not
// what they should be.
func (s *Session) lookAtGuard(files []string) (guardSeal, error) {
	st, err := guard.LoadSessionState(s.Folder)
	if err != nil {
		return nil, err
	}
	if st.Kernel != gitdir.Needed(s.Site, s.Rec.Guard) {
		return nil, errors.New("the kernel layer has changed since")
	}
	seal := guardSeal{}
	for _, name := range files {
		if seal[name], err = os.Lstat(filepath.Join(s.Folder, name)); err != nil {
			return nil, err
		}
		if filepath.Base(name) == "git" && (!seal[name].Mode().IsRegular() || seal[name].Mode().Perm() != layers.HelperPerm) {
			return nil, fmt.Errorf("%s is another file", name)
		}
	}
	return seal, nil
}

// unsealGuard puts the guard's files back where the program changed them, and
// records that it did.
func (s *Session) unsealGuard(ctx context.Context, seal guardSeal) error {
	var changed []string
	for name, was := range seal {
		now, err := os.Lstat(filepath.Join(s.Folder, name))
		if err != nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) || was.Mode() != now.Mode() {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	for _, name := range changed {
		s.Rec.Tampered = state.Merged(s.Rec.Tampered, []string{name})
		s.Warn(fmt.Sprintf("the program changed the guard's own files (%s of session %s); they were put back", name, s.Rec.ID))
	}
	_, err := s.sealGuard(ctx)
	return err
}

// closeDesk ends the guard's part of a run.
func (s *Session) closeDesk(d *guardDesk) error {
	tampered, err := d.close()
	if tampered {
		s.Rec.Tampered = state.Merged(s.Rec.Tampered, []string{"log/guard.jsonl"})
		s.Warn(fmt.Sprintf("the program changed the guard's log of session %s; what it held was put back", s.Rec.ID))
	}
	return err
}

// guardResult tells what guarded the session and what it refused.
func (s *Session) guardResult() artifacts.Guard {
	g := artifacts.Guard{Layers: s.Rec.Layers()}
	blocked, passed, err := s.attempts()
	if err != nil {
		s.Note([]string{"what the guard refused can not be read: " + err.Error()})
	}
	g.Blocked = blocked
	for _, a := range passed {
		s.Note([]string{fmt.Sprintf("a person let this through once: %s (operation %s, %s)", text.Printable(strings.Join(a.Command, " ")), a.Operation, a.At.Format(time.RFC3339))})
	}
	if s.Rec.Guard.Off {
		s.Note([]string{"the guard was switched off: --allow-git-operations"})
	}
	return g
}

// kernelOptions are the plan's, without a layer that would forbid what the user
// has allowed.
func (pl plan) kernelOptions() KernelOptions {
	opt := pl.KernelOptions
	if pl.Guard.Off {
		opt.Enforce = kernel.EnforceOff
	}
	return opt
}
