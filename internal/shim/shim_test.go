package shim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/shim"
)

// TestMain is also the shim of the sessions that the tests make: git starts this
// binary under the name git from a session's folder.
func TestMain(m *testing.M) {
	if exe, err := os.Executable(); err == nil && filepath.Base(exe) == "git" {
		dir, err := os.Getwd()
		if err != nil {
			dir = ""
		}
		os.Exit(shim.Git(context.Background(), shim.Call{Exe: exe, Argv: os.Args, Env: os.Environ(), Dir: dir, Err: os.Stderr}))
	}
	gittest.LeaveSession()
	os.Exit(m.Run())
}

// shimmed is a session's folder around a repository, with the shim as the only
// layer.
type shimmed struct {
	t    *testing.T
	f    *gittest.Fixture
	st   *guard.SessionState
	dir  string
	real string
	env  []string
}

func newShimmed(t *testing.T, f *gittest.Fixture, change func(*guard.SessionState)) *shimmed {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s := &shimmed{t: t, f: f, dir: filepath.Join(f.Home, "session"), real: real}
	execPath := strings.TrimSpace(f.Git("--exec-path"))
	s.st = &guard.SessionState{
		ID: superqode.NewSessionID(time.Unix(1700000000, 0)), WorkTree: true, Origin: superqode.HostPath(f.Dir), Workspace: superqode.HostPath(f.Dir),
		GitDirs: []superqode.HostPath{superqode.HostPath(filepath.Join(f.Dir, ".git"))}, UserConfig: []superqode.HostPath{superqode.HostPath(filepath.Join(f.Home, ".gitconfig"))},
		Git: guard.RealGit{Bin: superqode.HostPath(real), ExecPath: superqode.HostPath(execPath)},
	}
	if change != nil {
		change(s.st)
	}
	for _, d := range []string{"bin", "exec", "log"} {
		s.must(os.MkdirAll(filepath.Join(s.dir, d), 0o700))
	}
	self, err := os.Executable()
	s.must(err)
	s.must(placeShim(self, filepath.Join(s.dir, "bin", "git")))
	s.must(os.Link(filepath.Join(s.dir, "bin", "git"), filepath.Join(s.dir, "exec", "git")))
	entries, err := os.ReadDir(execPath)
	s.must(err)
	for _, e := range entries {
		target := filepath.Join(execPath, e.Name())
		if e.Name() == "git" {
			continue
		}
		if strings.HasPrefix(e.Name(), "git-") && guard.IsGitCommand(e.Name()[len("git-"):]) && sameFile(target, filepath.Join(execPath, "git")) {
			target = "git"
		}
		s.must(os.Symlink(target, filepath.Join(s.dir, "exec", e.Name())))
	}
	s.must(s.st.Save(s.dir))
	s.env = f.Env("PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"), "GIT_EXEC_PATH="+filepath.Join(s.dir, "exec"), "SHIM="+filepath.Join(s.dir, "bin", "git"))
	return s
}

func (s *shimmed) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// placeShim puts this test binary at path, as a link where that can be.
func placeShim(self, path string) error {
	if os.Link(self, path) == nil {
		return nil
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o700)
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// sh runs a line of shell text in dir as a program of the session does.
func (s *shimmed) sh(dir, line string) (code int, out string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	var buf bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, s.env, &buf, &buf
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), buf.String()
	}
	s.must(err)
	return 0, buf.String()
}

// deniedRows is the policy of docs/guard.md, as what people type.
const deniedRows = `
commit -m x | commit -am x | commit --amend --no-edit | commit --allow-empty --no-verify -m x | commit -m x -- unstaged.txt
merge feature | merge --ff-only feature | rebase feature | rebase -i HEAD~1 | cherry-pick feature | revert --no-edit HEAD | am /nowhere | pull | filter-branch -f --msg-filter cat
push | push origin main | push --force | push --no-verify | push --mirror | send-pack . main
stash | stash push -u | stash save x | stash pop | stash apply | stash drop | stash clear | stash branch b
reset --hard | reset --hard HEAD~1 | reset --merge | reset --keep HEAD~1 | reset --soft HEAD~1 | reset HEAD~1 | reset --har
checkout -- unstaged.txt | checkout . | checkout HEAD -- unstaged.txt | checkout unstaged.txt | checkout -f | checkout -f feature | checkout -B feature | checkout -p
restore unstaged.txt | restore . | restore --worktree --staged . | restore -s HEAD -W .
switch -f feature | switch --discard-changes feature | switch -C feature | switch -m feature
clean -f | clean -fdx | clean -fd . | rm -f staged.txt | rm -rf . | rm -r src | mv -f staged.txt both.txt | checkout-index -f -a | read-tree -u --reset HEAD | read-tree --reset HEAD
branch -d feature | branch -D feature | branch -f feature HEAD | branch -m feature gone | branch -M feature gone | branch -C feature main
tag -d v1.0.0 | tag -f v1.0.0 | update-ref refs/heads/main HEAD~1 | update-ref -d refs/heads/feature | symbolic-ref HEAD refs/heads/feature | replace HEAD HEAD~1
notes add -m x | reflog expire --expire=now --all | reflog delete HEAD@{0} | fetch . +feature:refs/stash | fetch . main:feature | gc --prune=now | prune --expire=now | repack -a -d | maintenance run
worktree remove . | worktree prune | worktree move . /tmp/x | remote add x y | remote remove origin | remote rename origin x | remote set-url origin x
submodule deinit --all | submodule update --force | sparse-checkout set src | config user.name x | config --unset superqode.fixture | config --global a.b c | init | init .
fast-import | apply -R patch`

// TestShimDenies: every row of the policy is refused with exit code 3 and an
// explanation, and nothing at all has changed: not a file, a ref, the index, the
// stash or the configuration.
func TestShimDenies(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	before := f.Fingerprint()
	for row := range strings.FieldsFuncSeq(deniedRows, func(r rune) bool { return r == '|' || r == '\n' }) {
		row = strings.TrimSpace(row)
		if row == "" {
			continue
		}
		code, out := s.sh(f.Dir, "git "+row+" </dev/null")
		if code != 3 || !strings.Contains(out, "superqode: refused: git") || !strings.Contains(out, "why: ") {
			t.Errorf("git %s: exit code %d:\n%s", row, code, out)
		}
	}
	gittest.Same(t, before, f.Fingerprint())
}

// TestShimSpellings: one operation is the same one however it is spelled, and
// whichever way leads to the shim.
func TestShimSpellings(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	f.Write("../included", "[alias]\n\tinc = reset --hard\n")
	f.Git("config", "alias.undo", "reset --hard")
	f.Git("config", "alias.again", "undo")
	f.Git("config", "alias.sh", "!git reset --hard")
	f.Git("config", "alias.loop", "!f() { git commit --allow-empty -m x; }; f")
	f.Git("config", "includeIf.gitdir:"+f.Dir+"/.path", f.Path("../included"))
	long := strings.Repeat("x ", 40_000)
	for _, line := range []string{
		`git undo`, `git again`, `git sh`, `git loop`, `git inc`, `git -c alias.q=undo q`, `git -c alias.q='!git undo' q`, `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.q GIT_CONFIG_VALUE_0='reset --hard' git q`,
		`git --no-pager -C . reset --hard`, `git -C src reset --hard`, `cd src && git -C .. reset --hard`, `git --git-dir=.git --work-tree=. reset --hard`, `GIT_DIR=.git git reset --hard`,
		`cd / && git --git-dir='` + f.Dir + `/.git' --work-tree='` + f.Dir + `' reset --hard`, `cd / && GIT_DIR='` + f.Dir + `/.git' git update-ref -d refs/heads/feature`,
		`git reset --hard --end-of-options HEAD`, `git reset -q --hard`, `git clean -xdf`, `git clean -d --force`, `git checkout -qf`, `git commit -qam x`, `git branch -vD feature`, `git tag -fam x v1.0.0`,
		`"$GIT_EXEC_PATH/git-reset" --hard`, `"$GIT_EXEC_PATH/git" reset --hard`, `PATH="$GIT_EXEC_PATH:$PATH" git-commit --allow-empty -m x`,
		`env -i "$SHIM" reset --hard`, `env -u GIT_EXEC_PATH -u PATH "$SHIM" -c alias.q='!git commit --allow-empty -m x' q`, `sh -c 'exec git reset --hard'`, `(git reset --hard)`, `echo reset --hard | xargs git`,
		`git -c help.autocorrect=immediate comit --allow-empty -m x`, `git bisect start HEAD HEAD~1 >/dev/null && git bisect run git reset --hard; c=$?; git bisect reset >/dev/null; exit $c`,
		`git commit --allow-empty -m "$(printf '` + long[:2000] + `')"`, `git commit --allow-empty -m x ` + long,
		`exec git reset --hard`, `ln -s '` + f.Dir + `' ../link; cd ../link; c=0; git reset --hard || c=$?; rm ../link; exit $c`,
	} {
		if code, out := s.sh(f.Dir, line); code != 3 && !strings.Contains(line, "bisect") && !strings.Contains(line, "xargs") || !strings.Contains(out, "refused: git") {
			t.Errorf("%.300s: exit code %d: %.600s", line, code, out)
		}
	}
	if got := f.Git("status", "--porcelain", "unstaged.txt"); got == "" {
		t.Error("the edit of unstaged.txt is lost")
	}
	if got := f.Git("rev-parse", "feature"); got == "" || strings.TrimSpace(f.Git("log", "--format=%s", "-1")) != "second" {
		t.Error("a branch has moved")
	}
}

// TestShimAllows: what reads, and what takes nothing away, is git's own: the same
// output, the same exit code.
func TestShimAllows(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	for _, line := range []string{
		`status --porcelain -z`, `log --oneline`, `diff`, `diff --cached --stat`, `show HEAD:README.md`, `branch -a`, `tag -l`, `stash list`, `stash show -p`, `config --get user.name`, `config -l --local`,
		`worktree list`, `remote -v`, `reflog`, `rev-parse --show-toplevel`, `ls-files -z`, `apply --check /dev/null`, `commit --dry-run`, `push --dry-run origin main`, `clean -n`, `rm -n staged.txt`,
		`checkout nowhere`, `nosuchcommand`, `--version`, `help -a`, `commit -h`, `--html-path`, `for-each-ref`, `cat-file -p HEAD`, `blame README.md`, `grep -n package`, `--list-cmds=main,others`,
		`describe --tags`, `fsck`, `count-objects -v`, `check-ignore x.log`, `shortlog -s HEAD`, `notes list`, `submodule status`, `sparse-checkout list`, `merge-tree --write-tree HEAD feature`,
	} {
		want, wantOut := s.sh(f.Dir, s.real+" "+line)
		code, out := s.sh(f.Dir, "env -u GIT_EXEC_PATH git "+line)
		if code != want || out != wantOut || strings.Contains(out, "superqode: ") {
			t.Errorf("git %s: exit code %d, git's own %d:\n%.500s\ninstead of\n%.500s", line, code, want, out, wantOut)
		}
	}
}

// TestShimGitsOwnSteps: git runs itself while it carries out what is allowed; what
// would be refused by itself is a step then.
func TestShimGitsOwnSteps(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	sub := gittest.Repo(t)
	sub.Write("lib.go", "package lib\n")
	sub.Commit("lib")
	s := newShimmed(t, f, nil)
	for _, line := range []string{
		`git worktree add --detach "$TMPDIR/side"`, `git worktree add -b side "$TMPDIR/side2"`, `git worktree add "$TMPDIR/side3" feature`, `git fetch -q origin`, `git bisect start HEAD HEAD~1 && git bisect reset`,
		`git clone -q . "$TMPDIR/clone" && cd "$TMPDIR/clone" && git commit -q --allow-empty -m x && git reset -q --hard HEAD~1`,
		fmt.Sprintf(`git clone -q '%s' "$TMPDIR/super" && cd "$TMPDIR/super" && git submodule --quiet add '%s' lib && git submodule --quiet deinit -f lib && git submodule --quiet update --init`, sub.Dir, sub.Dir),
	} {
		if code, out := s.sh(f.Dir, "mkdir -p \"$TMPDIR\" && "+line); code != 0 || strings.Contains(out, "refused") {
			t.Errorf("%s: exit code %d: %s", line, code, out)
		}
	}
	// The other way round: a step is one of git's only where git takes it.
	for _, line := range []string{
		`git -c alias.worktree-add='!git reset --hard' worktree-add`, `GIT_DIR="$PWD/.git" git reset --hard`, `git -c core.editor='git reset --hard;' bisect terms; git reset --hard`,
		`git submodule foreach 'git reset --hard'; git reset --hard`,
	} {
		if code, out := s.sh(f.Dir, line); code != 3 || !strings.Contains(out, "refused") {
			t.Errorf("%s: exit code %d: %s", line, code, out)
		}
	}
}

// TestShimOtherRepositories: the policy holds for the session's repository, from
// wherever it is reached, and for no other one.
func TestShimOtherRepositories(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	other := gittest.Repo(t)
	other.Write("a.txt", "a\n")
	other.Commit("first")
	before := f.Fingerprint()
	for _, tt := range []struct {
		line   string
		denied bool
	}{
		{`git commit -q --allow-empty -m x && git reset -q --hard HEAD~1 && git branch b && git branch -D b && git stash list && git config a.b c`, false},
		{`echo y >a.txt && git stash -q && git stash pop -q && git checkout -- a.txt && git clean -fdq && git gc -q`, false},
		{`HOME=$TMPDIR GIT_CONFIG_GLOBAL=$TMPDIR/cfg git config --global a.b c`, false},
		{`git config --global a.b c`, true},
		{`GIT_CONFIG_GLOBAL= HOME= git config --system a.b c`, true},
		{`git push origin main`, true},
		{`git -C '` + f.Dir + `' commit --allow-empty -m x`, true},
		{`git --git-dir '` + f.Dir + `/.git' update-ref -d refs/heads/feature`, true},
		{`git --work-tree '` + f.Dir + `' checkout -f`, true},
		{`git -c core.worktree='` + f.Dir + `' checkout -f`, true},
		{`git config core.worktree '` + f.Dir + `' && git checkout -f`, true},
		{`git worktree list && git commit --allow-empty -m x`, true}, // core.worktree is still set
	} {
		code, out := s.sh(other.Dir, "mkdir -p \"$TMPDIR\" && "+tt.line)
		if denied := code == 3 && strings.Contains(out, "refused"); denied != tt.denied || !denied && code != 0 {
			t.Errorf("%s: exit code %d: %s", tt.line, code, out)
		}
	}
	gittest.Same(t, before, f.Fingerprint())
}

// TestShimBroken: without its state the shim denies what the default denies,
// wherever, and lets everything else through.
func TestShimBroken(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	before := f.Fingerprint()
	for name, spoil := range map[string]func() error{
		"deleted": func() error { return os.Remove(filepath.Join(s.dir, guard.SessionStateFile)) },
		"cut": func() error {
			return os.WriteFile(filepath.Join(s.dir, guard.SessionStateFile), []byte(`{"schema`), 0o600)
		},
		"a link": func() error { return os.Symlink("/dev/zero", filepath.Join(s.dir, guard.SessionStateFile)) },
	} {
		_ = os.Remove(filepath.Join(s.dir, guard.SessionStateFile)) // of the round before
		if name == "deleted" {
			s.must(s.st.Save(s.dir))
		}
		s.must(spoil())
		if code, out := s.sh(f.Dir, "git commit --allow-empty -m x"); code != 3 || !strings.Contains(out, "strictest rules") {
			t.Errorf("%s: commit: exit code %d: %s", name, code, out)
		}
		if code, out := s.sh(f.Dir, "git rev-parse --show-toplevel"); code != 0 || strings.TrimSpace(out) != f.Dir {
			t.Errorf("%s: rev-parse: exit code %d: %s", name, code, out)
		}
	}
	_ = os.Remove(filepath.Join(s.dir, guard.SessionStateFile)) // of the last round, which may have left none
	s.st.Git.Bin = "/no/longer/there/git"                       // git was upgraded to another place
	s.must(s.st.Save(s.dir))
	if code, out := s.sh(f.Dir, "git rev-parse --show-toplevel && git reset --hard"); code != 3 || !strings.Contains(out, f.Dir) {
		t.Errorf("git moved: exit code %d: %s", code, out)
	}
	gittest.Same(t, before, f.Fingerprint())
}

// TestShimWritesDown: a refused attempt is in the log without secrets, though
// nobody listens; what is not refused is not.
func TestShimWritesDown(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	s.sh(f.Dir, "git status; git push https://me:hunter2@example.com/x.git main; git -c http.extraHeader='Authorization: Basic c2VjcmV0' push; git stash")
	data, err := os.ReadFile(s.st.LogPath())
	s.must(err)
	list, bad := guard.ParseAttempts(data)
	if bad != 0 || len(list) != 3 || list[0].Operation != "push" || list[2].Operation != "stash.push" || list[0].Layer != guard.LayerShim || list[0].Process == 0 || string(list[0].Dir) != f.Dir {
		t.Errorf("%d bad lines: %s", bad, data)
	}
	if bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte("c2VjcmV0")) {
		t.Errorf("a secret is in the log: %s", data)
	}
}

// TestShimParallel: hundreds of gits at once, each answered.
func TestShimParallel(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := newShimmed(t, f, nil)
	code, out := s.sh(f.Dir, `for i in $(seq 150); do git commit --allow-empty -m x 2>/dev/null & git rev-parse HEAD & done; wait`)
	if n := strings.Count(out, strings.TrimSpace(f.Git("rev-parse", "HEAD"))); code != 0 || n != 150 {
		t.Errorf("exit code %d, %d answers", code, n)
	}
	data, err := os.ReadFile(s.st.LogPath())
	s.must(err)
	if list, bad := guard.ParseAttempts(data); len(list) != 150 || bad != 0 {
		t.Errorf("%d attempts, %d bad lines", len(list), bad)
	}
}
