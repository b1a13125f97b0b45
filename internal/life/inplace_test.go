package life

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// before is what an in-place session has to leave: every byte below the origin
// but superqode's own folder, git's files included, with the times of files.
type before struct {
	print, times gittest.Print
	folders      map[string]time.Time
	status       string
}

// folderTimes returns when each folder was changed last, superqode's left out.
func folderTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == ".superqode" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err == nil {
			times[path] = info.ModTime()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func remember(t *testing.T, f *gittest.Fixture) before {
	t.Helper()
	status, _ := f.Try(f.Dir, "--no-optional-locks", "status", "--porcelain=v2", "-uall", "-z", "--", ".", ":(exclude).superqode")
	return before{f.Fingerprint(".superqode"), gittest.Times(t, f.Dir, ".superqode"), folderTimes(t, f.Dir), status}
}

// check compares the origin with what was remembered, and asks git.
func (b before) check(t *testing.T, f *gittest.Fixture) {
	t.Helper()
	gittest.Same(t, b.print, f.Fingerprint(".superqode"))
	gittest.Same(t, b.times, gittest.Times(t, f.Dir, ".superqode"))
	for path, now := range folderTimes(t, f.Dir) {
		if was := b.folders[path]; !now.Equal(was) && path != f.Dir { // that one is changed by making .superqode
			t.Errorf("%s: time %v, was %v", path, now, was)
		}
	}
	if status, _ := f.Try(f.Dir, "--no-optional-locks", "status", "--porcelain=v2", "-uall", "-z", "--", ".", ":(exclude).superqode"); status != b.status {
		t.Errorf("git status differs:\n%q\n%q", b.status, status)
	}
	if out, err := f.Try(f.Dir, "fsck", "--no-progress", "--connectivity-only"); err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// runInPlace runs a shell script as a session's program, with the guard off: what
// it keeps a program from must come back without it, too.
func runInPlace(t *testing.T, f *gittest.Fixture, opt OpenOptions, script string) (*artifacts.Result, string, error) {
	t.Helper()
	if opt.Mode == "" {
		opt.Mode = superqode.ModeGitSnapshot
	}
	opt.Guard.Off, opt.Enforce = true, kernel.EnforceOff
	if opt.Dir == "" {
		opt.Dir = f.Dir
	}
	var out bytes.Buffer
	m := managerOf(f)
	m.Tell = func(s string) { out.WriteString("warning: " + s + "\n") }
	res, err := m.Run(t.Context(), opt, program.ExecOptions{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: io.Writer(&out)})
	return res, out.String(), err
}

// The origin is brought back whole, whatever the program did to it.
func TestGitSnapshotBringsEverythingBack(t *testing.T) {
	t.Parallel()
	for name, script := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			res, out, err := runInPlace(t, f, OpenOptions{}, script)
			if err != nil || res == nil {
				t.Fatalf("%v\n%s", err, out)
			}
			b.check(t, f)
			if res.ExitCode != 0 {
				t.Errorf("the program ended with %d\n%s", res.ExitCode, out)
			}
			if !res.Revert.Verified || res.Revert.Digest.IsZero() || len(res.Revert.Differences) > 0 || !res.OriginCheck.Unchanged || res.State != superqode.StateDone {
				t.Errorf("result %+v %+v %s\n%s", res.Revert, res.OriginCheck, res.State, out)
			}
			if left, err := state.Names(f.Path(".git")); err != nil || slices.ContainsFunc(left, func(n string) bool { return strings.Contains(n, "superqode") }) {
				t.Errorf("left in the repository: %q %v", left, err)
			}
		})
	}
}

// hostile are the programs, by name.
func hostile() map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{hostileGit(), hostileRepository(), hostileTree()} {
		for name, script := range m {
			all[name] = "set -eu\n" + script
		}
	}
	return all
}

// hostileGit are programs that use git.
func hostileGit() map[string]string {
	return map[string]string{
		"nothing":          "true",
		"commit":           "git add -A; git commit -qm all; git commit -q --allow-empty -m more; git commit -q --amend --allow-empty -m amended",
		"reset hard":       "git reset -q --hard",
		"reset to parent":  "git reset -q --hard HEAD~1; git clean -fdxq",
		"branches":         "git branch -D feature; git branch new; git branch -f other HEAD~1; git symbolic-ref HEAD refs/heads/nowhere",
		"update-ref":       "git update-ref -d refs/heads/main; git update-ref refs/heads/feature HEAD~1 || git update-ref refs/heads/feature refs/tags/v1.0.0^{}",
		"tags":             "git tag -d v1.0.0; git tag -f x; git notes add -m note",
		"checkout":         "git checkout -qf feature; git checkout -qf --detach",
		"stash push":       "git rm -q --cached intent.txt; git stash push -q -u; git stash push -q -a || true",
		"stash pop":        "git rm -q --cached intent.txt; git stash push -qu; git stash pop -q; git stash drop -q",
		"stash drop":       "git stash drop -q",
		"stash clear":      "git stash clear; git reflog expire --expire=now --all; git gc -q --prune=now --aggressive",
		"gc":               "git branch -D feature; git tag -d v1.0.0; git stash clear; git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now",
		"pack":             "git repack -adfq; git pack-refs --all; git prune-packed; git pack-redundant --all --i-still-use-this || true",
		"config":           "git config user.name x; git config --unset superqode.fixture; git config core.hooksPath /tmp; git config alias.st '!false'; git remote remove origin",
		"worktree add":     `git worktree add -q -b wt "$TMPDIR/wt"; echo x >"$TMPDIR/wt/x"; git -C "$TMPDIR/wt" add -A; git -C "$TMPDIR/wt" commit -qm wt`,
		"merge":            "git add -A; git commit -qm all; git merge -q feature; git rebase -q HEAD~1",
		"merge begun":      "git add -A; git commit -qm all; git merge -q --no-commit --no-ff feature; git checkout -q --merge . || true",
		"submodule":        `git init -q sub; git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add "$PWD/sub" mod`,
		"index":            "git rm -rq --cached .; git add -Af; git update-index --assume-unchanged README.md; git update-index --split-index",
		"sparse":           "git sparse-checkout set src 2>/dev/null || git sparse-checkout set --no-cone src",
		"maintenance":      "git repack -q; git commit-graph write --reachable; git multi-pack-index write; git update-server-info; git rerere status; git bisect start",
		"fetch and prune":  "git push -q origin --delete v1.0.0; git fetch -q --prune; git remote set-url origin /nowhere",
		"shallow and more": "git rev-list HEAD | head -1 > .git/shallow; git replace HEAD HEAD~1 || true; git checkout-index -qfa",
	}
}
