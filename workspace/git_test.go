package workspace_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

func TestRedactURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://user:pass@github.com/org/repo.git": "https://github.com", "https://github.com/org/repo.git?token=secret": "https://github.com",
		"http://example.com:8080/path#frag": "http://example.com:8080", "git://host.com/repo": "git://host.com", "github.com/org/repo": "github.com",
		"": "", "   ": "", "not-a-url": "not-a-url", "/just/a/path": "", "://broken": "", "ftp://files.example.com/data": "ftp://files.example.com",
		"git@github.com:user/repo.git": "github.com", "ssh://me:pw@host:22/x": "ssh://host:22", "https://tok@en@host/x": "https://host", "https://user:p%zz@host": "",
		"user:pass@host/x": "host", "host:8080/x": "host:8080",
	} {
		if got := workspace.RedactURL(raw); got != want {
			t.Errorf("%q: %q, not %q", raw, got, want)
		}
	}
}

// gitIn runs the real git without the user's configuration.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func quietGit(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

func TestGit(t *testing.T) {
	quietGit(t)
	ctx, origin, dir := context.Background(), t.TempDir(), open(t)
	gitIn(t, origin, "init", "-q")
	is(t, second(workspace.GitHead(ctx, dir)), superqode.ErrNotFound)
	head := func(f workspace.FS, want string) {
		t.Helper()
		if got, err := workspace.GitHead(ctx, f); err != nil || got != want {
			t.Errorf("%q %v, not %q", got, err, want)
		}
	}
	repo, err := workspace.Open(origin)
	must(t, err)
	defer repo.Close()
	is(t, second(workspace.GitHead(ctx, repo)), superqode.ErrNotFound) // no commit yet
	gitIn(t, origin, "commit", "-q", "--allow-empty", "-m", "one")
	first := gitIn(t, origin, "rev-parse", "HEAD")
	head(repo, first)
	gitIn(t, origin, "pack-refs", "--all")
	head(repo, first)
	head(workspace.Scoped(repo), first)
	gitIn(t, origin, "branch", "side")
	gitIn(t, origin, "worktree", "add", "-q", "linked", "side")
	head(workspace.Sub(repo, "."), first)
	if _, err := workspace.GitHead(ctx, workspace.Sub(repo, "linked")); !errors.Is(err, workspace.ErrPathTraversal) {
		t.Error(err) // its git directory lies outside of that part
	}
	gitIn(t, origin, "checkout", "-q", "--detach")
	head(repo, first)
	gitIn(t, origin, "checkout", "-q", "main")

	must(t, workspace.Clone(ctx, dir, origin, "repos/mine"))
	head(workspace.Sub(dir, "repos/mine"), first)
	gitIn(t, origin, "commit", "-q", "--allow-empty", "-m", "two")
	must(t, workspace.Pull(ctx, dir, "repos/mine"))
	head(workspace.Sub(dir, "repos/mine"), gitIn(t, origin, "rev-parse", "HEAD"))
	empty := open(t)
	must(t, workspace.Clone(ctx, empty, "file://"+origin, ""))
	if _, err := os.Stat(filepath.Join(empty.Root(), ".git", "HEAD")); err != nil {
		t.Error(err)
	}

	if err := workspace.Clone(ctx, dir, origin, "repos/mine"); err == nil {
		t.Error("cloned over what was there")
	}
	is(t, workspace.Pull(ctx, dir, "none"), superqode.ErrNotFound)
	for _, bad := range []string{"", " ", "-upload-pack=evil", "--upload-pack=touch /tmp/x", "a\x00b"} {
		is(t, workspace.Clone(ctx, dir, bad, "bad"), superqode.ErrUsage)
	}
	mark := filepath.Join(t.TempDir(), "ran")
	if err := workspace.Clone(ctx, dir, "ext::sh -c touch% "+mark, "ext"); err == nil {
		t.Error("a transport that runs a command")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran")
	}
	is(t, workspace.Clone(ctx, dir, origin, "../out"), workspace.ErrPathTraversal)
	scoped := workspace.Scoped(dir, workspace.WithAllowWrite("repos/**"))
	must(t, workspace.Clone(ctx, scoped, origin, "repos/two"))
	must(t, workspace.Pull(ctx, scoped, "repos/two"))
	is(t, workspace.Clone(ctx, scoped, origin, "elsewhere"), workspace.ErrAccessDenied)
	is(t, workspace.Clone(ctx, scoped, origin, ""), workspace.ErrAccessDenied)
	if ok, _ := dir.Exists(ctx, "elsewhere"); ok {
		t.Error("made before it was refused")
	}
	is(t, workspace.Clone(ctx, workspace.NewMem(), origin, "x"), workspace.ErrNotAvailable)
}

// TestGitKeepsCredentials holds that no error of a server that refuses shows them.
func TestGitKeepsCredentials(t *testing.T) {
	quietGit(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		http.Error(w, user+" may not enter with "+password, http.StatusForbidden)
	}))
	defer server.Close()
	dir, ctx := open(t), context.Background()
	url := strings.Replace(server.URL, "http://", "http://me:hunter2@", 1) + "/secret-path/r.git?token=abc123"
	check := func(err error) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		for _, word := range []string{"hunter2", "abc123", "secret-path", "me:"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%q shows %q", err, word)
			}
		}
	}
	check(workspace.Clone(ctx, dir, url, "x"))
	check(workspace.Clone(ctx, dir, strings.Replace(url, "http://", "gopher://", 1), "y"))
	check(workspace.Clone(ctx, dir, "-"+url, "y"))
	must(t, os.Mkdir(filepath.Join(dir.Root(), "repo"), 0o755))
	gitIn(t, filepath.Join(dir.Root(), "repo"), "init", "-q")
	gitIn(t, filepath.Join(dir.Root(), "repo"), "remote", "add", "origin", url)
	gitIn(t, filepath.Join(dir.Root(), "repo"), "config", "branch.main.remote", "origin")
	gitIn(t, filepath.Join(dir.Root(), "repo"), "config", "branch.main.merge", "refs/heads/main")
	check(workspace.Pull(ctx, dir, "repo"))
}
