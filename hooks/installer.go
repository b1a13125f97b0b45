package hooks

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
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
)

// Installer puts hooks into a repository and takes them out again.
type Installer struct {
	Git     *git.Git
	Env     []string // the caller's
	Helper  string   // the binary that the hooks call, absolute
	Version string
	Now     func() time.Time
}

// place is where git looks for hooks in one work tree.
type place struct {
	value  string // core.hooksPath as it stands, "" when it is not set
	path   string // the same with ~ expanded
	scope  string // "local", "worktree", "global", "system", "command"
	origin string // the file in which it stands
	set    bool
}

// look asks git where it looks for hooks, as the user's own git would.
func (i *Installer) look(ctx context.Context, repo *git.Repo) (place, error) {
	out, err := i.run(ctx, repo, "config", "-z", "--show-scope", "--show-origin", "--get", "core.hooksPath")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return place{}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("ask git for core.hooksPath: %w", err)
	}
	f := strings.Split(string(out), "\x00")
	if len(f) < 3 {
		return place{}, fmt.Errorf("ask git for core.hooksPath: unexpected answer %q", out)
	}
	p := place{scope: f[0], origin: strings.TrimPrefix(f[1], "file:"), value: f[2], set: true}
	p.origin = inside(repoDir(repo), p.origin)
	expanded, err := i.run(ctx, repo, "config", "-z", "--type=path", "--get", "core.hooksPath")
	if err != nil {
		return place{}, fmt.Errorf("ask git for core.hooksPath: %w", err)
	}
	p.path = strings.TrimSuffix(string(expanded), "\x00")
	return p, nil
}

func repoDir(repo *git.Repo) string {
	if repo.TopLevel != "" {
		return repo.TopLevel
	}
	return repo.GitDir
}

// run runs the user's git as the user would, configuration included: git.Git's own
// calls switch hooks off.
func (i *Installer) run(ctx context.Context, repo *git.Repo, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, i.Git.Bin, args...)
	cmd.Dir = repoDir(repo)
	cmd.Env = append(git.CleanEnv(i.Env), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), err
}

// Install puts the hooks in, or brings those that are in up to date. changed is
// false when everything was there already.
func (i *Installer) Install(ctx context.Context, repo *git.Repo, o InstallOptions) (changed bool, err error) {
	if err := o.check(); err != nil {
		return false, err
	}
	l := layoutOf(repo.CommonDir)
	unlock, err := lockRepository(l.common)
	if err != nil {
		return false, installError(err, l)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	at, err := i.look(ctx, repo)
	if err != nil {
		return false, err
	}
	old, err := loadInstallation(l.state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	method := methodOf(l, at)
	if old != nil && (old.Method != method || old.moved(l)) { // the user has hooks in another way by now, or elsewhere
		if _, err := i.takeOut(ctx, repo, l, old); err != nil {
			return false, installError(err, l)
		}
		if at, err = i.look(ctx, repo); err != nil {
			return true, err
		}
		old, method, changed = nil, methodOf(l, at), true
	}
	in := &Installation{InstalledAt: i.Now().UTC().Truncate(time.Second), Version: i.Version, Method: method, Strict: o.Strict, Allow: orEmpty(o.Allow), Deny: orEmpty(o.Deny), Helper: superqode.HostPath(i.Helper)}
	if old != nil {
		in.InstalledAt, in.MadeFolder, in.Config = old.InstalledAt, old.MadeFolder, old.Config
	}
	if method == MethodFolder {
		did, ferr := i.putIntoFolder(l, in)
		changed, err = changed || did, ferr
	} else {
		did, cerr := i.putIntoConfig(ctx, repo, l, in, at)
		changed, err = changed || did, cerr
	}
	return changed, installError(err, l)
}

// moved reports that the repository was moved, with a configuration of ours in it.
func (in *Installation) moved(l layout) bool {
	return in.Config != nil && string(in.Config.Own) != l.own
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// methodOf chooses between the rules at the head of install.go.
func methodOf(l layout, at place) Method {
	if at.set {
		return MethodConfig
	}
	if st, err := os.Lstat(l.hooks); err == nil && !st.IsDir() {
		return MethodConfig // a link: what it leads to is not only this repository's
	}
	return MethodFolder
}

func samePath(a, b string) bool {
	return a == b || realPath(a) == realPath(b)
}

// putIntoFolder is rule 1.
func (i *Installer) putIntoFolder(l layout, in *Installation) (changed bool, err error) {
	if _, err := os.Lstat(l.hooks); errors.Is(err, fs.ErrNotExist) {
		in.MadeFolder = true
	}
	todo, strays := in.folderTodo(l), strayHooks(l)
	if len(todo)+len(strays) == 0 {
		in.Done = true
		return in.save(l)
	}
	in.Done = false
	if _, err := in.save(l); err != nil {
		return false, err
	}
	failpoint.Hit("guard.install.begun")
	times := folderTimes(l.hooks)
	if err := os.MkdirAll(l.hooks, 0o777); err != nil {
		return false, err
	}
	for _, name := range todo {
		if err := in.replaceHook(l, name); err != nil {
			return true, err
		}
	}
	for _, name := range strays { // lefthook would not rename over its pre-push.old
		if err := os.Remove(filepath.Join(l.hooks, name)); err != nil {
			return true, err
		}
	}
	if err := mirror(l); err != nil {
		return true, err
	}
	times.restore(l.hooks)
	in.Done = true
	_, err = in.save(l)
	return true, err
}

// strayHooks lists hooks of ours that a hook manager has renamed.
func strayHooks(l layout) []string {
	return slices.DeleteFunc(ourHooks(l.hooks), func(name string) bool { return slices.Contains(deciders(), name) })
}

// folderTodo lists the hooks that are not in place.
func (in *Installation) folderTodo(l layout) []string {
	return slices.DeleteFunc(deciders(), func(name string) bool {
		data, err := os.ReadFile(filepath.Join(l.hooks, name))
		st, serr := os.Lstat(filepath.Join(l.hooks, name))
		return err == nil && serr == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0 && string(data) == in.folderScript(name)
	})
}

func (in *Installation) folderScript(name string) string {
	return in.script(name, `"${0%/*}/../`+originalsFolder+"/"+name+`"`)
}

// replaceHook puts our hook in the place of one name. What is there goes aside
// first, by a hard link where it can be, so that the name is never empty.
func (in *Installation) replaceHook(l layout, name string) error {
	at, aside := filepath.Join(l.hooks, name), filepath.Join(l.originals, name)
	if st, err := os.Lstat(at); err == nil && !isOurs(at) {
		if err := setAside(at, aside, st); err != nil {
			return err
		}
		failpoint.Hit("guard.install.aside")
	}
	if err := atomicfile.Write(at, []byte(in.folderScript(name)), 0o755); err != nil {
		return err
	}
	failpoint.Hit("guard.install.hook")
	return nil
}

func setAside(at, aside string, st fs.FileInfo) error {
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	if old, err := os.Lstat(aside); err == nil && !os.SameFile(old, st) { // of an earlier time: somebody replaced ours since
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
// folder: a hook that reads files beside it finds them.
func mirror(l layout) error {
	if _, err := os.Lstat(l.originals); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(l.hooks)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sample") || isOurs(filepath.Join(l.hooks, e.Name())) {
			continue
		}
		if err := os.Symlink("../hooks/"+e.Name(), filepath.Join(l.originals, e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func installError(err error, l layout) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrPermission) {
		return superqode.WithHint(err, "ls -ld %s", l.common)
	}
	return err
}

// times are a folder's own times, to be put back when its entries were changed and
// changed back.
type times struct {
	mod   time.Time
	known bool
}

func folderTimes(dir string) times {
	st, err := os.Stat(dir)
	if err != nil {
		return times{}
	}
	return times{st.ModTime(), true}
}

func (t times) restore(dir string) {
	if t.known {
		_ = os.Chtimes(dir, t.mod, t.mod) // a nicety: nothing depends on it
	}
}
