package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/installation"
)

// Installer puts hooks into one repository and takes them out again. Open makes one.
type Installer struct {
	Helper  string           // the binary that the hooks call, absolute
	Version string           // of the program that installs, for Status
	Now     func() time.Time // time.Now

	git  *git.Git
	env  []string // the caller's
	repo *git.Repo
}

// Open finds git in the PATH of env (KEY=VALUE) and the repository that dir is in.
// The caller sets Helper before it installs.
// A git in dir's work tree, or in one of avoid, is passed over.
func Open(ctx context.Context, dir string, env []string, avoid ...string) (*Installer, error) {
	g, err := git.Find(ctx, env, append(avoid, git.Top(dir))...)
	if err != nil {
		return nil, err
	}
	repo, err := g.Discover(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Installer{Now: time.Now, git: g, env: env, repo: repo}, nil
}

// Dir returns the root of the repository's work tree, or the git directory of a bare
// one.
func (i *Installer) Dir() string {
	if i.repo.TopLevel != "" {
		return i.repo.TopLevel
	}
	return i.repo.GitDir
}

// IsInstalled reports whether the guard was installed in the repository. Inspect says
// whether it holds.
func (i *Installer) IsInstalled() bool { return i.layout().IsInstalled() }

func (i *Installer) layout() installation.Layout { return installation.LayoutOf(i.repo.CommonDir) }

// AllowOnce lets the next command through that does this operation in the
// repository, or one that the name covers ("stash" covers "stash.drop"), within the
// time that it returns. The error wraps superqode.ErrNotFound where the guard is not
// installed, and superqode.ErrUsage for an unknown operation.
func (i *Installer) AllowOnce(op guard.Operation) (until time.Time, err error) {
	l := i.layout()
	if _, err := installation.Load(l.State); errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound,
			"the guard is not installed in %s", i.Dir()),
			"superqode guard install, or name a session: superqode guard allow --session S --once %s", op)
	} else if err != nil {
		return time.Time{}, err
	}
	if _, err := guard.NewPolicy([]string{string(op)}, nil); err != nil {
		return time.Time{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "unknown operation %q", op),
			"superqode guard status --operations")
	}
	return installation.AllowOnce(l.State, op, i.Now())
}

// place is where git looks for hooks in one work tree.
type place struct {
	value  string // core.hooksPath as it stands, "" when it is not set
	path   string // the same with ~ expanded
	scope  string // "local", "worktree", "global", "system", "command"
	origin string // the file in which it stands
	set    bool
}

// look asks git where it looks for hooks, as the user's own git would. former is where it
// would look without what own includes, see includeOwn.
func (i *Installer) look(ctx context.Context) (at, former place, err error) {
	out, err := i.run(ctx, "config", "-z", "--show-scope", "--show-origin", "--get-all", "core.hooksPath")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return at, former, nil
	}
	var expanded []byte
	if err == nil {
		expanded, err = i.run(ctx, "config", "-z", "--type=path", "--get-all", "core.hooksPath")
	}
	if err != nil {
		return at, former, fmt.Errorf("ask git for core.hooksPath: %w", err)
	}
	f, paths := strings.Split(string(out), "\x00"), strings.Split(string(expanded), "\x00")
	if len(f) != 3*len(paths)-2 {
		return at, former, fmt.Errorf("ask git for core.hooksPath: unexpected answer %q", out)
	}
	for n, path := range paths[:len(paths)-1] {
		at = place{scope: f[3*n], value: f[3*n+2], path: path, set: true}
		at.origin = inside(i.Dir(), strings.TrimPrefix(f[3*n+1], "file:"))
		if !at.isOurs(i.layout()) {
			former = at
		}
	}
	return at, former, nil
}

// isOurs reports whether the value comes from the file that ours includes.
func (p place) isOurs(l installation.Layout) bool {
	return p.set && samePath(p.origin, filepath.Join(l.Own, ownConfig))
}

// run runs the user's git as the user would, configuration included: git.Git's own
// calls switch hooks off.
func (i *Installer) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, i.git.Bin, args...)
	cmd.Dir = i.Dir()
	cmd.Env = append(git.CleanEnv(i.env), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), err
}

// Options is what Install is asked for.
type Options struct {
	Strict      bool     // stop people at a terminal, too
	Allow, Deny []string // guard.allow and guard.deny of the configuration
}

// Install puts the hooks in, or brings those that are in up to date. changed is
// false when everything was there already.
func (i *Installer) Install(ctx context.Context, o Options) (changed bool, err error) {
	if _, err := guard.NewPolicy(o.Allow, o.Deny); err != nil {
		return false, err
	}
	l := i.layout()
	unlock, err := installation.Lock(l.Common)
	if err != nil {
		return false, installError(err, l)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	at, former, err := i.look(ctx)
	if err != nil {
		return false, err
	}
	old, err := installation.Load(l.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	method := i.methodOf(l, at)
	moved := old != nil && old.Config != nil && (string(old.Config.Own) != l.Own || !at.isOurs(l))
	if moved || old != nil && old.Method != method { // the user has hooks in another way by now, or elsewhere
		if _, err := i.takeOut(ctx, l, old); err != nil {
			return false, installError(err, l)
		}
		if at, former, err = i.look(ctx); err != nil {
			return true, err
		}
		old, method, changed = nil, i.methodOf(l, at), true
	}
	in := &installation.Record{InstalledAt: i.Now().UTC().Truncate(time.Second), Version: i.Version, Method: method,
		Strict: o.Strict, Allow: orEmpty(o.Allow), Deny: orEmpty(o.Deny), Helper: superqode.HostPath(i.Helper)}
	if old != nil {
		in.InstalledAt, in.MadeFolder, in.Config = old.InstalledAt, old.MadeFolder, old.Config
	}
	var did bool
	if method == installation.MethodFolder {
		did, err = i.putIntoFolder(l, in)
	} else {
		did, err = i.putIntoConfig(l, in, at, former)
	}
	return changed || did, installError(err, l)
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// methodOf chooses between the rules.
func (i *Installer) methodOf(l installation.Layout, at place) string {
	if at.set {
		return installation.MethodConfig
	}
	_, err := os.Stat(filepath.Join(i.Dir(), ".husky"))
	if data, _ := os.ReadFile(filepath.Join(i.Dir(), "package.json")); err == nil || bytes.Contains(data, []byte("husky")) {
		return installation.MethodConfig // its prepare sets core.hooksPath with the next npm install
	}
	if st, err := os.Lstat(l.Hooks); err == nil && !st.IsDir() {
		return installation.MethodConfig // a link: what it leads to is not only this repository's
	}
	return installation.MethodFolder
}

// inside makes a path absolute; "" stays "".
func inside(dir, path string) string {
	if path == "" {
		return ""
	}
	return superqode.Under(dir, path)
}

func samePath(a, b string) bool {
	return a == b || superqode.RealPrefix(a) == superqode.RealPrefix(b)
}

// putIntoFolder is rule 1.
func (i *Installer) putIntoFolder(l installation.Layout, in *installation.Record) (changed bool, err error) {
	if _, err := os.Lstat(l.Hooks); errors.Is(err, fs.ErrNotExist) {
		in.MadeFolder = true
	}
	todo, strays := folderTodo(in, l), strayHooks(l)
	if len(todo)+len(strays) == 0 {
		in.Done = true
		return in.Save(l)
	}
	in.Done = false
	if _, err := in.Save(l); err != nil {
		return false, err
	}
	failpoint.Hit("guard.install.begun")
	restoreTime := folderTime(l.Hooks)
	if err := os.MkdirAll(l.Hooks, 0o777); err != nil {
		return false, err
	}
	for _, name := range todo {
		if err := replaceHook(in, l, name); err != nil {
			return true, err
		}
	}
	for _, name := range strays { // lefthook would not rename over its pre-push.old
		if err := os.Remove(filepath.Join(l.Hooks, name)); err != nil {
			return true, err
		}
	}
	if err := mirror(l); err != nil {
		return true, err
	}
	restoreTime()
	in.Done = true
	_, err = in.Save(l)
	return true, err
}

// strayHooks lists hooks of ours that a hook manager has renamed.
func strayHooks(l installation.Layout) []string {
	return slices.DeleteFunc(ourHooks(l.Hooks), func(name string) bool { return slices.Contains(installation.Deciders(), name) })
}

// folderTodo lists the hooks that are not in place.
func folderTodo(in *installation.Record, l installation.Layout) []string {
	return slices.DeleteFunc(installation.Deciders(), func(name string) bool {
		return holds(filepath.Join(l.Hooks, name), folderScript(in, name))
	})
}

func folderScript(in *installation.Record, name string) string {
	return script(in, name, `next="${0%/*}/../`+installation.OriginalsFolder+"/"+name+`"`)
}

// replaceHook puts our hook in the place of one name. What is there goes aside
// first, by a hard link where it can be, so that the name is never empty.
func replaceHook(in *installation.Record, l installation.Layout, name string) error {
	at, aside := filepath.Join(l.Hooks, name), filepath.Join(l.Originals, name)
	if st, err := os.Lstat(at); err == nil && !isOurs(at) {
		if err := setAside(at, aside, st); err != nil {
			return err
		}
		failpoint.Hit("guard.install.aside")
	}
	if err := atomicfile.Write(at, []byte(folderScript(in, name)), 0o755); err != nil {
		return err
	}
	failpoint.Hit("guard.install.hook")
	return nil
}

func setAside(at, aside string, st fs.FileInfo) error {
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	// of an earlier time: somebody replaced ours since
	if old, err := os.Lstat(aside); err == nil && !os.SameFile(old, st) {
		if sameContents(at, aside) {
			err = os.Remove(aside)
		} else {
			err = keepAside(aside)
		}
		if err != nil {
			return err
		}
	} else if err == nil {
		return nil // linked before a crash
	}
	if !st.IsDir() && os.Link(at, aside) == nil {
		if got, err := os.Lstat(aside); err == nil && os.SameFile(got, st) {
			return nil
		}
		if err := os.Remove(aside); err != nil { // macOS links what a symbolic link leads to
			return err
		}
	}
	return os.Rename(at, aside)
}

// keepAside gives an older file a name of its own.
func keepAside(path string) error {
	if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "../hooks/") {
		return os.Remove(path) // a mirror's link
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.before-%d", path, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(path, to)
		}
	}
}

// mirror gives the folder of set aside hooks links to everything else in the hooks
// folder: a hook that reads files next to it finds them.
func mirror(l installation.Layout) error {
	if _, err := os.Lstat(l.Originals); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(l.Hooks)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sample") || isOurs(filepath.Join(l.Hooks, e.Name())) {
			continue
		}
		if err := os.Symlink("../hooks/"+e.Name(), filepath.Join(l.Originals, e.Name())); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func installError(err error, l installation.Layout) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrPermission) {
		return superqode.WithHint(err, "ls -ld %s", l.Common)
	}
	return err
}

// folderTime remembers a folder's own time, to be restored after its entries were
// changed and changed back.
func folderTime(dir string) (restore func()) {
	st, err := os.Stat(dir)
	if err != nil {
		return func() {}
	}
	return func() { _ = os.Chtimes(dir, st.ModTime(), st.ModTime()) } // a nicety: nothing depends on it
}
