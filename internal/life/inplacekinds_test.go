package life

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// wrecking does a bit of everything.
const wrecking = `set -e
echo changed >> README.md; echo new > new.txt; rm -rf odd src
git add -A && git -c user.name=x -c user.email=x@y commit -qm wrecked --no-verify || true
git stash clear; git branch -D feature || true; git reset -q --hard; git reflog expire --expire=now --all; git gc -q --prune=now || true
git config user.name wrecked
`

// kindOf makes an origin of a kind from the dirty fixture; f.Dir is what the
// session is opened in.
type kindOf func(t *testing.T, f *gittest.Fixture)

// The origin may be any kind of repository, in any state, and it is again after each of
// several sessions.
func TestGitSnapshotOfEveryKind(t *testing.T) {
	t.Parallel()
	scripts := []string{
		wrecking, `for w in $(git worktree list --porcelain | sed -n 's/^worktree //p'); do git worktree unlock "$w" 2>/dev/null; git worktree remove --force "$w" 2>/dev/null; done; git worktree prune; git worktree add -q --detach "$TMPDIR/fresh" 2>/dev/null; true`,
		`set -e; rm -rf "$(git rev-parse --absolute-git-dir)" .git new-folder README.md`, "true",
	}
	for name, make := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			make(t, f)
			for _, script := range scripts {
				b := remember(t, f) // each time: the check's own fsck touches a shared index
				res, out, err := runInPlace(t, f, OpenOptions{}, script)
				if err != nil || !res.Revert.Verified || !res.OriginCheck.Unchanged {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				b.check(t, f)
				if t.Failed() {
					t.Fatalf("after %s", script)
				}
			}
		})
	}
}

func kinds() map[string]kindOf {
	all := map[string]kindOf{
		"linked worktree": func(_ *testing.T, f *gittest.Fixture) {
			f.Git("worktree", "add", "-q", "-b", "wt", f.Home+"/wt")
			f.Dir = f.Home + "/wt"
			f.Write("README.md", "changed in the worktree\n")
			f.Write("untracked", "x")
		},
		"beside a worktree": func(_ *testing.T, f *gittest.Fixture) {
			f.Git("worktree", "add", "-q", "-b", "wt", f.Home+"/wt")
			f.Git("worktree", "add", "-q", "--detach", f.Dir+"/inside")
			f.Git("worktree", "lock", f.Home+"/wt")
		},
		"submodule": func(_ *testing.T, f *gittest.Fixture) {
			super := f.Home + "/super"
			f.GitIn(f.Home, "init", "-q", "super")
			f.GitIn(super, "submodule", "--quiet", "add", f.Dir, "mod")
			f.GitIn(super, "commit", "-qm", "with a submodule")
			f.Dir = super + "/mod"
			f.Write("README.md", "changed in the submodule\n")
		},
		"with submodules": func(_ *testing.T, f *gittest.Fixture) {
			f.GitIn(f.Home, "init", "-q", "other")
			f.GitIn(f.Home+"/other", "commit", "-q", "--allow-empty", "-m", "one")
			f.Git("submodule", "--quiet", "add", f.Home+"/other", "mod")
			f.Write("mod/dirty", "untracked in the submodule")
		},
		"nested repositories": func(_ *testing.T, f *gittest.Fixture) {
			for _, dir := range []string{"nested", "build/nested"} {
				f.GitIn(f.Dir, "init", "-q", dir)
				f.Write(dir+"/f", "x")
				f.GitIn(f.Path(dir), "add", "-A")
				f.GitIn(f.Path(dir), "commit", "-qm", "x")
			}
		},
		"detached":    func(_ *testing.T, f *gittest.Fixture) { clean(f); f.Git("checkout", "-q", "--detach", "HEAD~1") },
		"packed":      func(_ *testing.T, f *gittest.Fixture) { f.Git("gc", "-q"); f.Git("pack-refs", "--all") },
		"split index": func(_ *testing.T, f *gittest.Fixture) { f.Git("update-index", "--split-index") },
		"sparse":      func(_ *testing.T, f *gittest.Fixture) { clean(f); f.Git("sparse-checkout", "set", "src") },
		"no index":    func(_ *testing.T, f *gittest.Fixture) { f.Remove(".git/index") },
		"bare stash":  func(_ *testing.T, f *gittest.Fixture) { f.Git("pack-refs", "--all", "--prune"); f.Remove(".git/logs") },
		"closed git": func(_ *testing.T, f *gittest.Fixture) {
			_ = os.Chmod(f.Path(".git"), 0o2750)
			_ = os.Chmod(f.Dir, 0o1711)
		},
		"alternates": func(_ *testing.T, f *gittest.Fixture) {
			f.GitIn(f.Home, "clone", "-qs", f.Dir, "shared")
			f.Dir = f.Home + "/shared"
			f.Write("new-here", "x")
		},
		"empty worktrees": func(_ *testing.T, f *gittest.Fixture) { f.Mkdir(".git/worktrees") },
		"filters":         filtered,
		"merging":         merging,
		"rebasing":        rebasing,
		"unborn":          unborn0,
		"sha256":          sha256Kind,
		"sha256 packed":   func(t *testing.T, f *gittest.Fixture) { sha256Kind(t, f); f.Git("gc", "-q") },
		"reftable":        reftableKind,
	}
	return all
}

// clean puts the fixture's changes aside.
func clean(f *gittest.Fixture) {
	f.Git("reset", "-q") // git cannot stash what is only intended to be added
	f.Git("stash", "push", "-qu")
}

func filtered(t *testing.T, f *gittest.Fixture) {
	f.Write(".gitattributes", "*.txt text eol=crlf\n*.go filter=up\n")
	f.Git("config", "filter.up.clean", "tr a-z A-Z")
	f.Git("config", "filter.up.smudge", "tr A-Z a-z")
	f.Git("config", "core.autocrlf", "true")
	f.Git("config", "core.hooksPath", ".hooks")
	f.WriteMode(".hooks/post-checkout", "#!/bin/sh\necho hook >> hooked\n", 0o755)
	for name := range gittest.Times(t, f.Dir, ".git") { // or git believes that what was committed before is normalized
		if st, err := os.Lstat(f.Path(name)); err == nil && st.Mode().IsRegular() {
			_ = os.Chtimes(f.Path(name), time.Time{}, time.Unix(1_700_000_000, 0))
		}
	}
}

func merging(_ *testing.T, f *gittest.Fixture) {
	clean(f)
	f.Git("switch", "-q", "feature")
	f.Write("README.md", "theirs\n")
	f.Commit("theirs")
	f.Git("switch", "-q", "main")
	f.Write("README.md", "ours\n")
	f.Commit("ours")
	_, _ = f.Try(f.Dir, "merge", "-q", "feature") // a conflict
	f.Write("extra", "x")
}

func rebasing(t *testing.T, f *gittest.Fixture) {
	merging(t, f)
	f.Git("merge", "--abort")
	_, _ = f.Try(f.Dir, "rebase", "-q", "feature")
}

func unborn0(_ *testing.T, f *gittest.Fixture) {
	f.GitIn(f.Home, "init", "-q", "unborn")
	f.Dir = f.Home + "/unborn"
	f.Write("README.md", "x")
	f.Write("staged", "y")
	f.Git("add", "staged")
}

func sha256Kind(_ *testing.T, f *gittest.Fixture) {
	f.GitIn(f.Home, "init", "-q", "--object-format=sha256", "sha")
	f.Dir = f.Home + "/sha"
	f.Write("README.md", "one\n")
	f.Write("src/a", "two\n")
	f.Commit("first")
	f.Git("branch", "feature")
	f.Write("src/a", "three\n")
	f.Git("stash", "push", "-q")
	f.Write("README.md", "changed\n")
	f.Write("untracked", "x")
}

func reftableKind(t *testing.T, f *gittest.Fixture) {
	if _, err := f.Try(f.Home, "init", "-q", "--ref-format=reftable", "reft"); err != nil {
		t.Skip("this git has no reftable")
	}
	f.Dir = f.Home + "/reft"
	f.Write("README.md", "one\n")
	f.Commit("first")
	f.Git("branch", "feature")
	f.Write("README.md", "changed\n")
}

// From a folder below the origin's top the session is about the whole origin,
// and the program starts where the user was.
func TestGitSnapshotFromSubfolder(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	b := remember(t, f)
	res, out, err := runInPlace(t, f, OpenOptions{Dir: f.Path("src/deep")}, `pwd; test "$(basename "$PWD")" = deep && rm -rf "$SUPERQODE_WORKSPACE/src" && echo x > ../../new`)
	if err != nil || !res.Revert.Verified {
		t.Fatalf("%v\n%s", err, out)
	}
	b.check(t, f)
}

// Nothing that a program plants in the repository is run by superqode, neither
// while it brings it back nor when the next command comes.
func TestNothingPlantedIsRun(t *testing.T) {
	t.Parallel()
	for _, mode := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeShared} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			trap, marker := f.Home+"/trap", f.Home+"/marker"
			if err := os.WriteFile(trap, []byte("#!/bin/sh\necho \"$0 $*\" >> "+marker+"\ncat\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			plant := strings.ReplaceAll(`set -e
for k in core.fsmonitor core.sshCommand core.pager core.editor core.askPass diff.external diff.x.textconv diff.x.command filter.x.clean filter.x.smudge filter.x.process merge.x.driver gpg.program credential.helper uploadpack.packObjectsHook core.gitProxy; do git config $k TRAP; done
for a in version rev-parse diff diff-tree cat-file hash-object update-ref for-each-ref worktree ls-files check-ignore status; do git config alias.$a '!TRAP'; done
git config core.hooksPath "$PWD/.planted"; git config diff.guitool TRAP; git config init.templateDir "$PWD/.planted"
printf '* filter=x diff=x merge=x\n' > .gitattributes; cp .gitattributes .git/info/attributes
mkdir .planted; for h in post-index-change reference-transaction post-checkout pre-commit pre-auto-gc fsmonitor-watchman; do cp TRAP .planted/$h; cp TRAP .git/hooks/$h; done
git config include.path "$PWD/.planted/more"; printf '[core]\n\tfsmonitor = TRAP\n' > .planted/more
rm -f MARKER; echo x >> README.md; echo y > new.go
`, "TRAP", trap)
			res, out, err := runInPlace(t, f, OpenOptions{Mode: mode}, strings.ReplaceAll(plant, "MARKER", marker))
			if err != nil || res.ExitCode != 0 {
				t.Fatalf("%v\n%s", err, out)
			}
			if ran, err := os.ReadFile(marker); err == nil {
				t.Errorf("superqode ran what was planted:\n%s", ran)
			}
			if mode == superqode.ModeShared {
				if res.OriginCheck.Unchanged || res.Revert.Verified || res.Revert.Method != "none" {
					t.Errorf("result %+v %+v", res.Revert, res.OriginCheck)
				}
				return
			}
			b.check(t, f)
			if err := os.Remove(marker); !os.IsNotExist(err) {
				t.Error("something planted was still there for git")
			}
		})
	}
}

// A worktree session that is open at the same time survives a program that takes
// the repository away.
func TestGitSnapshotBesideWorktreeSessions(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"no git": "rm -rf .git", "pruned": "git worktree list; rm -rf .git/worktrees; git worktree prune", "garbage": `for d in .git/worktrees/*; do echo x > $d/HEAD; echo x > $d/gitdir; rm $d/index; done`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			other := openSession(t, f, OpenOptions{Guard: GuardOptions{Off: true}})
			ws := string(other.Rec.Workspace)
			if err := os.WriteFile(filepath.Join(ws, "made.txt"), []byte("in the other session\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			status := f.StatusIn(ws)
			res, out, err := runInPlace(t, f, OpenOptions{}, script)
			if err != nil || !res.Revert.Verified {
				t.Fatalf("%v\n%s", err, out)
			}
			if now, err := f.Try(ws, "--no-optional-locks", "status", "--porcelain=v2", "-uall", "-z"); err != nil || strings.ReplaceAll(now, "\x00", "\n") != status {
				t.Errorf("the other session's worktree: %v\n%s\n%s", err, status, now)
			}
			result, err := other.End(t.Context(), EndOptions{})
			if err != nil || len(result.Changes) != 1 || !result.OriginCheck.Unchanged {
				t.Errorf("the other session's end: %v %+v", err, result)
			}
			b.folders = folderTimes(t, f.Dir) // its end took its own folder out of .git
			b.check(t, f)
		})
	}
}

// A worktree session that takes its workspace away while a git_snapshot session
// works in the repository does not get git's half of it back.
func TestGitSnapshotLetsNeighboursGo(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	other := openSession(t, f, OpenOptions{Guard: GuardOptions{Off: true}})
	ws, admin := string(other.Rec.Workspace), string(other.Rec.AdminDir)
	_, out, err := runInPlace(t, f, OpenOptions{}, "rm -rf '"+ws+"' '"+admin+"'") // what the other's end does before it says so
	if err != nil || atomicfile.Exists(admin) {
		t.Errorf("%v, %s is there: %v\n%s", err, admin, atomicfile.Exists(admin), out)
	}
}
