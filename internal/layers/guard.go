package layers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/proctable"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Guard is the guard of one session: the shim and the hooks in its folder, and what the
// kernel holds its programs to.
type Guard struct {
	*site.Site
	Machine *Machine
}

// Of returns the guard of a session.
func Of(s *site.Site) *Guard { return &Guard{Site: s, Machine: MachineOf(s.Host)} }

// Options says how a session is guarded. The zero value is the default policy with all
// layers that this machine has.
type Options struct {
	Off    bool             // --allow-git-operations: nothing is denied
	Policy guard.PolicyName // "" is guard.QE
	Allow  []string         // guard.allow and guard.deny of the configuration
	Deny   []string
}

// NewRecord checks the options of a session that is about to be opened in a project. A
// program in a session of that origin cannot open one without a guard: the error wraps
// superqode.ErrDenied.
func NewRecord(opt Options, m superqode.Mode, enforce kernel.Enforce, p state.Project) (state.GuardRecord, error) {
	if opt.Off && enforce == kernel.EnforceRequired {
		return state.GuardRecord{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
			"the kernel layer is required, and --allow-git-operations switches the guard off"), "add --enforce off")
	}
	if opt.Off {
		if id := supervisor.InsideOf(p); id != "" {
			return state.GuardRecord{}, superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
				"--allow-git-operations: this runs inside session %s of the same origin", id), "ask the user")
		}
	}
	policy, err := opt.Policy.Policy(opt.Allow, opt.Deny)
	if err != nil {
		return state.GuardRecord{}, superqode.WithHint(err, "superqode guard status --operations")
	}
	if err := checkPolicy(policy.Name(), mode.Of(m), opt.Off || enforce == kernel.EnforceOff); err != nil {
		return state.GuardRecord{}, err
	}
	r := state.GuardRecord{Off: opt.Off, Policy: string(policy.Name()), Allow: append([]string{}, opt.Allow...),
		Deny: append([]string{}, opt.Deny...), Shim: kernel.Off, Hooks: kernel.Off, Nested: []state.HostPath{}}
	return r, nil
}

// checkPolicy refuses a policy that a session of a mode cannot have. Contained lets happen
// what only a git directory of the session's own, and a work tree that is brought back or
// thrown away, make harmless.
func checkPolicy(name guard.PolicyName, m mode.Facts, unguarded bool) error {
	usage := func(format string, args ...any) error { return superqode.Errorf(superqode.ErrUsage, format, args...) }
	switch {
	case name == guard.Destructive:
		return superqode.WithHint(usage("policy destructive is for agents' hooks where there is no session; a session has qe or contained"), "add --policy qe or --policy contained")
	case name != guard.Contained:
		return nil
	case !m.WorkTree || !m.Restores:
		return superqode.WithHint(usage("policy contained needs a git directory of the session's own, which mode %s does not have", m.Mode), "add --policy qe, or --mode overlay, worktree or git_snapshot in a git repository")
	case unguarded:
		return superqode.WithHint(usage("policy contained needs the kernel layer, which is switched off"), "add --policy qe, or leave out --enforce off and --allow-git-operations")
	}
	return nil
}

// Open puts shim and hooks into the session's folder and finds out whether
// they hold. It touches nothing of the origin'g. The record says which layer is missing
// and why; that is no error.
func (g *Guard) Open(ctx context.Context) (state.GuardRecord, error) {
	r := g.Rec.Guard
	if r.Off {
		return r, nil
	}
	st, err := g.state(ctx)
	if err == nil {
		r.HooksPath = st.HooksPath
		r.Shim, r.Hooks, err = g.Machine.Probe(ctx, st)
	}
	if err == nil {
		var repo *git.Repo
		if g.Source != nil {
			repo = g.Source.Repo
		}
		err = g.fill(ctx, st, r, repo)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		r.Shim, r.Hooks = Unavailable(err), Unavailable(err)
		if errors.Is(err, ErrNoHelper) {
			g.Warn("git is not guarded: " + err.Error())
		} else {
			g.Log.Warn().Stringer("session", g.Rec.ID).Err(err).Msg("the guard cannot stand")
		}
	}
	if r.Policy == string(guard.Contained) && !gitdir.Needed(g.Site, r) {
		return r, superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
			"policy contained needs the shim, which is %s", r.Shim), "superqode doctor")
	}
	return r, nil
}

// state collects what the layers have to know.
func (g *Guard) state(ctx context.Context) (*guard.SessionState, error) {
	bin, err := g.CheckedGit(ctx)
	if err != nil {
		return nil, err
	}
	st := &guard.SessionState{
		Supervisors: withSelf(nil), ID: g.PublicID(), Agent: g.Rec.Agent, WorkTree: mode.Of(g.Rec.Mode).WorkTree, Off: g.Rec.Guard.Off, OpenedAt: g.Rec.CreatedAt, Origin: g.Rec.Origin, Workspace: state.HostPath(superqode.RealPrefix(string(g.Rec.Inside()))), Tmp: g.Rec.Tmp,
		GitDirs: []state.HostPath{}, Trees: []state.HostPath{}, UserConfig: []state.HostPath{}, HookEnv: []string{}, Base: g.Rec.Guard.Policy, Allow: g.Rec.Guard.Allow, Deny: g.Rec.Guard.Deny, HooksPath: g.Rec.Guard.HooksPath,
		Git: guard.RealGit{Bin: state.HostPath(bin.Bin), Version: bin.Version.String()},
	}
	if g.Rec.CommonDir != "" {
		st.GitDirs = append(st.GitDirs, g.Rec.CommonDir)
	}
	st.GitDirs = append(st.GitDirs, g.Rec.Guard.Nested...)
	switch facts := mode.Of(g.Rec.Mode); {
	case facts.Mounted && g.Rec.CommonDir == "": // a repository that is made there is the session's
		st.WorkTree, st.Origin = false, ""
	case !facts.Mounted && !facts.InPlace:
		st.Trees = append(st.Trees, g.Rec.Origin)
	}
	for _, f := range git.UserConfig(g.Env) {
		st.UserConfig = append(st.UserConfig, state.HostPath(f))
	}
	work, wctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		f, err := g.Machine.Facts(wctx, bin)
		if err == nil {
			st.Git.ExecPath = f.ExecPath
		}
		return err
	})
	if g.Source != nil && g.Source.Repo != nil {
		work.Go(func() error {
			path, _, err := g.Source.Repo.UserPath(wctx, "core.hookspath")
			st.HooksPath = superqode.HostPath(path)
			return err
		})
	}
	return st, work.Wait()
}

// fill fills the session's folders with the layers that r has; repeating it heals
// them.
func (g *Guard) fill(ctx context.Context, st *guard.SessionState, r state.GuardRecord, repo *git.Repo) error {
	if gitdir.Needed(g.Site, r) {
		st.Kernel, st.Private = true, gitdir.Private(g.Site)
	}
	for _, d := range []string{"bin", "exec", "hooks"} { // both need them
		if err := os.MkdirAll(filepath.Join(g.Folder, d), 0o700); err != nil {
			return err
		}
	}
	work, wctx := errgroup.WithContext(ctx)
	if r.Shim == kernel.Active {
		work.Go(func() error { return g.Machine.FillShim(wctx, st, g.Folder) })
	}
	if r.Hooks == kernel.Active {
		work.Go(func() error { return g.Machine.FillHooks(wctx, st, g.Folder, repo) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return st.Save(g.Folder)
}

// Environ is what the environment of a session's program has in addition to PATH, so
// that git finds the
func (g *Guard) Environ() []string {
	var env []string
	if g.Rec.Guard.Shim == kernel.Active {
		env = append(env, "GIT_EXEC_PATH="+filepath.Join(g.Folder, "exec"))
	}
	if st, err := guard.LoadSessionState(g.Folder); err == nil {
		env = append(env, st.HookEnv...)
	}
	return env
}

// files are the files of the session's folder that the layers stand on.
func files(r state.GuardRecord) []string {
	var list []string
	if r.Shim == kernel.Active {
		list = append(list, "bin/git", "exec/git")
	}
	if r.Hooks == kernel.Active {
		list = append(list, HookFiles()...)
	}
	return list
}

// Seal is what the guard's files were when a program was started.
type Seal map[string]os.FileInfo

// Seal makes sure that the guard's files are there, and remembers them. A
// program of an earlier run may have taken them away.
func (g *Guard) Seal(ctx context.Context) (Seal, error) {
	files := files(g.Rec.Guard)
	if len(files) == 0 {
		return nil, gitdir.Make(ctx, g.Site)
	}
	seal, err := g.look(files)
	if err != nil {
		st, err := g.state(ctx)
		if err == nil {
			err = g.fill(ctx, st, g.Rec.Guard, nil)
		}
		if err == nil {
			seal, err = g.look(files)
		}
		if err != nil {
			return nil, fmt.Errorf("put the guard's files back: %w", err)
		}
	}
	if err := g.supervise(); err != nil {
		return nil, err
	}
	return seal, gitdir.Make(ctx, g.Site)
}

// supervise makes this process known to the layers as one that answers them.
func (g *Guard) supervise() error {
	st, err := guard.LoadSessionState(g.Folder)
	if err != nil {
		return err
	}
	list := withSelf(st.Supervisors)
	if slices.Equal(list, st.Supervisors) {
		return nil
	}
	st.Supervisors = list
	return st.Save(g.Folder)
}

// withSelf returns those processes of a list that still run, and this one.
func withSelf(list []string) []string {
	self, _ := proctable.Read(os.Getpid())
	alive := slices.DeleteFunc(slices.Clone(list), func(name string) bool {
		pid, _, _ := strings.Cut(name, "-")
		n, _ := strconv.Atoi(pid)
		p, ok := proctable.Read(n)
		return !ok || p.Name() != name || name == self.Name()
	})
	return append(alive, self.Name())
}

// look reads what the guard's files are; the error says that they are not
// what they should be.
func (g *Guard) look(files []string) (Seal, error) {
	st, err := guard.LoadSessionState(g.Folder)
	if err != nil {
		return nil, err
	}
	if st.Kernel != gitdir.Needed(g.Site, g.Rec.Guard) {
		return nil, errors.New("the kernel layer has changed since")
	}
	seal := Seal{}
	for _, name := range files {
		if seal[name], err = os.Lstat(filepath.Join(g.Folder, name)); err != nil {
			return nil, err
		}
		if filepath.Base(name) == "git" && (!seal[name].Mode().IsRegular() || seal[name].Mode().Perm() != HelperPerm) {
			return nil, fmt.Errorf("%s is another file", name)
		}
	}
	return seal, nil
}

// Unseal puts the guard's files back where the program changed them, and
// records that it did.
func (g *Guard) Unseal(ctx context.Context, seal Seal) error {
	var changed []string
	for name, was := range seal {
		now, err := os.Lstat(filepath.Join(g.Folder, name))
		if err != nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) ||
			was.Mode() != now.Mode() {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	for _, name := range changed {
		g.Rec.Tampered = state.Merged(g.Rec.Tampered, []string{name})
		g.Warn(fmt.Sprintf("the program changed the guard's own files (%s of session %s); they were put back", name,
			g.Rec.ID))
	}
	_, err := g.Seal(ctx)
	return err
}

// Close ends the guard's part of a run.
func (g *Guard) Close(h *Handler) error {
	tampered, err := h.restore()
	if tampered {
		g.Rec.Tampered = state.Merged(g.Rec.Tampered, []string{"log/guard.jsonl"})
		g.Warn(fmt.Sprintf("the program changed the guard's log of session %s; what it held was put back", g.Rec.ID))
	}
	return err
}

// Result says what guarded the session and what it refused.
func (g *Guard) Result() artifacts.Guard {
	res, passed, err := g.attempts()
	if err != nil {
		g.Note([]string{"what the guard refused cannot be read: " + err.Error()})
	}
	res.Layers, res.Kernel = g.Rec.Layers(), g.Rec.KernelLayer()
	res.Policy, res.AllowedBy = cmp.Or(g.Rec.Guard.Policy, string(guard.QE)), "policy"
	if g.Rec.Guard.Off {
		res.AllowedBy = "allow-git-operations"
	}
	for _, a := range passed {
		g.Note([]string{fmt.Sprintf("a person let this through once: %s (operation %s, %s)",
			text.Printable(strings.Join(a.Command, " ")), a.Operation, a.At.Format(time.RFC3339))})
	}
	if g.Rec.Guard.Off {
		g.Note([]string{"the guard was switched off: --allow-git-operations"})
	}
	return res
}
