package hooks_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// indexKinds are the kinds of index and repository that git knows.
var indexKinds = []struct {
	name  string
	setup func(t *testing.T, f *gittest.Fixture)
}{
	{"default", func(*testing.T, *gittest.Fixture) {}},
	{"version 4", func(_ *testing.T, f *gittest.Fixture) { f.Git("update-index", "--index-version", "4") }},
	{"split", func(_ *testing.T, f *gittest.Fixture) {
		f.Git("config", "core.splitIndex", "true")
		f.Git("update-index", "--split-index")
	}},
	{"untracked cache", func(_ *testing.T, f *gittest.Fixture) {
		f.Git("config", "core.untrackedCache", "true")
		f.Git("update-index", "--force-untracked-cache")
		f.Git("status")
	}},
	{"sparse", func(_ *testing.T, f *gittest.Fixture) {
		f.Git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
	}},
	{"many files", func(_ *testing.T, f *gittest.Fixture) { f.Git("config", "feature.manyFiles", "true"); f.Git("status") }},
	{"own monitor", func(t *testing.T, f *gittest.Fixture) {
		monitor := filepath.Join(f.Home, "monitor")
		installHooks(t, f.Home, "#!/bin/sh\necho asked >> '"+f.Home+"/monitor.log'\ncase \"$2\" in c:*) printf 'c:2\\0' ;; *) printf 'c:1\\0/\\0' ;; esac\n", "monitor")
		f.Git("config", "core.fsmonitor", monitor)
		f.Git("config", "core.fsmonitorHookVersion", "2")
		f.Git("status")
	}},
	{"own monitor of version 1", func(t *testing.T, f *gittest.Fixture) {
		monitor := filepath.Join(f.Home, "monitor")
		installHooks(t, f.Home, "#!/bin/sh\necho asked >> '"+f.Home+"/monitor.log'\nprintf '/\\0'\n", "monitor")
		f.Git("config", "core.fsmonitor", monitor)
		f.Git("config", "core.fsmonitorHookVersion", "1")
		f.Git("status")
	}},
	{"monitor daemon", func(_ *testing.T, f *gittest.Fixture) { f.Git("config", "core.fsmonitor", "true") }},
}

// trueStatus is what git says when it trusts nothing but the files: a copy of the
// index without any cache. (Before git 2.36 "false" is the name of a program here,
// nothing switches a monitor off in every version.)
func trueStatus(t *testing.T, f *gittest.Fixture, dir string) string {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.fsmonitor=", "-c", "core.untrackedCache=false", "--no-optional-locks", "status", "--porcelain=v2", "-uall")
	cmd.Dir, cmd.Env = dir, f.Env()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// edits change the tree in ways that a file system monitor is there to notice.
var edits = []string{
	"true",
	"printf 'changed again AFTER staging\\n' > both.txt",
	"printf 'package main\\n\\nfunc main() { println(2) }\\n' > src/main.go",
	"rm README.md; echo new > untracked2.txt; mkdir -p src/more && echo x > src/more/y.go",
	"touch staged.txt; chmod 755 crlf.txt 2>/dev/null; rm untracked2.txt",
	"git=GIT ; $git add -A",
	"echo z >> src/main.go; rm -r src/more",
	"git=GIT ; $git reset -q; $git add src; $git rm -q --cached src/main.go",
}

// TestIndexes: with every kind of index git sees the same changes as without the
// hooks, during the session and after it, and the veto holds.
func TestIndexes(t *testing.T) {
	t.Parallel()
	for _, tt := range indexKinds {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			if tt.name == "sparse" {
				f.Git("stash", "-q", "-u")
				f.Remove("odd")
			}
			tt.setup(t, f)
			_ = os.Remove(filepath.Join(f.Home, "monitor.log")) // there if the setup asked it
			s := newSession(t, f, f.Dir, nil)
			git := realGit(t)
			for _, edit := range edits {
				if r := s.sh(f.Dir, shellLine(t, edit)); r.refused() {
					t.Fatalf("%s: %s", edit, r.errOut)
				}
				for range 2 {
					want := trueStatus(t, f, f.Dir)
					r := s.run(f.Dir, []string{git, "status", "--porcelain=v2", "-uall"})
					if d := cmp.Diff(want, r.out); d != "" || r.code != 0 || r.errOut != "" {
						t.Fatalf("after %q: %d %s\n%s", edit, r.code, r.errOut, d)
					}
				}
			}
			hurt := damage(t, f)
			for _, line := range []string{"reset --hard", "checkout -- .", "restore .", "clean -fdx", "stash -u", "checkout-index -fa", "read-tree -u --reset HEAD", "rm -rfq .", "commit -qam x", "switch -qf feature", "gc -q"} {
				if r := s.sh(f.Dir, git+" "+line); !r.refused() {
					t.Errorf("%s: exit code %d: %s", line, r.code, r.errOut)
				}
				if got := hurt(); len(got) > 0 {
					t.Fatalf("%s changed %v", line, got)
				}
			}
			if data, err := os.ReadFile(filepath.Join(f.Home, "monitor.log")); err == nil {
				t.Errorf("the user's monitor was asked in the session: %s", data)
			}
			afterSession(t, f)
		})
	}
}

// afterSession: the index that a session leaves in place serves git without it,
// with the user's own monitor or none.
func afterSession(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	_, err := os.Lstat(filepath.Join(f.Home, "monitor"))
	monitor := err == nil
	for i, step := range []string{"true", "echo more >> src/main.go", "rm src/main.go", "echo fresh > src/fresh.go"} {
		cmd := exec.Command("sh", "-c", step)
		cmd.Dir = f.Dir
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		for _, config := range []string{"core.commentChar=;", "core.fsmonitor=", "core.untrackedCache=true"} {
			want := trueStatus(t, f, f.Dir)
			got := f.Git("-c", config, "status", "--porcelain=v2", "-uall")
			if believed := monitor && i > 0 && config != "core.fsmonitor="; believed {
				continue // it answers a token of its own with "nothing", whatever this test edits
			}
			if strings.TrimSuffix(want, "\n") != got {
				t.Errorf("after the session, %s, %s:\n%s", step, config, cmp.Diff(strings.TrimSuffix(want, "\n"), got))
			}
		}
	}
	f.Git("write-tree") // git leaves trees of a sparse index unwritten until it needs them
	f.Git("fsck", "--no-dangling")
	f.Git("-c", "core.fsmonitor=", "update-index", "-q", "--really-refresh", "--add", "--remove", "src/fresh.go")
	data, err := os.ReadFile(f.Path(".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("FSMN")) {
		t.Error("the first index that git writes without a monitor still has the extension")
	}
}

// TestPlaces: the veto finds the repository however it is named.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, dir string
		env       []string
		change    func(f *gittest.Fixture, st *guard.SessionState)
	}{
		{name: "root", dir: "."},
		{name: "subfolder", dir: "src/deep"},
		{name: "linked worktree", dir: "../side"},
		{name: "linked worktree as workspace", dir: "../side", change: func(f *gittest.Fixture, st *guard.SessionState) {
			st.WorkTree, st.Workspace = true, superqode.HostPath(filepath.Join(filepath.Dir(f.Dir), "side"))
			st.Trees = []superqode.HostPath{st.Origin}
		}},
		{name: "variables", dir: "src", env: []string{"GIT_DIR=TOP/.git", "GIT_WORK_TREE=TOP"}},
		{name: "relative variables", dir: "src", env: []string{"GIT_DIR=../.git", "GIT_WORK_TREE=.."}},
		{name: "link to the repository", dir: "../link"},
		{name: "other index", dir: ".", env: []string{"GIT_INDEX_FILE=TOP/.git/other-index"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			if err := os.Symlink("repo", filepath.Join(f.Dir, "../link")); err != nil {
				t.Fatal(err)
			}
			f.Write(".git/other-index", f.Read(".git/index"))
			s := newSession(t, f, f.Dir, func(st *guard.SessionState) {
				if tt.change != nil {
					tt.change(f, st)
				}
			})
			dir := filepath.Join(f.Dir, tt.dir)
			env := make([]string, len(tt.env))
			for i, kv := range tt.env {
				env[i] = strings.ReplaceAll(kv, "TOP", f.Dir)
			}
			if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("edited\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			hurt := damage(t, f)
			for _, line := range []string{"reset --hard", "stash", "commit -qam x", "commit -q --allow-empty -m x", "branch -f feature HEAD~1", "clean -fdx :/"} {
				if r := s.sh(dir, realGit(t)+" "+line, env...); !r.refused() || len(hurt()) > 0 {
					t.Errorf("%s: exit code %d, %v\n%s", line, r.code, hurt(), r.errOut)
				}
			}
		})
	}
}

// TestObjectFormats: a bare repository, and one with SHA-256.
func TestObjectFormats(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--object-format=sha256"}, {"--bare"}, {"--bare", "--object-format=sha256"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t, args...)
			gitDir := f.Path(".git")
			if args[0] == "--bare" {
				gitDir = f.Dir
			}
			tree := f.GitInput("", "mktree")
			one := f.Git("commit-tree", "-m", "one", tree)
			two := f.Git("commit-tree", "-m", "two", "-p", one, tree)
			f.Git("update-ref", "refs/heads/main", two)
			f.Git("branch", "feature", one)
			s := newSession(t, f, f.Dir, func(st *guard.SessionState) { st.GitDirs = []superqode.HostPath{superqode.HostPath(gitDir)} })
			before := gittest.Fingerprint(t, gitDir)
			for _, line := range []string{"branch -D feature", "branch -f feature main", "update-ref -d refs/heads/feature", "update-ref refs/heads/feature main", "tag -f x main && false || GIT tag -f x feature",
				"push -q --no-verify . main:feature", "fetch -q . main:feature"} {
				r := s.sh(f.Dir, shellLine(t, "GIT "+line))
				_ = exec.Command("git", "--git-dir", gitDir, "update-ref", "-d", "refs/tags/x").Run() // the new tag is allowed, its move is not
				if !r.refused() {
					t.Errorf("%s: exit code %d: %s", line, r.code, r.errOut)
				}
			}
			for _, line := range []string{"branch new", "tag new", "fetch -q . main:newer", "log --oneline", "for-each-ref"} {
				if r := s.sh(f.Dir, realGit(t)+" "+line); r.code != 0 {
					t.Errorf("%s: exit code %d: %s", line, r.code, r.errOut)
				}
			}
			for _, d := range before.Diff(gittest.Fingerprint(t, gitDir)) {
				if !strings.Contains(d, "new") && !strings.Contains(d, "FETCH_HEAD") && !strings.Contains(d, "logs") {
					t.Error(d)
				}
			}
		})
	}
}
