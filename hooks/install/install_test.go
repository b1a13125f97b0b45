package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/hooks/install"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// answerInstalled makes this test binary the helper of the hooks that the tests
// install.
func answerInstalled(exe string) int {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return hooks.AnswerInstalled(context.Background(), hooks.Call{Exe: exe, Args: os.Args[2:], Env: os.Environ(), Dir: dir, In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// installerProcess installs or uninstalls in a process of its own, which a
// failpoint may end.
func installerProcess(how string) int {
	dir, err := os.Getwd()
	if err == nil {
		err = installerDo(context.Background(), dir, os.Environ(), how)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func installerDo(ctx context.Context, dir string, env []string, how string) error {
	in, err := newInstaller(ctx, dir, env)
	if err != nil {
		return err
	}
	if how == "install" {
		_, err = in.Install(ctx, install.Options{})
	} else {
		_, err = in.Uninstall(ctx)
	}
	return err
}

func newInstaller(ctx context.Context, dir string, env []string) (*install.Installer, error) {
	in, err := install.Open(ctx, dir, env)
	if err != nil {
		return nil, err
	}
	in.Version = "v0.0.0-test"
	in.Helper, err = os.Executable()
	return in, err
}

// site is a repository with the guard to be installed.
type site struct {
	*gittest.Fixture
	t  *testing.T
	in *install.Installer
}

// newSite makes a repository with two commits, a branch and a remote.
func newSite(t *testing.T, prepare func(f *gittest.Fixture)) *site {
	t.Helper()
	f := gittest.Repo(t)
	f.Write("a.txt", "one\n")
	f.Commit("first")
	f.Git("branch", "other")
	f.Git("tag", "mark")
	f.Git("init", "-q", "--bare", f.Home+"/remote.git")
	f.Git("remote", "add", "origin", f.Home+"/remote.git")
	if prepare != nil {
		prepare(f)
	}
	f.Write("a.txt", "two\n")
	s := &site{Fixture: f, t: t}
	s.open(f.Dir)
	return s
}

func (s *site) open(dir string) {
	s.t.Helper()
	var err error
	if s.in, err = newInstaller(s.t.Context(), dir, s.Env()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) install(o install.Options) bool {
	s.t.Helper()
	changed, err := s.in.Install(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return changed
}

func (s *site) uninstall() install.Removal {
	s.t.Helper()
	r, err := s.in.Uninstall(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) status() *install.Status {
	s.t.Helper()
	st, err := s.in.Inspect(s.t.Context(), filepath.Join(s.Home, "scratch"))
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// run runs git without a terminal and returns what it printed.
func (s *site) run(env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env(append(env, "GIT_AUTHOR_DATE=2024-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// refused runs what must be refused, and change nothing.
func (s *site) refused(args ...string) {
	s.t.Helper()
	before := s.GitIn(s.Dir, "for-each-ref") + s.GitIn(s.Home+"/remote.git", "for-each-ref")
	out, err := s.run(nil, args...)
	if err == nil || !strings.Contains(out, "superqode: refused") {
		s.t.Errorf("git %v: %v\n%s", args, err, out)
	}
	if after := s.GitIn(s.Dir, "for-each-ref") + s.GitIn(s.Home+"/remote.git", "for-each-ref"); after != before {
		s.t.Errorf("git %v changed refs", args)
	}
}

func (s *site) passes(args ...string) string {
	s.t.Helper()
	out, err := s.run(nil, args...)
	if err != nil || strings.Contains(out, "superqode") {
		s.t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// gitDir is what must be as it was after an uninstall: contents, modes and links,
// and the times of hooks and configuration.
func (s *site) gitDir() gittest.Print {
	s.t.Helper()
	p := gittest.Print{}
	for path, facts := range gittest.Fingerprint(s.t, s.Dir) {
		p[path] = facts
	}
	for path, at := range gittest.Times(s.t, s.Dir) {
		if strings.HasPrefix(path, ".git/hooks") || path == ".git/config" || strings.HasPrefix(path, "my") {
			p["time of "+path] = at
		}
	}
	return p
}

// TestInstallRefuses: what a program does to refs is refused, what takes nothing
// away passes.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	before := s.gitDir()
	if !s.install(install.Options{}) {
		t.Error("not changed")
	}
	if st := s.status(); !st.Installed || !st.Firing || st.Method != install.MethodFolder || len(st.Problems) > 0 {
		t.Errorf("%+v", st)
	}
	for _, line := range []string{
		"commit -am x", "commit --no-verify -am x", "commit --amend --no-edit", "-c alias.ci=commit ci -am x", "commit-tree HEAD^{tree} -m x", "stash", "stash -u",
		"branch -D other", "branch -f other HEAD~0", "branch -m other third", "tag -d mark", "update-ref refs/heads/other HEAD^{commit}", "update-ref -d refs/heads/other",
		"push origin main", "push -f origin main", "merge --no-ff other", "notes add -m x", "replace HEAD HEAD",
	} {
		if strings.HasPrefix(line, "commit-tree") || strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "merge") || strings.HasPrefix(line, "branch -f") || strings.HasSuffix(line, "^{commit}") {
			continue // make an object only, or end before they move anything
		}
		s.refused(strings.Fields(line)...)
	}
	s.Write("a.txt", "one\n")
	s.refused("rebase", "--root")
	after := s.gitDir()
	for path := range before {
		if before[path] != after[path] && strings.HasPrefix(path, ".git/refs") {
			t.Errorf("%s changed", path)
		}
	}
	for _, line := range []string{"status", "branch fresh", "switch -q fresh", "switch -q main", "tag new", "fetch -q origin", "add a.txt", "reset -q", "worktree add -q --detach ../side", "push -n origin main"} {
		s.passes(strings.Fields(line)...)
	}
}

// TestInstallIsUndone: for each way of having hooks, uninstall leaves every byte,
// mode, link and time of them as it was, the configuration too.
func TestInstallIsUndone(t *testing.T) {
	t.Parallel()
	for name, prepare := range hookSetups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, prepare)
			before := s.gitDir()
			s.install(install.Options{})
			if st := s.status(); !st.Firing {
				t.Fatalf("%+v", st)
			}
			during := s.gitDir()
			if s.install(install.Options{}) {
				t.Error("a second install changed something")
			}
			gittest.Same(t, during, s.gitDir())
			s.refused("update-ref", "-d", "refs/heads/other")
			s.refused("push", "origin", "main")
			if r := s.uninstall(); !r.Installed || len(r.Kept) > 0 || !r.Config {
				t.Errorf("%+v", r)
			}
			gittest.Same(t, before, s.gitDir())
			if r := s.uninstall(); r.Installed {
				t.Error("twice")
			}
			gittest.Same(t, before, s.gitDir())
		})
	}
}

const recordingHook = "#!/bin/sh\nname=${0##*/}\n{ echo \"$name $*\"; case $name in pre-push|reference-transaction) cat;; esac; } >>\"$(git rev-parse --show-toplevel)/../seen\"\n"

// hookSetups are ways of having hooks.
func hookSetups() map[string]func(f *gittest.Fixture) {
	hook := func(f *gittest.Fixture, dir string, mode os.FileMode, names ...string) {
		for _, n := range names {
			f.WriteMode(dir+"/"+n, recordingHook, mode)
		}
	}
	return map[string]func(f *gittest.Fixture){
		"none":      nil,
		"no folder": func(f *gittest.Fixture) { f.Remove(".git/hooks") },
		"hand-made": func(f *gittest.Fixture) {
			hook(f, ".git/hooks", 0o755, "pre-commit", "pre-push", "commit-msg", "reference-transaction")
		},
		"odd modes": func(f *gittest.Fixture) {
			hook(f, ".git/hooks", 0o711, "pre-commit")
			hook(f, ".git/hooks", 0o600, "pre-push")
			hook(f, ".git/hooks", 0o444, "pre-rebase")
		},
		"links":  linkedHooks,
		"binary": binaryHook,
		"relative path": func(f *gittest.Fixture) {
			hook(f, "my hooks", 0o755, "pre-commit", "pre-push")
			f.Git("config", "core.hooksPath", "my hooks")
		},
		"absolute path": func(f *gittest.Fixture) {
			hook(f, "myhooks", 0o755, "pre-commit")
			f.Git("config", "core.hooksPath", f.Path("myhooks"))
		},
		"global path": func(f *gittest.Fixture) {
			hook(f, "myhooks", 0o755, "pre-commit")
			f.Git("config", "--global", "core.hooksPath", f.Path("myhooks"))
		},
		"home path":    func(f *gittest.Fixture) { f.Git("config", "core.hooksPath", "~/hooks") },
		"switched off": func(f *gittest.Fixture) { f.Git("config", "core.hooksPath", "/dev/null") },
		"several values": func(f *gittest.Fixture) {
			f.Git("config", "--add", "core.hooksPath", "x")
			f.Git("config", "--add", "core.hooksPath", "y")
		},
		"included path": includedPath,
		"folder is link": func(f *gittest.Fixture) {
			hook(f, "myhooks", 0o755, "pre-commit", "pre-push")
			f.Remove(".git/hooks")
			f.Symlink("../myhooks", ".git/hooks")
		},
		"husky": huskyHooks,
		"odd config": func(f *gittest.Fixture) {
			f.Write(".git/config", f.Read(".git/config")+"[core] hooksPath = \"m\\\"y\" ; mine\n[user]\n\tname = x") // no newline at its end
		},
	}
}

func linkedHooks(f *gittest.Fixture) {
	f.WriteMode("scripts/check", recordingHook, 0o755)
	f.Write(".git/hooks/lib.sh", "lib=yes\n")
	f.Symlink("../../scripts/check", ".git/hooks/pre-commit")
	f.Symlink("lib.sh", ".git/hooks/post-commit")
	f.Symlink("nowhere", ".git/hooks/pre-rebase")
}

func binaryHook(f *gittest.Fixture) {
	for _, p := range []string{"/bin/true", "/usr/bin/true"} {
		if data, err := os.ReadFile(p); err == nil {
			f.WriteMode(".git/hooks/pre-push", string(data), 0o755)
			return
		}
	}
}

func includedPath(f *gittest.Fixture) {
	f.Write("shared.config", "[core]\n\thooksPath = myhooks\n")
	f.WriteMode("myhooks/pre-commit", recordingHook, 0o755)
	f.Git("config", "include.path", "../shared.config")
}

// huskyHooks is what husky 9 leaves behind.
func huskyHooks(f *gittest.Fixture) {
	f.Write(".husky/_/.gitignore", "*")
	f.Write(".husky/_/h", "#!/usr/bin/env sh\nn=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n[ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\n")
	for _, n := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "pre-push", "pre-rebase", "post-commit"} {
		f.WriteMode(".husky/_/"+n, "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"", 0o755)
	}
	f.Write(".husky/pre-commit", "echo husky >>../seen\n")
	f.Git("config", "core.hooksPath", ".husky/_")
}

// TestInstallChains: once the policy lets a command through the user's own hooks
// get the same arguments, input and folder, and their exit code counts.
func TestInstallChains(t *testing.T) {
	t.Parallel()
	for name, prepare := range hookSetups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, s := newSite(t, prepare), newSite(t, prepare)
			s.install(install.Options{Allow: []string{"commit", "push"}})
			for _, x := range []*site{plain, s} {
				out, err := x.run(nil, "commit", "-q", "-am", "x")
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if out, err = x.run(nil, "push", "-q", "origin", "main"); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if want, got := seen(plain), seen(s); want != got {
				t.Errorf("without the guard:\n%s\nwith it:\n%s", want, got)
			}
			st := s.status()
			if !st.Firing || len(st.Allow) != 2 {
				t.Errorf("%+v", st)
			}
			s.refused("branch", "-D", "other")
		})
	}
}

// seen is what the user's hooks wrote down; places and ids differ.
func seen(s *site) string {
	data, _ := os.ReadFile(filepath.Join(filepath.Dir(s.Dir), "seen"))
	text := strings.ReplaceAll(strings.ReplaceAll(string(data), s.Home, "HOME"), s.Dir, "DIR")
	return text
}

func TestInstallKeepsExitCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(f *gittest.Fixture) {
		f.WriteMode(".git/hooks/pre-commit", "echo no shebang; exit 7\n", 0o755)
		f.WriteMode(".git/hooks/pre-push", "#!/bin/sh\necho not today >&2; exit 1\n", 0o755)
	})
	s.install(install.Options{Allow: []string{"commit", "push"}})
	if out, err := s.run(nil, "commit", "-am", "x"); err == nil || !strings.Contains(out, "no shebang") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := s.run(nil, "push", "origin", "main"); err == nil || !strings.Contains(out, "not today") {
		t.Errorf("%v %s", err, out)
	}
}

// TestHooksFindTheirFiles: a hook that reads what lies beside it, or leads
// elsewhere from its own place, finds it.
func TestHooksFindTheirFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(f *gittest.Fixture) {
		f.Write(".git/hooks/lib.sh", "say() { echo \"$1\" >>../seen; }\n")
		f.Write("scripts/more.sh", "say more\n")
		f.WriteMode(".git/hooks/pre-commit", "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\n. \"$(dirname \"$0\")/../../scripts/more.sh\"\nsay \"${0##*/}\"\n\"${0%/*}/commit-msg\"\n", 0o755)
		f.WriteMode(".git/hooks/commit-msg", "#!/bin/sh\necho msg >>../seen\n", 0o755)
	})
	s.install(install.Options{Allow: []string{"commit"}})
	s.passes("commit", "-q", "-am", "x")
	if got := seen(s); got != "more\npre-commit\nmsg\nmsg\n" {
		t.Errorf("%q", got)
	}
}

// TestUninstallKeepsChanges: what somebody changed after the install is theirs.
func TestUninstallKeepsChanges(t *testing.T) {
	t.Parallel()
	const mine = "#!/bin/sh\n# mine, newer\n"
	for name, tt := range map[string]struct {
		prepare, change func(s *gittest.Fixture)
		check           func(t *testing.T, s *site, r install.Removal)
	}{
		"hook replaced": {
			func(f *gittest.Fixture) { f.WriteMode(".git/hooks/pre-push", "#!/bin/sh\n# older\n", 0o755) },
			func(f *gittest.Fixture) {
				f.Remove(".git/hooks/pre-push")
				f.WriteMode(".git/hooks/pre-push", mine, 0o755)
			},
			func(t *testing.T, s *site, r install.Removal) {
				if s.Read(".git/hooks/pre-push") != mine || len(r.Kept) != 1 || s.Read(".git/hooks/pre-push.before-superqode") != "#!/bin/sh\n# older\n" {
					t.Errorf("%+v", r)
				}
			},
		},
		"hook renamed": {
			nil,
			func(f *gittest.Fixture) {
				if err := os.Rename(f.Path(".git/hooks/pre-push"), f.Path(".git/hooks/pre-push.old")); err != nil {
					panic(err)
				}
				f.WriteMode(".git/hooks/pre-push", mine, 0o755)
			},
			func(t *testing.T, s *site, r install.Removal) {
				if _, err := os.Lstat(s.Path(".git/hooks/pre-push.old")); err == nil || s.Read(".git/hooks/pre-push") != mine {
					t.Errorf("%+v", r)
				}
			},
		},
		"hook added": {
			nil,
			func(f *gittest.Fixture) { f.WriteMode(".git/hooks/post-merge", mine, 0o755) },
			func(t *testing.T, s *site, r install.Removal) {
				if s.Read(".git/hooks/post-merge") != mine || len(r.Kept) > 0 {
					t.Errorf("%+v", r)
				}
			},
		},
		"hook deleted": {
			func(f *gittest.Fixture) { f.WriteMode(".git/hooks/pre-push", "#!/bin/sh\n# older\n", 0o755) },
			func(f *gittest.Fixture) { f.Remove(".git/hooks/pre-push") },
			func(t *testing.T, s *site, r install.Removal) {
				if _, err := os.Lstat(s.Path(".git/hooks/pre-push")); err == nil || len(r.Kept) != 1 {
					t.Errorf("%+v", r)
				}
			},
		},
		"configuration added to": {
			huskyHooks,
			func(f *gittest.Fixture) {
				f.Git("config", "core.autocrlf", "false")
				f.Git("config", "user.name", "new")
			},
			func(t *testing.T, s *site, r install.Removal) {
				if s.Git("config", "core.hooksPath") != ".husky/_" || s.Git("config", "core.autocrlf") != "false" || r.Config {
					t.Errorf("%+v\n%s", r, s.Read(".git/config"))
				}
			},
		},
		"path set anew": {
			huskyHooks,
			func(f *gittest.Fixture) { f.Git("config", "core.hooksPath", "elsewhere") },
			func(t *testing.T, s *site, r install.Removal) {
				if s.Git("config", "core.hooksPath") != "elsewhere" {
					t.Errorf("%+v", r)
				}
			},
		},
		"section of ours used": {
			func(f *gittest.Fixture) { includedPath(f) },
			func(f *gittest.Fixture) { f.Git("config", "core.pager", "cat") },
			func(t *testing.T, s *site, r install.Removal) {
				if s.Git("config", "core.hooksPath") != "myhooks" || s.Git("config", "core.pager") != "cat" || strings.Contains(s.Read(".git/config"), "superqode") {
					t.Errorf("%+v\n%s", r, s.Read(".git/config"))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.prepare)
			s.install(install.Options{})
			tt.change(s.Fixture)
			r := s.uninstall()
			tt.check(t, s, r)
			for _, left := range []string{"superqode", "superqode-originals", "superqode-hooks"} {
				if _, err := os.Lstat(s.Path(".git/" + left)); err == nil {
					t.Errorf("%s is left", left)
				}
			}
			s.passes("commit", "-qam", "x")
		})
	}
}

// TestManagersComeBack: what a hook manager does to its hooks afterwards is
// noticed, and a second install mends it.
func TestManagersComeBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare, again func(f *gittest.Fixture)
		says           string
	}{
		"husky for first": {nil, huskyHooks, "husky"},
		"lefthook install": {nil, func(f *gittest.Fixture) {
			f.Remove(".git/hooks/pre-push")
			f.WriteMode(".git/hooks/pre-push", "#!/bin/sh\nexec true lefthook\n", 0o755)
		}, "lefthook's again"},
		"folder deleted": {huskyHooks, func(f *gittest.Fixture) { f.Remove(".git/superqode-hooks") }, "husky"},
		"our lines taken out": {huskyHooks, func(f *gittest.Fixture) {
			f.Write(".git/config", strings.Split(f.Read(".git/config"), "[include]")[0])
		}, "husky"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.prepare)
			s.install(install.Options{})
			tt.again(s.Fixture)
			st := s.status()
			if st.Firing || st.Remedy != "superqode guard install" || !strings.Contains(strings.Join(st.Problems, " "), tt.says) {
				t.Fatalf("%+v", st)
			}
			before := s.gitDir()
			if !s.install(install.Options{}) {
				t.Error("not changed")
			}
			if st := s.status(); !st.Firing {
				t.Fatalf("%+v", st)
			}
			s.refused("push", "origin", "main")
			s.uninstall()
			if name == "husky for first" {
				if s.Git("config", "core.hooksPath") != ".husky/_" {
					t.Error(s.Read(".git/config"))
				}
			}
			_ = before
			s.passes("commit", "-qam", "x")
		})
	}
}

// TestSurvivesPrepare: what husky's prepare does, and whoever sets core.hooksPath as it does,
// leaves the guard in force; the hooks that are meant then are run, and uninstall takes out
// our lines alone.
func TestSurvivesPrepare(t *testing.T) {
	t.Parallel()
	set := func(dir string) func(f *gittest.Fixture) {
		return func(f *gittest.Fixture) {
			f.WriteMode(dir+"/pre-commit", "#!/bin/sh\necho "+dir+" >>../seen\n", 0o755)
			f.Git("config", "core.hooksPath", dir)
		}
	}
	for name, tt := range map[string]struct {
		prepare, change func(f *gittest.Fixture)
		seen            string // what the user's hook writes then
		path            string // core.hooksPath after the uninstall
	}{
		"the same":    {huskyHooks, func(f *gittest.Fixture) { f.Git("config", "core.hooksPath", ".husky/_") }, "husky\n", ".husky/_"},
		"another":     {huskyHooks, set("my hooks"), "my hooks\n", "my hooks"},
		"unset":       {huskyHooks, func(f *gittest.Fixture) { f.Git("config", "--unset", "core.hooksPath") }, "", ""},
		"for first":   {func(f *gittest.Fixture) { f.Write(".husky/pre-commit", "echo husky >>../seen\n") }, huskyHooks, "husky\n", ".husky/_"},
		"not yet":     {func(f *gittest.Fixture) { f.Write("package.json", `{"scripts": {"prepare": "husky"}}`) }, huskyHooks, "husky\n", ".husky/_"},
		"over global": {func(f *gittest.Fixture) { f.Git("config", "--global", "core.hooksPath", "/nowhere") }, set("mine"), "mine\n", "mine"},
		"home":        {huskyHooks, func(f *gittest.Fixture) { f.Git("config", "core.hooksPath", "~/none") }, "", "~/none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.prepare)
			s.install(install.Options{Allow: []string{"commit"}})
			tt.change(s.Fixture)
			config := strings.Split(s.Read(".git/config"), "[include]")[0]
			if st := s.status(); !st.Firing {
				t.Fatalf("%+v", st)
			}
			s.refused("update-ref", "-d", "refs/heads/other")
			s.passes("commit", "-q", "--allow-empty", "-m", "x")
			if got := seen(s); got != tt.seen {
				t.Errorf("the user's hook wrote %q, want %q", got, tt.seen)
			}
			s.install(install.Options{Allow: []string{"commit"}})
			s.passes("commit", "-q", "--allow-empty", "-m", "x")
			if got := seen(s); got != tt.seen+tt.seen {
				t.Errorf("after another install the user's hook wrote %q", got)
			}
			s.uninstall()
			if got := s.Read(".git/config"); got != config {
				t.Errorf("%s\nwant\n%s", got, config)
			}
			if tt.path != "" && s.Git("config", "core.hooksPath") != tt.path {
				t.Error(s.Read(".git/config"))
			}
		})
	}
}

// TestMovedRepository: with the hooks in git's own folder the guard moves along;
// with core.hooksPath a second install, or an uninstall, finds its way.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *gittest.Fixture){"folder": nil, "path": huskyHooks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, prepare)
			config := s.Read(".git/config")
			s.install(install.Options{})
			to := s.Dir + "-moved"
			if err := os.Rename(s.Dir, to); err != nil {
				t.Fatal(err)
			}
			s.Dir = to
			s.open(to)
			if st := s.status(); st.Firing != (name == "folder") {
				t.Errorf("%+v", st)
			}
			s.install(install.Options{})
			if st := s.status(); !st.Firing {
				t.Fatalf("%+v", st)
			}
			s.refused("commit", "-am", "x")
			s.uninstall()
			if got := s.Read(".git/config"); got != config {
				t.Errorf("%s\nwant\n%s", got, config)
			}
		})
	}
}

// TestLinkedWorktrees: the hooks are those of the common directory.
func TestLinkedWorktrees(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *gittest.Fixture){"folder": nil, "path": huskyHooks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, prepare)
			side := filepath.Join(filepath.Dir(s.Dir), "side")
			s.Git("worktree", "add", "-q", side, "other")
			before := s.gitDir()
			s.open(side)
			s.install(install.Options{})
			if st := s.status(); !st.Firing {
				t.Errorf("%+v", st)
			}
			main := s.Dir
			for _, dir := range []string{side, main} {
				s.Dir = dir
				s.refused("commit", "--allow-empty", "-m", "x")
				s.refused("update-ref", "-d", "refs/tags/mark")
			}
			s.open(main)
			if st := s.status(); !st.Firing {
				t.Errorf("%+v", st)
			}
			s.uninstall()
			gittest.Same(t, before, s.gitDir())
		})
	}
}

// TestHelperGone: without the program that decides, git works as if nothing were
// installed, and says so.
func TestHelperGone(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *gittest.Fixture){
		"folder": func(f *gittest.Fixture) { f.WriteMode(".git/hooks/pre-push", recordingHook, 0o755) }, "path": huskyHooks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, prepare)
			helper := filepath.Join(t.TempDir(), "superqode-shim")
			if err := os.WriteFile(helper, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s.in.Helper = helper
			s.install(install.Options{})
			if err := os.Remove(helper); err != nil {
				t.Fatal(err)
			}
			out, err := s.run(nil, "commit", "-qam", "x")
			if err != nil || strings.Count(out, "nothing guards this repository") != 1 || !strings.Contains(out, "remove this hook") {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = s.run(nil, "push", "-q", "origin", "main")
			if err != nil || strings.Count(out, "is gone") != 1 {
				t.Errorf("%v\n%s", err, out)
			}
			if seen(s) == "" {
				t.Error("the user's hook did not run")
			}
			if st := s.status(); st.Firing || !strings.Contains(strings.Join(st.Problems, " "), "is gone") {
				t.Errorf("%+v", st)
			}
			s.uninstall()
		})
	}
}

// TestOnce: a person's word lets one command through, with all that it does, and
// no second one.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	if _, err := s.in.AllowOnce("commit"); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("%v", err)
	}
	s.install(install.Options{})
	if _, err := s.in.AllowOnce("comit"); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("%v", err)
	}
	allow := func(op string) {
		t.Helper()
		if _, err := s.in.AllowOnce(guard.Operation(op)); err != nil {
			t.Fatal(err)
		}
	}
	allow("commit")
	s.refused("push", "origin", "main")
	s.passes("commit", "-qam", "x")
	s.refused("commit", "--allow-empty", "-m", "y")
	allow("stash") // covers what stands below it
	s.Write("a.txt", "three\n")
	s.passes("stash", "-q")
	s.Write("a.txt", "four\n")
	s.refused("stash")
	allow("push")
	s.in.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	allow("branch.delete")
	s.refused("branch", "-D", "other") // too long ago
	s.passes("push", "-q", "origin", "main")
	s.refused("push", "origin", "main:x")
}

// TestPolicyIsKept: the policy is the one of the time of the install.
func TestPolicyIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.install(install.Options{Allow: []string{"commit"}, Deny: []string{"tag"}})
	s.passes("commit", "-qam", "x")
	s.refused("push", "origin", "main")
	if _, err := s.in.Install(t.Context(), install.Options{Allow: []string{"nonsense"}}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("%v", err)
	}
	if !s.install(install.Options{}) {
		t.Error("a new policy is a change")
	}
	s.refused("commit", "--allow-empty", "-m", "x")
}

// TestBrokenInstallation: a state that cannot be read denies by the default, and can be
// taken out.
func TestBrokenInstallation(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(f *gittest.Fixture) { f.WriteMode(".git/hooks/pre-push", recordingHook, 0o755) })
	before := s.gitDir()
	s.install(install.Options{Allow: []string{"commit"}})
	s.Write(".git/superqode/install.json", "{")
	s.refused("update-ref", "-d", "refs/heads/other")
	if st := s.status(); st.Firing || !st.Installed {
		t.Errorf("%+v", st)
	}
	s.uninstall()
	gittest.Same(t, before, s.gitDir())
	s.install(install.Options{})
	s.Remove(".git/superqode")
	s.refused("update-ref", "-d", "refs/heads/other")
	s.uninstall()
	gittest.Same(t, before, s.gitDir())
}

// TestTwoInstalls: one of two installs waits for nobody, and says so.
func TestTwoInstalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, huskyHooks)
	before := s.gitDir()
	errs := make(chan error, 8)
	for n := range 8 {
		go func() {
			errs <- installerDo(t.Context(), s.Dir, s.Env(), []string{"install", "uninstall"}[n%2])
		}()
	}
	for range 8 {
		if err := <-errs; err != nil && !errors.Is(err, superqode.ErrLocked) {
			t.Error(err)
		}
	}
	s.install(install.Options{})
	s.uninstall()
	gittest.Same(t, before, s.gitDir())
}

// TestPretendedSession: variables alone do not switch the guard off.
func TestPretendedSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.install(install.Options{})
	dir := t.TempDir()
	out, err := s.run([]string{"SUPERQODE_SESSION_ID=qe-20260101-000000-aaaaaa", "SUPERQODE_SOCKET=" + filepath.Join(dir, "sock-1")}, "commit", "-am", "x")
	if err == nil || !strings.Contains(out, "superqode: refused") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCircle: a manager that calls our renamed hook does not end in
// a circle.
func TestCircle(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(f *gittest.Fixture) {
		f.WriteMode(".git/hooks/pre-commit", "#!/bin/sh\n# pre-commit.com\nhere=$(dirname \"$0\")\nif [ -x \"$here/pre-commit.legacy\" ]; then \"$here/pre-commit.legacy\" \"$@\" || exit; fi\necho ran >>../seen\n", 0o755)
	})
	s.install(install.Options{Allow: []string{"commit"}})
	original := s.Read(".git/superqode-originals/pre-commit")
	if err := os.Rename(s.Path(".git/hooks/pre-commit"), s.Path(".git/hooks/pre-commit.legacy")); err != nil {
		t.Fatal(err)
	}
	s.WriteMode(".git/hooks/pre-commit", original, 0o755)
	s.Symlink("../hooks/pre-commit.legacy", ".git/superqode-originals/pre-commit.legacy")
	s.passes("commit", "-qam", "x")
	if n := strings.Count(seen(s), "ran"); n < 1 || n > 2 {
		t.Errorf("ran %d times", n)
	}
	if st := s.status(); !slices.ContainsFunc(st.Problems, func(p string) bool { return strings.Contains(p, "pre-commit's again") }) {
		t.Errorf("%+v", st.Problems)
	}
}

func TestInstallErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t, huskyHooks)
	s.Write(".git/config.lock", "")
	if _, err := s.in.Install(t.Context(), install.Options{}); !errors.Is(err, superqode.ErrLocked) || superqode.Hint(err) == "" {
		t.Errorf("%v", err)
	}
	s.Remove(".git/config.lock")
	before, err := os.ReadFile(s.Path(".git/config"))
	if err != nil || bytes.Contains(before, []byte("superqode")) {
		t.Errorf("%v %s", err, before)
	}
	s.install(install.Options{})
	s.uninstall()
	if got := s.Read(".git/config"); got != string(before) {
		t.Error(got)
	}
}
