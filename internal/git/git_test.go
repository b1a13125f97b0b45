package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

func find(t *testing.T, env []string) *git.Git {
	t.Helper()
	g, err := git.Find(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fakeGit makes a folder with a git that runs the given shell lines.
func fakeGit(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]git.Version{
		"git version 2.39.5\n":                 {2, 39, 5},
		"git version 2.28.0":                   {2, 28, 0},
		"git version 2.50":                     {2, 50, 0},
		"git version 2.39.3 (Apple Git-146)\n": {2, 39, 3},
		"git version 2.45.1.windows.1\n":       {2, 45, 1},
		"git version 2.46.0.rc1.12.gabcdef\n":  {2, 46, 0},
		"git version 3.0.0\n":                  {3, 0, 0},
		"git version 2.39.5\ncpu: x86_64\n":    {2, 39, 5},
	} {
		if got, err := git.ParseVersion(in); err != nil || got != want {
			t.Errorf("ParseVersion(%q) = %v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "2.39.5", "git version", "git version x.y", "hub version 2.1", "\ngit version 2.39.5"} {
		if _, err := git.ParseVersion(bad); err == nil {
			t.Errorf("ParseVersion(%q) was accepted", bad)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	t.Parallel()
	ordered := []git.Version{{1, 99, 9}, {2, 9, 0}, {2, 27, 9}, {2, 28, 0}, {2, 28, 1}, {3, 0, 0}}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.Before(b) != (i < j) {
				t.Errorf("%v before %v is %v", a, b, a.Before(b))
			}
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	g := find(t, gittest.Env(t))
	if g.Version.Before(git.MinVersion) || !filepath.IsAbs(g.Bin) {
		t.Errorf("found %+v", g)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	notRunnable := t.TempDir()
	if err := os.WriteFile(filepath.Join(notRunnable, "git"), []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"too old", fakeGit(t, "echo git version 2.20.1"), "is git 2.20.1, superqode needs 2.28 or newer"},
		{"just too old", fakeGit(t, "echo git version 2.27.9"), "is git 2.27.9, superqode needs 2.28"},
		{"missing", t.TempDir(), "git is not in PATH"},
		{"no PATH", "", "git is not in PATH"},
		{"not runnable", notRunnable, "git is not in PATH"},
		{"relative", "bin", "git is not in PATH"},
		{"not git", fakeGit(t, "echo hello"), `cannot read a git version from "hello\n"`},
		{"broken", fakeGit(t, "echo fatal: no luck >&2; exit 3"), "git version: no luck"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := git.Find(t.Context(), []string{"PATH=" + tt.path})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
			if strings.Contains(tt.want, "2.28") != (superqode.Hint(err) != "") && tt.want != "git is not in PATH" {
				t.Errorf("hint is %q", superqode.Hint(err))
			}
		})
	}
}

// TestFindPassesTheShim holds that inside a session the real git is found, not
// the guard's.
func TestFindPassesTheShim(t *testing.T) {
	t.Parallel()
	shim, real := fakeGit(t, "echo git version 9.9.9"), fakeGit(t, "echo git version 2.40.0")
	if err := os.WriteFile(filepath.Join(shim, ".superqode-shim"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := find(t, []string{"PATH=/nowhere", "PATH=" + shim + string(os.PathListSeparator) + real})
	if g.Bin != filepath.Join(real, "git") {
		t.Errorf("found %s", g.Bin)
	}
}

// TestFindAvoids holds that no git and no helper of git comes from where a session's
// program can write, by whatever name PATH has the folder.
func TestFindAvoids(t *testing.T) {
	t.Parallel()
	origin, links, real := t.TempDir(), t.TempDir(), fakeGit(t, `echo git version 2.40.0 "$PATH"`)
	planted := filepath.Join(origin, "bin")
	for err := range slices.Values([]error{
		os.Rename(fakeGit(t, "echo git version 9.9.9"), planted),
		os.Symlink(real, filepath.Join(origin, "out")),
		os.Symlink(origin, filepath.Join(links, "origin")),
		os.Symlink(filepath.Join(planted, "git"), filepath.Join(links, "git")),
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{
		planted, planted + "/../bin/", filepath.Join(origin, "out"), filepath.Join(links, "origin", "bin"),
		filepath.Join(links, "origin", "out"), links,
	} {
		env := []string{"PATH=" + dir + string(os.PathListSeparator) + real}
		g, err := git.Find(t.Context(), env, "", "/", origin)
		if err != nil || g.Bin != filepath.Join(real, "git") {
			t.Errorf("with %s first: found %+v, %v", dir, g, err)
			continue
		}
		if out, err := g.Output(t.Context(), git.Cmd{}); err != nil || string(out) != "git version 2.40.0 "+real+"\n" {
			t.Errorf("with %s first git has the PATH %q, %v", dir, out, err)
		}
		if _, err = git.Find(t.Context(), env[:1:1], real, origin); err == nil || !strings.Contains(err.Error(), "is not run") {
			t.Errorf("without another git: %v", err)
		}
	}
}

func TestCleanEnv(t *testing.T) {
	t.Parallel()
	keep := []string{"PATH=/bin", "HOME=/h", "GIT_CONFIG_GLOBAL=/g", "GIT_CONFIG_SYSTEM=/s", "GIT_CONFIG_NOSYSTEM=1", "GIT_SSH_COMMAND=ssh", "GIT_AUTHOR_NAME=A", "NOT_GIT_DIR=x", "odd"}
	drop := []string{"GIT_DIR=/x", "GIT_WORK_TREE=/x", "GIT_INDEX_FILE=/x", "GIT_OBJECT_DIRECTORY=/x", "GIT_COMMON_DIR=/x", "GIT_CONFIG=/x", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "GIT_CONFIG_PARAMETERS='a.b=c'", "GIT_NAMESPACE=n", "GIT_EXTERNAL_DIFF=x", "GIT_EXEC_PATH=/x"}
	if d := cmp.Diff(keep, git.CleanEnv(slices.Concat(keep, drop))); d != "" {
		t.Error(d)
	}
}

// TestEnvironmentCanNotRedirect holds that variables of a caller that itself runs
// in a git hook do not lead to another repository.
func TestEnvironmentCanNotRedirect(t *testing.T) {
	t.Parallel()
	f, other := gittest.Repo(t), gittest.Repo(t)
	g := find(t, f.Env("GIT_DIR="+other.Path(".git"), "GIT_WORK_TREE="+other.Dir, "GIT_INDEX_FILE="+other.Path(".git/index"), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0="+other.Dir))
	r, err := g.Discover(t.Context(), f.Dir)
	if err != nil || r.TopLevel != f.Dir {
		t.Errorf("found %+v, %v", r, err)
	}
}

// TestNothingConfiguredRuns holds that our own calls start neither hooks nor the
// file system monitor of the repository.
func TestNothingConfiguredRuns(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a", "a\n")
	f.Commit("first")
	ran := filepath.Join(f.Home, "ran")
	f.WriteMode(".git/hooks/post-checkout", "#!/bin/sh\necho hook >>'"+ran+"'\n", 0o755)
	f.WriteMode("monitor", "#!/bin/sh\necho monitor >>'"+ran+"'\n", 0o755)
	f.Git("config", "core.fsmonitor", f.Path("monitor"))
	g := find(t, f.Env())
	for _, args := range [][]string{{"checkout", "-q", "-B", "next"}, {"status", "--porcelain"}} {
		if err := g.Run(t.Context(), git.Cmd{Dir: f.Dir, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ran: %q, %v", data, err)
	}
}

// TestNoMonitorInAnyVersion holds that our own calls name no monitor: before 2.36 git
// starts whatever core.fsmonitor holds, a program called "false" too.
func TestNoMonitorInAnyVersion(t *testing.T) {
	t.Parallel()
	g := git.At(filepath.Join(fakeGit(t, `printf '%s\n' "$@"`), "git"), os.Environ())
	out, err := g.Output(t.Context(), git.Cmd{Args: []string{"status"}})
	if err != nil || !strings.Contains(string(out), "\n-c\ncore.fsmonitor=\n") {
		t.Errorf("git is called with %q, %v", out, err)
	}
}

func TestExitError(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	g := find(t, f.Env())
	err := g.Run(t.Context(), git.Cmd{Dir: f.Dir, Args: []string{"-c", "a.b=c", "rev-parse", "--verify", "absent"}})
	exit, ok := errors.AsType[*git.ExitError](err)
	if !ok || exit.Code != 128 || exit.Error() != "git rev-parse: Needed a single revision" {
		t.Errorf("error is %v (%+v)", err, exit)
	}
	err = g.Run(t.Context(), git.Cmd{Dir: f.Dir, Args: []string{"diff", "--no-index", "--quiet", "/dev/null", ".git/HEAD"}})
	if err == nil || err.Error() != "git diff: exit status 1" {
		t.Errorf("error is %v", err)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	g := find(t, f.Env())
	out, err := g.Output(t.Context(), git.Cmd{Dir: f.Dir, Args: []string{"hash-object", "--stdin"}, Stdin: strings.NewReader("hello\n")})
	if err != nil || string(out) != "ce013625030ba8dba906f756967f9e9ca394464a\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, err = g.Output(t.Context(), git.Cmd{Args: []string{"rev-parse", "--absolute-git-dir"}, Env: []string{"GIT_DIR=" + f.Path(".git")}})
	if err != nil || strings.TrimSpace(string(out)) != f.Path(".git") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestCancelEndsGit holds that a git that waits for input ends with its context,
// and that the context's cause is the error.
func TestCancelEndsGit(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	g := find(t, f.Env())
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, enough)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := g.Run(ctx, git.Cmd{Dir: f.Dir, Args: []string{"hash-object", "--stdin"}, Stdin: r}); !errors.Is(err, enough) {
		t.Errorf("error is %v", err)
	}
}

// FuzzParseVersion holds that a version prints back into what it was read from.
func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"git version 2.39.5", "git version 2.50", "git version 02.1.0", "git version 99999999999999999999.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := git.ParseVersion(s)
		if err != nil {
			return
		}
		if again, err := git.ParseVersion("git version " + v.String()); err != nil || again != v {
			t.Errorf("%q: %v became %v, %v", s, v, again, err)
		}
	})
}
