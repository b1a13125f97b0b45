package life

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// confined opens a session that has the kernel layer and nothing else (there is
// no helper binary for shim and hooks beside the test, but in overlay mode), so that what is kept from
// happening is the kernel's work alone.
func confined(t *testing.T, f *gittest.Fixture, mode superqode.Mode) *Session {
	t.Helper()
	opt := OpenOptions{Dir: f.Dir, Mode: mode, Exclude: []string{".git/**"}}
	s, err := managerIn(f, mode).Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.End(context.WithoutCancel(t.Context()), EndOptions{Keep: superqode.KeepNever}); err != nil && !errors.Is(err, superqode.ErrNotFound) {
			t.Errorf("end: %v", err)
		}
	})
	if l := s.Rec.Layers(); s.Rec.Overlay == nil && (l.Shim == kernel.Active || l.Hooks == kernel.Active) {
		t.Fatalf("other layers are active, too: %+v", l)
	}
	if s.Rec.Kernel != kernel.Active {
		t.Skip("the kernel layer is " + s.Rec.Kernel)
	}
	return s
}

func (s *Session) sh(t *testing.T, script string) string {
	t.Helper()
	var out bytes.Buffer
	_, err := s.Exec(t.Context(), program.ExecOptions{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inRow writes scripts one after the other, each in a shell of its own in dir. Left
// out is what leads out of dir, should the layer ever fail, and, unless mounts keep
// it off, what Landlock does not stop: permission bits and times are changed by
// their owner without writing.
func inRow(scripts map[string]string, dir string, mounts bool) (text string, n int) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		script := strings.TrimPrefix(scripts[name], "set -e\n")
		slips := !mounts && (strings.Contains(script, "chmod") || strings.Contains(script, "touch"))
		if slips || strings.Contains(script, "ln -s /") || strings.Contains(script, "cd /") || strings.Contains(script, "..") {
			continue
		}
		n++
		fmt.Fprintf(&b, "echo '== %s'\n(cd \"%s\" || exit\n[ \"$(pwd -P)\" = \"%s\" ] || exit\n%s\n)\n", name, dir, dir, script)
	}
	return b.String(), n
}

// TestConfinedOrigin: no program that damages a repository in place damages the
// origin of an isolated session, whether it goes there or uses the workspace's git.
func TestConfinedOrigin(t *testing.T) {
	t.Parallel()
	for _, mode := range withOverlay(superqode.ModeWorktree, superqode.ModeSnapshot, superqode.ModeDirectory) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := f.Fingerprint(".superqode")
			s := confined(t, f, mode)
			opened := f.Fingerprint(".superqode")
			times := gittest.Times(t, f.Dir, ".superqode")
			scripts, n := inRow(hostile(), "$SUPERQODE_ORIGIN", false)
			out := s.sh(t, scripts)
			if diff := append(opened.Diff(f.Fingerprint(".superqode")), times.Diff(gittest.Times(t, f.Dir, ".superqode"))...); len(diff) > 0 {
				t.Errorf("%q\n%s", diff, out)
			}
			if n < 60 || strings.Count(out, "== ") < n {
				t.Errorf("%d scripts\n%s", n, out)
			}
			if _, err := s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil {
				t.Error(err)
			}
			gittest.Same(t, before, f.Fingerprint(".superqode"))
		})
	}
}

// TestConfinedWorktree: git itself, called by its path in the workspace of a
// session, changes nothing that the repository's worktrees share.
func TestConfinedWorktree(t *testing.T) {
	t.Parallel()
	for _, mode := range withOverlay(superqode.ModeWorktree) {
		t.Run(string(mode), func(t *testing.T) { t.Parallel(); confinedGit(t, mode) })
	}
}

func confinedGit(t *testing.T, mode superqode.Mode) {
	f := gittest.Dirty(t)
	s := confined(t, f, mode)
	opened := f.Fingerprint(".superqode")
	lines := []string{
		"git add -A", "git commit -qam x --no-verify", "git commit --allow-empty -m x", "git commit --amend -m x --no-verify", "git -c core.hooksPath=/dev/null commit --allow-empty -m x", "git commit-tree HEAD^{tree} -m x",
		"git stash push -u", "git stash pop", "git stash drop", "git stash clear", "git branch -D feature", "git branch new", "git branch -f feature HEAD~1", "git branch -m feature f2", "git tag -d v1.0.0", "git tag new",
		"git update-ref refs/heads/feature HEAD~1", "git update-ref -d refs/heads/feature", "git symbolic-ref HEAD refs/heads/feature", "git config user.name evil", "git config --global user.name evil", "git remote remove origin",
		"git gc --prune=now --aggressive", "git prune --expire=now", "git repack -adf", "git pack-refs --all --prune", "git reflog expire --expire=all --all", "git reflog delete main@{0}", "git notes add -m x", "git replace HEAD HEAD~1",
		"git worktree remove --force .", "git worktree prune --expire=now", "git worktree move . ../moved", "git worktree add ../w2", "git -C \"$SUPERQODE_ORIGIN\" reset --hard", "git -C \"$SUPERQODE_ORIGIN\" clean -fdx", "git -C \"$SUPERQODE_ORIGIN\" checkout -f feature",
		"git merge feature", "git rebase HEAD~1", "git cherry-pick feature", "git revert HEAD", "git push origin HEAD:refs/heads/x", "git push --force --no-verify origin HEAD~1:main", "git fetch origin +main:feature", "git fetch --all --prune", "git pull --rebase",
		"git reset --hard HEAD~1", "git checkout -f feature", "git switch --discard-changes feature", "git restore .", "git rm -rf .", "git filter-branch -f --tree-filter true HEAD", "git fast-import </dev/null", "git submodule add ./x y", "git sparse-checkout set src",
		"GIT_DIR=\"$SUPERQODE_ORIGIN/.git\" GIT_WORK_TREE=\"$SUPERQODE_ORIGIN\" git checkout -f HEAD~1", "git --git-dir=\"$SUPERQODE_ORIGIN/.git\" config core.fsmonitor evil", "git hash-object -w --stdin </dev/null", "git init \"$SUPERQODE_ORIGIN\"",
		"printf '[alias]\\n\\tx = !true\\n' >\"$SUPERQODE_ORIGIN/.git/config\"", "d=$(git rev-parse --git-dir) && echo x >\"$d/HEAD\"", "d=$(git rev-parse --git-dir) && rm -rf \"$d\"", "d=$(git rev-parse --git-common-dir) && rm -rf \"$d\"", "d=$(git rev-parse --git-path hooks) && echo x >\"$d/post-checkout\"",
	}
	out := s.sh(t, "set -x\n("+strings.Join(lines, ")\n(")+")\n")
	if diff := opened.Diff(f.Fingerprint(".superqode")); len(diff) > 0 {
		t.Errorf("%q\n%s", diff, out)
	}
	remote := gittest.Fingerprint(t, f.Home+"/remote.git")
	if out := s.sh(t, "git push -f origin HEAD:main 2>&1; rm -rf "+f.Home+"/remote.git"); len(remote.Diff(gittest.Fingerprint(t, f.Home+"/remote.git"))) > 0 {
		t.Errorf("a remote on the same machine was changed: %s", out)
	}
}

// TestConfinedInPlace: where mounts can be had, .git stays as it is while the
// program works in the origin itself.
func TestConfinedInPlace(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	before := f.Fingerprint(".superqode")
	t.Cleanup(func() { gittest.Same(t, before, f.Fingerprint(".superqode")) })
	s := confined(t, f, superqode.ModeGitSnapshot)
	opened := gittest.Fingerprint(t, f.Path(".git"))
	times := gittest.Times(t, f.Path(".git"))
	all := hostileGit()
	maps.Copy(all, hostileRepository())
	scripts, _ := inRow(all, "$SUPERQODE_ORIGIN", true)
	out := s.sh(t, scripts)
	if diff := append(opened.Diff(gittest.Fingerprint(t, f.Path(".git"))), times.Diff(gittest.Times(t, f.Path(".git")))...); len(diff) > 0 {
		t.Errorf("%q\n%s", diff, out)
	}
}

// TestConfinedUnprivileged: the same as somebody who is not root.
func TestConfinedUnprivileged(t *testing.T) {
	t.Parallel()
	if !gittest.Unprivileged(t) {
		return
	}
	t.Run("origin", TestConfinedOrigin)
	t.Run("worktree", TestConfinedWorktree)
	t.Run("in place", TestConfinedInPlace)
}

// TestWeaker: a session tells of the least that one of its programs had.
func TestWeaker(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"", "active", "active"}, {"active", "", "active"}, {"active", "off", "off"}, {"off", "active", "off"}, {"active", "unavailable: x", "unavailable: x"},
		{"unavailable: x", "active", "unavailable: x"}, {"unavailable: x", "off", "off"}, {"unavailable: x", "unavailable: y", "unavailable: x"}, {"active", "active", "active"},
	} {
		if got := state.Weaker(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q and %q: %q", tt[0], tt[1], got)
		}
	}
}
