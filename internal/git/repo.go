package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
)

// ErrNoRepository means that a directory is in no git repository.
var ErrNoRepository = errors.New("not a git repository")

// Repo is a repository with a work tree, as git found it from a directory.
// Every path is absolute and free of symbolic links.
type Repo struct {
	*Git
	TopLevel     string // the work tree's root; "" in a bare repository
	GitDir       string // this work tree's git dir
	CommonDir    string // shared by all linked worktrees; equal to GitDir in the main one
	Prefix       string // from TopLevel to the directory asked about: "" or "a/b/"
	Bare         bool
	ObjectFormat string // "sha1" or "sha256"

	head   string  // HEAD's commit when the repository was found; "" when that was not asked
	config *Config // as it was when the repository was found; nil when git was not asked
	plain  bool    // refs and objects are in the format that go-git reads
}

// Linked reports whether the work tree is a linked one.
func (r *Repo) Linked() bool { return r.GitDir != r.CommonDir }

// Discover finds the repository that dir belongs to, and git's version where that
// is not known yet. It returns an error that wraps ErrNoRepository when there is
// none. In a usual repository one process of git reads the configuration, which
// says whose repository git takes dir for, and the rest is read in process. About
// every other repository git is asked.
func (g *Git) Discover(ctx context.Context, dir string) (*Repo, error) {
	r, err := g.discoverPlain(ctx, dir)
	if !errors.Is(err, errAskGit) {
		return r, err
	}
	var version errgroup.Group
	if g.Version == (Version{}) {
		version.Go(func() error { return g.CheckVersion(ctx) })
	}
	r, err = g.discover(ctx, dir)
	if verr := version.Wait(); verr != nil {
		return nil, verr // an old git's answer to anything else explains less
	}
	return r, err
}

// discoverPlain is Discover for a repository without extensions that lies where its
// .git says. The error is errAskGit for all that it does not know.
func (g *Git) discoverPlain(ctx context.Context, dir string) (*Repo, error) {
	r, err := g.findDotGit(dir)
	if err != nil {
		return nil, errAskGit
	}
	version := g.Version
	if version != (Version{}) {
		r.config, err = g.readConfig(ctx, dir)
	} else if r.config, version, err = g.readConfigAndVersion(ctx, dir); err == nil && version != (Version{}) {
		err = g.setVersion(version)
	}
	if _, refused := errors.AsType[*ExitError](err); refused {
		return nil, errAskGit
	}
	if err != nil {
		return nil, err
	}
	if version == (Version{}) || !r.isPlain() {
		return nil, errAskGit
	}
	r.plain = true
	r.head, err = r.Head(ctx)
	return r, err
}

// findDotGit walks up from dir to the first folder that holds a .git.
func (g *Git) findDotGit(dir string) (*Repo, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	r := &Repo{Git: g, TopLevel: real, ObjectFormat: "sha1"}
	for {
		st, err := os.Stat(filepath.Join(r.TopLevel, ".git"))
		if err == nil {
			r.GitDir, err = gitDir(r.TopLevel, st)
			if err == nil {
				r.CommonDir, err = commonDir(r.GitDir)
			}
			if r.TopLevel != real {
				r.Prefix = strings.TrimPrefix(strings.TrimPrefix(real, r.TopLevel), "/") + "/"
			}
			return r, err
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		_, err = os.Lstat(filepath.Join(r.TopLevel, "HEAD")) // a git dir itself, perhaps
		if err == nil || r.TopLevel == filepath.Dir(r.TopLevel) {
			return nil, ErrNoRepository
		}
		r.TopLevel = filepath.Dir(r.TopLevel)
	}
}

// Top returns the folder that dir lies in, or is, and that holds a .git; "" for none. It
// asks the file system only.
func Top(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// gitDir returns the git dir that the .git in a folder is or, as a file, names.
func gitDir(top string, dotGit os.FileInfo) (string, error) {
	dir := filepath.Join(top, ".git")
	switch {
	case dotGit.IsDir():
	case !dotGit.Mode().IsRegular():
		return "", ErrNoRepository
	default:
		data, err := os.ReadFile(dir)
		name, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return "", errors.Join(ErrNoRepository, err)
		}
		if dir = name; !filepath.IsAbs(name) {
			dir = filepath.Join(top, name)
		}
	}
	return filepath.EvalSymlinks(dir)
}

// isPlain reports whether git, too, takes the repository for the one that was
// found: the configuration that it read as the repository's own is the one of
// CommonDir. It reads none in a repository of another user, which it refuses. And
// whether go-git knows the format: it has no extension (reftable, SHA-256,
// configuration of one work tree, partial clone), and its work tree is where it was
// found.
func (r *Repo) isPlain() bool {
	own, err := os.Stat(filepath.Join(r.CommonDir, "config"))
	if err != nil {
		return false
	}
	found, name := false, ""
	for _, e := range r.config.Entries {
		switch {
		case strings.HasPrefix(e.Key, "extensions."), e.Key == "core.worktree",
			e.Key == "core.bare" && e.Value != "false",
			e.Key == "core.repositoryformatversion" && e.Value != "0" && e.Value != "1":
			return false
		case e.Scope == "local" && e.Origin != name:
			name = e.Origin
			file := strings.TrimPrefix(name, "file:")
			if !filepath.IsAbs(file) {
				file = filepath.Join(r.TopLevel, file)
			}
			st, err := os.Stat(file)
			found = found || err == nil && os.SameFile(st, own)
		}
	}
	return found
}

// discover asks git alone.
func (g *Git) discover(ctx context.Context, dir string) (*Repo, error) {
	r := &Repo{Git: g}
	ask := []string{"--is-bare-repository", "--show-object-format", "--absolute-git-dir"}
	tree := []string{"--show-toplevel", "--show-prefix"}
	// A work tree with a commit takes one process. Where git refuses one of the
	// questions they are asked again, one step at a time.
	lines, err := g.revParse(ctx, dir, append(append(ask[:len(ask):len(ask)], tree...), "HEAD^{commit}"))
	if err == nil {
		r.head = lines[5]
	} else if err = discoverError(dir, err); errors.Is(err, ErrNoRepository) {
		return nil, err
	} else if lines, err = g.revParse(ctx, dir, ask); err != nil {
		return nil, discoverError(dir, err)
	}
	r.Bare, r.ObjectFormat = lines[0] == "true", lines[1]
	if r.GitDir, err = filepath.EvalSymlinks(lines[2]); err != nil {
		return nil, err
	}
	if r.CommonDir, err = commonDir(r.GitDir); err != nil {
		return nil, err
	}
	if r.Bare {
		return r, nil
	}
	if lines = lines[len(ask):]; len(lines) == 0 {
		if lines, err = g.revParse(ctx, dir, tree); err != nil {
			return nil, discoverError(dir, err)
		}
	}
	r.TopLevel, r.Prefix = lines[0], lines[1]
	if r.TopLevel == "" { // inside the git dir itself
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is inside a git directory, not in a work tree", dir), "name the work tree: superqode -C %s …", filepath.Dir(r.CommonDir))
	}
	r.TopLevel, err = filepath.EvalSymlinks(r.TopLevel)
	return r, err
}

// commonDir reads what git reads. rev-parse --git-common-dir answers relative to
// a working directory, and --path-format=absolute needs git 2.31.
func commonDir(gitDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, os.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	common := strings.TrimRight(string(data), "\r\n") // as git's get_common_dir_noenv does
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	return filepath.EvalSymlinks(common)
}

// revParse asks several questions in one process and, when an answer holds a
// newline so that the lines cannot be told apart, one question a process.
func (g *Git) revParse(ctx context.Context, dir string, ask []string) ([]string, error) {
	out, err := g.Output(ctx, Cmd{Dir: dir, Args: append([]string{"rev-parse"}, ask...)})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) == len(ask) {
		return lines, nil
	}
	lines = lines[:0]
	for _, q := range ask {
		out, err := g.Output(ctx, Cmd{Dir: dir, Args: []string{"rev-parse", q}})
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.TrimSuffix(string(out), "\n"))
	}
	return lines, nil
}

func discoverError(dir string, err error) error {
	if _, serr := os.Stat(dir); serr != nil {
		return serr
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		return err
	}
	switch {
	case strings.Contains(exit.Stderr, "dubious ownership"):
		// git prints the command that allows it, with the path it compares
		cmd := fmt.Sprintf("git config --global --add safe.directory %s", dir)
		if i := strings.LastIndex(exit.Stderr, "git config --global"); i >= 0 {
			cmd = strings.TrimSpace(exit.Stderr[i:])
		}
		return superqode.WithHint(fmt.Errorf("git refuses %s: it belongs to another user", dir), "%s", cmd)
	case strings.Contains(exit.Stderr, "must be run in a work tree"):
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
			"%s is inside a git directory, not in a work tree", dir), "name the work tree with -C DIR")
	case strings.Contains(exit.Stderr, "not a git repository"):
		return fmt.Errorf("%s: %w", dir, ErrNoRepository)
	}
	return err
}

// Head returns the commit id of HEAD, as it was when the repository was found, or
// "" while the branch has no commit.
func (r *Repo) Head(ctx context.Context) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if r.head != "" {
		return r.head, nil
	}
	id, err := r.Commit(ctx, "HEAD")
	if errors.Is(err, superqode.ErrNotFound) {
		return "", nil
	}
	return id, err
}

// Commit resolves a revision to a commit id, or returns an error that wraps
// superqode.ErrNotFound.
func (r *Repo) Commit(ctx context.Context, rev string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if rev == "" || strings.HasPrefix(rev, "-") {
		return "", superqode.Errorf(superqode.ErrNotFound, "no such revision: %q", rev)
	}
	if id, err := r.readCommit(rev); err == nil {
		return id, nil
	}
	spec := rev + "^{commit}"
	if strings.HasPrefix(rev, ":/") { // the rest is a text to search for, suffix included
		spec = rev
	}
	out, err := r.Output(ctx, Cmd{Dir: r.dir(), Args: []string{"rev-parse", "--verify", "--quiet", spec}})
	var exit *ExitError
	if errors.As(err, &exit) {
		return "", superqode.Errorf(superqode.ErrNotFound, "no such revision: %q", rev)
	}
	return strings.TrimSpace(string(out)), err
}

func (r *Repo) dir() string {
	if r.TopLevel != "" {
		return r.TopLevel
	}
	return r.GitDir
}
