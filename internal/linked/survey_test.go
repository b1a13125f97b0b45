package linked_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

func discover(t *testing.T, f *gittest.Fixture) *git.Repo {
	t.Helper()
	g, err := git.Find(t.Context(), f.Env())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := g.Discover(t.Context(), f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func look(t *testing.T, f *gittest.Fixture, previous *snapshot.Snapshot) *linked.Survey {
	t.Helper()
	repo := discover(t, f)
	format, err := snapshot.ParseFormat(repo.ObjectFormat)
	if err != nil {
		t.Fatal(err)
	}
	s, err := linked.Look(t.Context(), repo, format, previous)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Look sees the work tree as git does: all of it, and what of it is ignored.
func TestLookAgreesWithGit(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*gittest.Fixture){
		"dirty":        func(*gittest.Fixture) {},
		"settled":      func(f *gittest.Fixture) { f.Settle() },
		"more ignored": moreIgnored,
		"excludes": func(f *gittest.Fixture) {
			f.Write(".git/info/exclude", "untracked.txt\n/new-folder/*\n!/new-folder/run.sh\n")
			f.Git("config", "core.excludesFile", f.Home+"/excludes")
			_ = os.WriteFile(f.Home+"/excludes", []byte("odd/\n"), 0o600)
		},
		"nested": func(f *gittest.Fixture) {
			f.GitIn(f.Dir, "init", "-q", "nested")
			f.Write("nested/a", "x")
			f.Write("nested/b.log", "y")
			f.GitIn(f.Path("nested"), "add", "a")
		},
		"split index": func(f *gittest.Fixture) { f.Git("update-index", "--split-index") },
		"sparse":      func(f *gittest.Fixture) { f.Git("reset", "-q", "--hard"); f.Git("sparse-checkout", "set", "src") },
		"sparse index": func(f *gittest.Fixture) {
			f.Git("reset", "-q", "--hard")
			f.Git("sparse-checkout", "set", "--sparse-index", "src")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			prepare(f)
			s := look(t, f, nil)
			checkTree(t, f, s)
			var ignored []string
			for _, p := range s.Ignored {
				if st, err := os.Lstat(f.Path(string(p))); err == nil && st.IsDir() && p != "nested" {
					p += "/"
				}
				ignored = append(ignored, string(p))
			}
			out := f.GitIn(f.Dir, "--no-optional-locks", "status", "--porcelain", "-z", "-uall", "--ignored=matching")
			var want []string
			for line := range strings.SplitSeq(out, "\x00") {
				if p, ok := strings.CutPrefix(line, "!! "); ok {
					want = append(want, p)
				}
			}
			want, ignored = topmost(want), topmost(ignored)
			if !slices.Equal(ignored, want) {
				t.Errorf("ignored %q, git says %q", ignored, want)
			}
			again := look(t, f, s.Tree) // an earlier look makes it cheaper, not different
			if !slices.Equal(s.Ignored, again.Ignored) || len(s.Tree.Entries) != len(again.Tree.Entries) {
				t.Errorf("the second look differs: %q", again.Ignored)
			}
		})
	}
}

func moreIgnored(f *gittest.Fixture) {
	f.Write(".gitignore", "*.log\n/build/\n!keep.log\ncache/*\n!cache/tracked\n/deep/**/out\n")
	f.Write("keep.log", "not ignored")
	f.Write("src/debug.log", "ignored below")
	f.Write("cache/one", "ignored")
	f.Write("cache/tracked", "not ignored")
	f.Write("deep/er/still/out/file", "ignored")
	f.Mkdir("deep/er/still/out/empty")
	f.Write("forced.log", "ignored, but in the index")
	f.Git("add", "-f", "forced.log")
}

// topmost drops what is below something else in the list, and empty folders,
// which git does not see.
func topmost(list []string) []string {
	slices.Sort(list)
	var out []string
	for _, p := range list {
		if len(out) > 0 && strings.HasPrefix(p, out[len(out)-1]) && strings.HasSuffix(out[len(out)-1], "/") {
			continue
		}
		out = append(out, p)
	}
	return out
}

// checkTree compares the survey with the file system, and its ids with git.
func checkTree(t *testing.T, f *gittest.Fixture, s *linked.Survey) {
	t.Helper()
	var want []string
	for p := range f.Fingerprint(".git") {
		if p != "." {
			want = append(want, p)
		}
	}
	slices.Sort(want)
	var got []string
	var known, unsaved int
	for i := range s.Tree.Entries {
		e := &s.Tree.Entries[i]
		got = append(got, string(e.Path))
		if e.Kind == snapshot.File && !e.ID.IsZero() {
			known++
			if id := f.GitIn(f.Dir, "hash-object", "--no-filters", "--", string(e.Path)); id != e.ID.String() {
				t.Errorf("%q is %s, git says %s", e.Path, e.ID, id)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tree is\n%q, want\n%q", got, want)
	}
	for _, e := range s.Unsaved() {
		if e.Kind == snapshot.File && e.ID.IsZero() {
			unsaved++ // read when it is copied
			continue
		}
	}
	for i := range s.Tree.Entries { // what is not unsaved, git has
		e := &s.Tree.Entries[i]
		if e.Kind != snapshot.File || slices.ContainsFunc(s.Unsaved(), func(u snapshot.Entry) bool { return u.Path == e.Path }) {
			continue
		}
		if _, err := f.Try(f.Dir, "cat-file", "-e", e.ID.String()); err != nil {
			t.Errorf("%q counts as saved, and git does not have it: %v", e.Path, err)
		}
	}
	t.Logf("%d ids known, %d files to read", known, unsaved)
}

// Other kinds of repositories can be looked at, too.
func TestLookElsewhere(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a", "1")
	f.Write("b.log", "2")
	f.Write(".gitignore", "*.log\n")
	if s := look(t, f, nil); !slices.Equal(s.Ignored, []superqode.RelPath{"b.log"}) || len(s.Tree.Entries) != 3 {
		t.Errorf("unborn: %q %d", s.Ignored, len(s.Tree.Entries))
	}
	f.Commit("first")
	f.GitIn(f.Home, "init", "-q", "sub")
	f.GitIn(f.Home+"/sub", "commit", "-q", "--allow-empty", "-m", "x")
	f.Git("submodule", "--quiet", "add", f.Home+"/sub", "mod")
	f.Write("mod/untracked", "x")
	s := look(t, f, nil)
	if s.Tree.Find("mod/.git") == nil || s.Tree.Find("mod/untracked") == nil {
		t.Errorf("a submodule is a plain tree: %+v", s.Tree.Entries)
	}
	f.Git("worktree", "add", "-q", "-b", "wt", f.Home+"/wt")
	f.Dir = f.Home + "/wt"
	if s := look(t, f, nil); s.Tree.Find(".git") == nil || s.Tree.Find(".git").Kind != snapshot.File {
		t.Error("the .git file of a linked worktree is part of it")
	}
	f.Write("c.log", "3")
	f.Remove(".git")
	f.Write(".git", "gitdir: /nowhere\n")
}

func TestLookStops(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	repo := discover(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := linked.Look(ctx, repo, snapshot.SHA1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.Write(".git/index", "garbage")
	if _, err := linked.Look(t.Context(), repo, snapshot.SHA1, nil); !errors.Is(err, git.ErrIndexCorrupt) {
		t.Errorf("got %v", err)
	}
	if err := os.Rename(f.Dir, f.Dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := linked.Look(t.Context(), repo, snapshot.SHA1, nil); err == nil {
		t.Error("a survey of nothing")
	}
}

func TestSkipInPlace(t *testing.T) {
	t.Parallel()
	for path, want := range map[superqode.RelPath]bool{".git": true, ".superqode": true, "a/.git": false, "a/.superqode": false, ".gitignore": false, ".git2": false} {
		if got := linked.SkipInPlace(path, snapshot.Dir); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if linked.SkipInPlace(".git", snapshot.File) {
		t.Error("a .git file is part of the work tree")
	}
}

// Reset brings back HEAD, index, operation state and the link, whatever became of
// them.
func TestReset(t *testing.T) {
	t.Parallel()
	for name, wreck := range map[string]string{
		"commit":      "echo x >> README.md; git add -A; git commit -qm x; git checkout -q HEAD~1 README.md",
		"branch":      "git checkout -q -b made; git rm -rqf --cached .",
		"merge":       "git stash -q -u 2>/dev/null; git merge -q feature 2>/dev/null; git bisect start; true",
		"garbage":     `d=$(git rev-parse --absolute-git-dir); echo x > $d/HEAD; echo x > $d/index; rm $d/commondir; touch $d/index.lock; mkdir $d/rebase-merge`,
		"no .git":     "rm .git",
		".git folder": "rm .git; git init -q",
		"no admin":    `rm -rf "$(git rev-parse --absolute-git-dir)"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			repo := discover(t, f)
			index := filepath.Join(t.TempDir(), "index")
			data, err := os.ReadFile(f.Path(".git/index"))
			if err == nil {
				err = os.WriteFile(index, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			path, admin, head := f.Home+"/ws", f.Path(".git/worktrees/ws"), f.Git("rev-parse", "HEAD")
			f.Git("worktree", "add", "-q", "--detach", path)
			opt := linked.ResetOptions{Repo: repo, AdminDir: admin, Path: path, Head: head, Index: index}
			if err := linked.Reset(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
			status := f.StatusIn(path)
			run(t, f, path, wreck)
			if err := linked.Reset(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
			if name != "merge" { // there the files changed as well
				if now := f.StatusIn(path); now != status {
					t.Errorf("git status is\n%s\nand was\n%s", now, status)
				}
			}
			if got := f.GitIn(path, "rev-parse", "HEAD"); got != head {
				t.Errorf("HEAD is %s, want %s", got, head)
			}
			opt.Index = ""
			if err := linked.Reset(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
			if out := f.GitIn(path, "diff", "--cached", "--name-only"); out != "" {
				t.Errorf("without an index to go back to HEAD's is taken: %q", out)
			}
		})
	}
}

// Reset refuses an admin folder that is not the workspace's.
func TestResetRefusesOthers(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	f.Git("worktree", "add", "-q", "--detach", f.Home+"/theirs")
	opt := linked.ResetOptions{Repo: discover(t, f), AdminDir: f.Path(".git/worktrees/theirs"), Path: f.Home + "/ours", Head: f.Git("rev-parse", "HEAD")}
	before := f.Fingerprint()
	if err := linked.Reset(t.Context(), opt); err == nil {
		t.Error("another's admin folder was written to")
	}
	opt.AdminDir = f.Home + "/elsewhere"
	if err := linked.Reset(t.Context(), opt); err == nil {
		t.Error("a folder outside of the repository was written to")
	}
	gittest.Same(t, before, f.Fingerprint())
}

func run(t *testing.T, f *gittest.Fixture, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, f.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
