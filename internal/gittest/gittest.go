// Package gittest makes real git repositories for the tests and benchmarks of
// every package.
//
// Nothing is mocked and nothing of the user's is touched: each fixture has a
// home folder of its own, and git gets it through the environment of each
// process, never through the test's own, so that tests may run in parallel.
// Commits carry a fixed date, so the same steps give the same commit ids.
//
//	f := gittest.Repo(t)
//	f.Write("a.txt", "one\n")
//	f.Commit("first")
//	g, err := git.Find(ctx, f.Env())
package gittest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// TB is the part of testing.TB that fixtures need.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
}

// commitDate is the author and committer date of every commit of a fixture.
const commitDate = "2024-01-02T03:04:05Z"

// globalConfig is the user's configuration: an identity and nothing surprising.
const globalConfig = `[user]
	name = Test Author
	email = author@example.com
[init]
	defaultBranch = main
[gc]
	auto = 0
[maintenance]
	auto = false
[protocol "file"]
	allow = always
[advice]
	detachedHead = false
	addEmbeddedRepo = false
`

// Fixture is one directory, usually a repository, with the home folder and
// environment that belong to it. Dir and Home are absolute and free of links.
type Fixture struct {
	Dir  string
	Home string
	tb   TB
	env  []string
}

// Env returns a whole environment (KEY=VALUE) with a fresh home folder: HOME,
// the XDG folders, TMPDIR and SUPERQODE_HOME lie in it, the system's git
// configuration is off and the user's holds an identity. Of the caller's
// environment only PATH and what the Go tool needs is kept.
func Env(tb TB) []string {
	tb.Helper()
	return environ(tb, tempDir(tb))
}

// Repo makes an empty repository on branch main; its first commit is the
// caller's to make.
func Repo(tb TB, initArgs ...string) *Fixture {
	tb.Helper()
	if len(initArgs) == 0 {
		return emptyTemplate.Make(tb)
	}
	f := Plain(tb)
	f.Git(append([]string{"init", "-q"}, initArgs...)...)
	return f
}

var emptyTemplate = Template{Build: func(f *Fixture) { f.Git("init", "-q") }}

// Plain makes an empty directory that is in no repository.
func Plain(tb TB) *Fixture {
	tb.Helper()
	return In(tb, filepath.Join(tempDir(tb), "repo"))
}

// In makes the directory dir, which may exist, and gives it a home of its own.
func In(tb TB, dir string) *Fixture {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
	home := tempDir(tb)
	return &Fixture{Dir: dir, Home: home, tb: tb, env: environ(tb, home)}
}

// For returns the fixture as one of the test tb.
func (f Fixture) For(tb TB) *Fixture { f.tb = tb; return &f }

func tempDir(tb TB) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir()) // on macOS /var is a link
	if err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
	return dir
}

// shortTmp makes a TMPDIR in which the sessions' own have room: a session that the test
// leaves open leaves nothing in /tmp.
func shortTmp(tb TB, home string) string {
	tb.Helper()
	t, ok := tb.(interface{ Cleanup(func()) })
	dir, err := filepath.Join(home, "tmp"), error(nil)
	if ok {
		if dir, err = os.MkdirTemp("/tmp", "sq"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
		}
	} else {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
	return dir
}

func environ(tb TB, home string) []string {
	tb.Helper()
	env := []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"SUPERQODE_HOME=" + filepath.Join(home, ".superqode"),
		"TMPDIR=" + shortTmp(tb, home),
		"GIT_CONFIG_GLOBAL=" + filepath.Join(home, ".gitconfig"),
		"GIT_CONFIG_NOSYSTEM=1",
		"LC_ALL=C",
		"TZ=UTC",
		"TERM=dumb",
	}
	for _, k := range []string{"PATH", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS",
		"GOCOVERDIR", "GORACE", "GOGC"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(globalConfig), 0o600); err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
	return env
}

// Env returns the fixture's environment with the given KEY=VALUE pairs added;
// a pair replaces an earlier one with the same key.
func (f *Fixture) Env(add ...string) []string {
	var env []string
	for _, kv := range append(f.env[:len(f.env):len(f.env)], add...) {
		key, _, _ := strings.Cut(kv, "=")
		for i, old := range env {
			if strings.HasPrefix(old, key+"=") {
				env = append(env[:i], env[i+1:]...)
				break
			}
		}
		env = append(env, kv)
	}
	return env
}

// Git runs git in the fixture's directory and returns its stdout without the
// last newline; the test ends when git fails.
func (f *Fixture) Git(args ...string) string {
	f.tb.Helper()
	return f.GitIn(f.Dir, args...)
}

// GitIn is Git in another directory, with the fixture's environment.
func (f *Fixture) GitIn(dir string, args ...string) string {
	f.tb.Helper()
	out, err := f.Try(dir, args...)
	if err != nil {
		f.tb.Fatalf("%v", err)
	}
	return strings.TrimSuffix(out, "\n")
}

// Try runs git in dir and returns its exact stdout; the error holds stderr.
func (f *Fixture) Try(dir string, args ...string) (string, error) {
	return f.pipe(dir, nil, args...)
}

// GitInput is Git with something on its stdin.
func (f *Fixture) GitInput(stdin string, args ...string) string {
	f.tb.Helper()
	out, err := f.pipe(f.Dir, []byte(stdin), args...)
	if err != nil {
		f.tb.Fatalf("%v", err)
	}
	return strings.TrimSuffix(out, "\n")
}

func (f *Fixture) pipe(dir string, stdin []byte, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Stdin = dir, &stdout, &stderr, bytes.NewReader(stdin)
	cmd.Env = f.Env("GIT_AUTHOR_DATE="+commitDate, "GIT_COMMITTER_DATE="+commitDate)
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// Path returns the absolute path of rel, a slash-separated path in the fixture.
func (f *Fixture) Path(rel string) string { return filepath.Join(f.Dir, filepath.FromSlash(rel)) }

// Write makes the file rel, and its folders, with permission bits 0644; an
// existing file keeps its bits.
func (f *Fixture) Write(rel, contents string) { f.tb.Helper(); f.WriteMode(rel, contents, 0) }

// WriteMode is Write with permission bits; 0 leaves them alone.
func (f *Fixture) WriteMode(rel, contents string, perm os.FileMode) {
	f.tb.Helper()
	p := f.Path(rel)
	err := os.MkdirAll(filepath.Dir(p), 0o755)
	if err == nil {
		err = os.WriteFile(p, []byte(contents), 0o644)
	}
	if err == nil && perm != 0 {
		err = os.Chmod(p, perm)
	}
	f.written(err)
}

// Read returns the contents of the file rel.
func (f *Fixture) Read(rel string) string {
	f.tb.Helper()
	b, err := os.ReadFile(f.Path(rel))
	if err != nil {
		f.tb.Fatalf("read fixture: %v", err)
	}
	return string(b)
}

// Symlink makes the symbolic link rel with the given target.
func (f *Fixture) Symlink(target, rel string) {
	f.tb.Helper()
	err := os.MkdirAll(filepath.Dir(f.Path(rel)), 0o755)
	if err == nil {
		err = os.Symlink(target, f.Path(rel))
	}
	f.written(err)
}

// Mkdir makes the folder rel and those above it.
func (f *Fixture) Mkdir(rel string) {
	f.tb.Helper()
	f.written(os.MkdirAll(f.Path(rel), 0o755))
}

// Remove deletes rel and everything below it.
func (f *Fixture) Remove(rel string) {
	f.tb.Helper()
	f.written(os.RemoveAll(f.Path(rel)))
}

func (f *Fixture) written(err error) {
	f.tb.Helper()
	if err != nil {
		f.tb.Fatalf("write fixture: %v", err)
	}
}

// Commit stages everything, commits it (an empty commit is fine) and returns the
// commit id.
func (f *Fixture) Commit(message string) string {
	f.tb.Helper()
	f.Git("add", "-A")
	f.Git("commit", "-q", "--no-verify", "--allow-empty", "-m", message)
	if head, err := os.ReadFile(f.Path(".git/HEAD")); err == nil {
		if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/"); ok {
			if id, err := os.ReadFile(f.Path(".git/refs/heads/" + branch)); err == nil {
				return strings.TrimSpace(string(id))
			}
		}
	}
	return f.Git("rev-parse", "HEAD")
}

// Status returns `git status --porcelain=v2 -uall` with NULs as newlines. The
// index is not refreshed on disk.
func (f *Fixture) Status() string { f.tb.Helper(); return f.StatusIn(f.Dir) }

// StatusIn is Status of another work tree.
func (f *Fixture) StatusIn(dir string) string {
	f.tb.Helper()
	out := f.GitIn(dir, "--no-optional-locks", "status", "--porcelain=v2", "-uall", "-z")
	return strings.ReplaceAll(out, "\x00", "\n")
}

// Settle moves the modification time of every file an hour into the past and
// refreshes the index, so that no entry is racily clean.
func (f *Fixture) Settle() {
	f.tb.Helper()
	past := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	err := filepath.WalkDir(f.Dir, func(p string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.Type().IsRegular():
			return os.Chtimes(p, past, past)
		}
		return nil
	})
	if err != nil {
		f.tb.Fatalf("settle fixture: %v", err)
	}
	// exits 1 when something is modified, and has refreshed the rest
	_, _ = f.Try(f.Dir, "update-index", "-q", "--refresh")
}
