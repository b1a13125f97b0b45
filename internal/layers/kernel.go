package layers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/overlay"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// KernelOptions say what is asked of the guard's kernel layer.
type KernelOptions struct {
	Enforce    kernel.Enforce // "" is kernel.EnforceAuto when a session is opened, and what it was opened with later
	AllowWrite []string       // absolute: what the program may write to in addition to the session's own folders
	NoNetwork  bool           // no network but one of its own; by Landlock, no TCP
	Confine    bool           // only what is named is writable
	OwnNetwork bool           // no network but one that the session's programs share
	Beside     []int          // the numbers of those that are running
	PrivateTmp bool           // /tmp and XDG_RUNTIME_DIR of the session's own, no container engine
	Sockets    []string       // absolute: those that stay in reach all the same
	Args       []string       // the command line: what it names of /tmp stays, too
}

// NothingOutside is said where a network of the session's own begins.
const NothingOutside = "the session's network is its own: its programs reach one another, and nothing outside"

// CheckKernel decides what the session's programs will be held to, and tries it,
// before anything is made of the origin.
func (g *Guard) CheckKernel(ctx context.Context, opt KernelOptions) (err error) {
	rec := &g.Rec
	if err := g.readOutside(ctx); err != nil {
		return err
	}
	if rec.Enforce = opt.Enforce; rec.Enforce == "" {
		rec.Enforce = kernel.EnforceAuto
	}
	if g.contained() {
		rec.Enforce = kernel.EnforceRequired
	}
	mounted := mode.Of(rec.Mode).Mounted
	rec.NoNetwork, rec.Confine, rec.OwnNetwork, rec.Sockets = opt.NoNetwork, opt.Confine, opt.OwnNetwork, []state.HostPath{}
	rec.PrivateTmp = opt.PrivateTmp || mounted && len(opt.Sockets) > 0
	o, err := g.kernelOptions(KernelOptions{Sockets: opt.Sockets}, g.Env)
	if err != nil {
		return err
	}
	for _, s := range o.Private.Sockets {
		rec.Sockets = append(rec.Sockets, state.HostPath(s))
	}
	if rec.AllowWrite, err = allowWrite(o, opt.AllowWrite); err != nil {
		return err
	}
	o.Allow, o.Own = hostPaths(rec.AllowWrite), slices.DeleteFunc(o.Own, func(dir string) bool { return !atomicfile.Exists(dir) }) // there is no workspace yet
	k, err := kernel.Open(o)
	if err != nil && g.contained() {
		err = superqode.WithHint(fmt.Errorf("policy contained needs it: %w", err), "add --policy qe")
	}
	if err != nil {
		return err
	}
	if err := g.checkMounted(ctx, k, o.Helper); err != nil {
		return errors.Join(err, k.Close())
	}
	// Who goes by paths outside means the origin where a program means its workspace.
	rec.PrivateTmp = rec.PrivateTmp || mounted
	rec.Kernel, rec.GitReadOnly = k.Layer.State, rec.CommonDir != "" && k.GuardsGit()
	if g.contained() && !rec.GitReadOnly {
		return errors.Join(superqode.WithHint(superqode.Errorf(superqode.ErrDenied,
			"policy contained needs the kernel layer to keep the repository, which it does not here"), "add --policy qe"), k.Close())
	}
	rec.KernelBy, rec.KernelMissing, g.KernelTried = k.Layer.By, k.Layer.Missing, k.Layer.By
	if rec.OwnNetwork {
		g.Warn(NothingOutside)
	}
	if k.Layer.By == kernel.Landlock && !rec.Confine {
		g.Warn("the kernel layer is Landlock, which leaves out: " + strings.Join(k.Layer.Missing, "; "))
	}
	return k.Close()
}

// needsMounts is the error of a session whose workspace only a mount shows, where there
// is none.
func needsMounts(m superqode.Mode) error {
	return superqode.Errorf(superqode.ErrUsage, "mode %s needs the mounts of the kernel layer", m)
}

// checkMounted refuses a session whose workspace only a mount shows where there is none.
func (g *Guard) checkMounted(ctx context.Context, k *kernel.Confiner, helper string) error {
	if !mode.Of(g.Rec.Mode).Mounted {
		return nil
	}
	err := needsMounts(g.Rec.Mode)
	switch {
	case g.Rec.Confine:
		return superqode.WithHint(fmt.Errorf("%w, and --confine is Landlock alone", err), "leave out --confine, or take --worktree")
	case k.Layer.State == kernel.Off:
		return superqode.WithHint(fmt.Errorf("%w, which is switched off", err), "leave out --enforce off, or take --worktree")
	case k.Layer.By != kernel.Mounts:
		return superqode.WithHint(fmt.Errorf("%w: %s", err, strings.Join(k.Layer.Missing, "; ")), "superqode run --worktree -- CMD")
	}
	cerr := overlay.Checked(ctx, helper, superqode.RealPrefix(g.Project.Dir), g.Home)
	if _, file := errors.AsType[*fs.PathError](cerr); cerr == nil || file && site.IsFull(cerr) {
		return cerr
	}
	if superqode.Hint(cerr) == "" {
		cerr = superqode.WithHint(cerr, "superqode run --worktree -- CMD")
	}
	return fmt.Errorf("%w: %w", superqode.ErrUsage, cerr)
}

// binds are the folders of the origin that a session's programs read although an overlay
// covers them: the repository's own git directory, elsewhere, and superqode's results.
func (g *Guard) binds() (map[string]string, error) {
	list := map[string]string{}
	if g.Rec.CommonDir != "" {
		at := gitdir.Repository(g.Site)
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, err
		}
		list[at] = string(g.Rec.CommonDir)
	}
	results := filepath.Join(string(g.Rec.Origin), ".superqode")
	if st, err := os.Lstat(results); err != nil || !st.IsDir() {
		return list, nil
	}
	// The folder is the one that covers nothing of the program's: it has made no other there.
	if err := os.Mkdir(filepath.Join(g.WorkDir(), ".superqode"), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	list[results] = results
	return list, nil
}

// contained reports whether the session's programs may do in git what stays in a git
// directory of the session's own: then they must not reach another one.
func (g *Guard) contained() bool { return g.Rec.Guard.Policy == string(guard.Contained) }

// OpenKernel prepares the kernel layer for one program; close it.
func (g *Guard) OpenKernel(ctx context.Context, opt KernelOptions, env []string) (*kernel.Confiner, error) {
	if g.Rec.Overlay != nil && (opt.Enforce == kernel.EnforceOff || opt.Confine) {
		return nil, superqode.WithHint(needsMounts(g.Rec.Mode), "leave out --enforce off and --confine")
	}
	if g.contained() && opt.Enforce == kernel.EnforceOff {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
			"the policy of session %s is contained, which needs the kernel layer", g.Rec.ID), "leave out --enforce off")
	}
	o, err := g.kernelOptions(opt, env)
	if err != nil {
		return nil, err
	}
	more, err := allowWrite(o, opt.AllowWrite)
	if err != nil {
		return nil, err
	}
	o.Allow, o.Tried = append(o.Allow, hostPaths(more)...), g.KernelTried
	if m, err := g.Mount(ctx); err != nil {
		return nil, err
	} else if m != nil {
		o.Enforce, o.Overlay = kernel.EnforceRequired, m.Copy
	}
	if g.Rec.Overlay != nil {
		if o.Binds, err = g.binds(); err != nil {
			return nil, err
		}
	}
	k, err := kernel.Open(o)
	if err != nil {
		return nil, err
	}
	for _, d := range k.Plan.Dropped {
		g.Log.Debug().Stringer("session", g.Rec.ID).Msg(d.String())
	}
	return k, nil
}

func (g *Guard) kernelOptions(opt KernelOptions, env []string) (kernel.Options, error) {
	rec := &g.Rec
	o := kernel.Options{
		Enforce: opt.Enforce, Env: env, Home: superqode.RealPrefix(g.Home), Origin: string(rec.Origin), InPlace: mode.Of(rec.Mode).InPlace,
		Own: []string{g.ArtifactDir(), filepath.Join(g.Folder, "tmp"), g.TmpDir()}, Scratch: filepath.Join(g.Folder, "tmp"),
		Allow: hostPaths(rec.AllowWrite), NoNetwork: rec.NoNetwork || opt.NoNetwork, Shared: rec.OwnNetwork || opt.OwnNetwork, Beside: opt.Beside,
		Confine: rec.Confine || opt.Confine, User: g.Env, Later: append(hostPaths(rec.GitReads), git.UserConfig(g.Env)...),
	}
	if o.Enforce == "" || g.contained() {
		o.Enforce = rec.Enforce
	}
	o.Helper, _ = g.Machine.Helper()      // without one there are no mounts
	if !o.InPlace && rec.Overlay == nil { // what an overlay writes to is no program's
		o.Own = append(o.Own, string(rec.Workspace))
	}
	for i, dir := range o.Own {
		o.Own[i] = superqode.RealPrefix(dir)
	}
	o.Scratch = superqode.RealPrefix(o.Scratch)
	if rec.CommonDir != "" {
		o.GitDirs = slices.Compact([]string{string(rec.CommonDir), string(rec.GitDir)})
		o.Trees = append(relatedTrees(string(rec.CommonDir), string(rec.Origin)), hostPaths(rec.Remotes)...)
	}
	return o, g.private(opt, &o)
}

// private makes the folders that the session's programs see in places that all share.
// Nobody but superqode writes to the folder that they are in.
func (g *Guard) private(opt KernelOptions, o *kernel.Options) error {
	if !g.Rec.PrivateTmp && !opt.PrivateTmp {
		if len(opt.Sockets) > 0 {
			return superqode.Errorf(superqode.ErrUsage, "--allow-socket goes with --private-tmp: without it every socket can be reached")
		}
		return nil
	}
	dir := superqode.RealPrefix(g.Folder)
	o.Private = kernel.Private{Tmp: filepath.Join(dir, state.PrivateTmp), Run: filepath.Join(dir, state.PrivateRun), Sockets: hostPaths(g.Rec.Sockets)}
	o.Private.Keep = named(opt.Args)
	if exe, err := os.Executable(); err == nil { // its programs call superqode
		o.Private.Keep = append(o.Private.Keep, exe)
	}
	for _, path := range opt.Sockets {
		real, err := o.AllowSocket(path)
		if err != nil {
			return err
		}
		o.Private.Sockets = append(o.Private.Sockets, real)
	}
	for path, mode := range map[string]os.FileMode{o.Private.Tmp: 0o777 | os.ModeSticky, o.Private.Run: 0o700} {
		if err := os.Mkdir(path, 0o700); err == nil {
			err = os.Chmod(path, mode) //nolint:gosec // as /tmp is; the folder that holds it is closed
			if err != nil {
				return err
			}
		} else if !errors.Is(err, os.ErrExist) {
			return err
		}
		o.Own = append(o.Own, path)
	}
	return nil
}

// named lists the folders and files that a command line names by absolute paths; of a file
// in a folder below /tmp its folder, since a script may need what lies beside it.
func named(args []string) (list []string) {
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=") // --flag=PATH
		for _, path := range []string{arg, value} {
			st, err := os.Stat(path)
			if err != nil || !filepath.IsAbs(path) {
				continue
			}
			if dir := filepath.Dir(path); !st.IsDir() && strings.Count(dir, "/") > 1 {
				path = dir
			}
			list = append(list, path)
		}
	}
	return list
}

// readOutside records what lies outside of the repository and belongs to it: its remotes
// that are folders of this machine, unless the policy lets a program push, since who does
// not pass git reaches them as files; and what the user's git reads and runs.
func (g *Guard) readOutside(ctx context.Context) error {
	rec := &g.Rec
	rec.Remotes, rec.GitReads = []state.HostPath{}, []state.HostPath{}
	policy, err := guard.NewPolicy(rec.Guard.Allow, rec.Guard.Deny)
	if err != nil || g.Source == nil || g.Source.Repo == nil {
		return err
	}
	conf, err := g.Source.Repo.Config(ctx)
	if err != nil {
		return fmt.Errorf("read git's configuration: %w", err)
	}
	add := func(list *[]state.HostPath, path string) {
		real, err := filepath.EvalSymlinks(superqode.Under(string(rec.Origin), path))
		if err == nil && !superqode.Within(string(rec.Origin), real) && !slices.Contains(*list, state.HostPath(real)) {
			*list = append(*list, state.HostPath(real))
		}
	}
	for _, e := range conf.Users().Entries {
		if file, ok := strings.CutPrefix(e.Origin, "file:"); ok && e.Scope == "global" {
			add(&rec.GitReads, file)
		}
		address := strings.HasPrefix(e.Key, "remote.") && (strings.HasSuffix(e.Key, ".url") || strings.HasSuffix(e.Key, ".pushurl"))
		if address && policy.Decide("push") == guard.Deny {
			add(&rec.Remotes, strings.TrimPrefix(e.Value, "file://"))
		}
	}
	for _, key := range []string{"core.hookspath", "init.templatedir"} {
		if path, ok, err := g.Source.Repo.UserPath(ctx, key); err == nil && ok && filepath.IsAbs(path) {
			add(&rec.GitReads, path)
		}
	}
	return nil
}

// allowWrite checks what a person allows.
func allowWrite(o kernel.Options, asked []string) ([]state.HostPath, error) {
	list := []state.HostPath{}
	for _, path := range asked {
		real, err := o.AllowWrite(path)
		if err != nil {
			return nil, err
		}
		list = append(list, state.HostPath(real))
	}
	return list, nil
}

func hostPaths(list []state.HostPath) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, string(p))
	}
	return out
}

// relatedTrees returns the other work trees of a repository, those of sessions
// left out, and the object stores that it borrows from.
func relatedTrees(commonDir, origin string) []string {
	var list []string
	add := func(path string) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != origin {
			list = append(list, real)
		}
	}
	if filepath.Base(commonDir) == ".git" {
		add(filepath.Dir(commonDir))
	}
	admins, _ := state.Names(filepath.Join(commonDir, "worktrees")) // none, mostly
	for _, name := range admins {
		if _, err := superqode.ParseSessionID(name); err == nil {
			continue // lies in SUPERQODE_HOME, which is guarded whole
		}
		if file := atomicfile.ReadLine(filepath.Join(commonDir, "worktrees", name, "gitdir")); file != "" {
			add(filepath.Dir(superqode.Under(filepath.Join(commonDir, "worktrees", name), file)))
		}
	}
	objects := filepath.Join(commonDir, "objects")
	for line := range strings.Lines(atomicfile.ReadLine(filepath.Join(objects, "info", "alternates"))) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			add(superqode.Under(objects, line))
		}
	}
	return list
}
