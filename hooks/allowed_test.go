package hooks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// stateOf tells what a line may change: HEAD, refs, index and files of every work
// tree beside f.
func stateOf(t *testing.T, f *gittest.Fixture) map[string]string {
	t.Helper()
	state := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(f.Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		dir := filepath.Join(filepath.Dir(f.Dir), e.Name())
		if !e.IsDir() {
			state[e.Name()] = "file"
			continue
		}
		questions := [][]string{{"for-each-ref"}, {"-c", "core.fsmonitor=", "status", "--porcelain=v2", "-b", "-uall"}, {"ls-files", "-s"}}
		if git, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || git.IsDir() { // no linked worktree, which shares them
			questions = append(questions, []string{"stash", "list"}, []string{"worktree", "list", "--porcelain"})
		}
		for _, args := range questions {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = dir, f.Env("GIT_OPTIONAL_LOCKS=0")
			out, _ := cmd.Output() // "no" is an answer, too
			state[e.Name()+" "+strings.Join(args, " ")] = strings.ReplaceAll(string(out), filepath.Dir(f.Dir), "TOP")
		}
		for name, facts := range gittest.Fingerprint(t, dir) {
			if !strings.HasPrefix(name, ".git/") && name != ".git" && !strings.HasPrefix(name, "COMMON/") && e.Name() != "bare.git" && e.Name() != "out" {
				state[e.Name()+"/"+name] = facts
			}
		}
	}
	return state
}

// TestAllowed: what the guard allows does the same as without it, and leaves no
// word behind.
func TestAllowed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "allowed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		t.Run(fmt.Sprintf("line %d", i+1), func(t *testing.T) {
			t.Parallel()
			sameAsWithout(t, shellLine(t, line), nil)
		})
	}
}

// sameAsWithout runs a line in two copies of a fixture, with a session's hooks and
// without, and compares everything.
func sameAsWithout(t *testing.T, line string, change func(*guard.SessionState)) {
	t.Helper()
	plain := userRepo(t)
	cmd := exec.Command("sh", "-c", line)
	dates := []string{"GIT_AUTHOR_DATE=2024-02-03T04:05:06Z", "GIT_COMMITTER_DATE=2024-02-03T04:05:06Z", "GIT_EDITOR=:"}
	cmd.Dir, cmd.Env = plain.Dir, plain.Env(dates...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	f := userRepo(t)
	s := newSession(t, f, f.Dir, change)
	r := s.sh(f.Dir, line, dates...)
	norm := func(f *gittest.Fixture, text string) string {
		return strings.NewReplacer(filepath.Dir(f.Dir), "TOP", f.Home, "HOME").Replace(text)
	}
	t.Log(line)
	if r.code != cmd.ProcessState.ExitCode() || strings.Contains(r.errOut, "superqode") {
		t.Errorf("exit code %d, without the hooks %d\n%s", r.code, cmd.ProcessState.ExitCode(), r.errOut)
	}
	if d := cmp.Diff(norm(plain, string(out)), norm(f, r.out)); d != "" {
		t.Errorf("it prints something else (-without +with):\n%s", d)
	}
	want, got := stateOf(t, plain), stateOf(t, f)
	for k, v := range want {
		want[k] = norm(plain, v)
	}
	for k, v := range got {
		got[k] = norm(f, v)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("it does something else (-without +with):\n%s", d)
	}
	if list := s.attempts(); len(list) > 0 {
		t.Errorf("refused: %v", list)
	}
}

// TestAllowedByConfiguration: an operation that the configuration allows works
// with all that git does for it.
func TestAllowedByConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ allow, line string }{
		{"commit", "GIT commit -qam x"},
		{"commit", "cd ../side && GIT commit -q --allow-empty -m x && GIT commit -q --amend -m y --no-verify"},
		{"merge", "cd ../side && GIT reset -q && GIT merge -q --no-edit main"},
		{"merge", "cd ../side && GIT switch -q -c other main && GIT merge -q --ff-only feature && GIT merge -q -s ours --no-edit main"},
		{"rebase", "cd ../side && GIT rebase -q -f HEAD~1"},
		{"rebase", "cd ../side && GIT rebase -q --rebase-merges -f HEAD~1"},
		{"rebase", "cd ../side && echo x >> README.md && GIT rebase -q --autostash -f HEAD~1"},
		{"rebase", "cd ../side && GIT rebase -q --apply -f HEAD~1"},
		{"cherry-pick", "cd ../side && GIT cherry-pick --allow-empty --keep-redundant-commits main -n; true"},
		{"revert", "cd ../side && GIT revert --no-edit HEAD >/dev/null"},
		{"am", "cd ../side && GIT switch -q -c n main && GIT format-patch -q -1 --stdout feature | GIT am -q"},
		{"pull", "cd ../side && GIT pull -q --no-rebase --no-edit . main"},
		{"pull", "cd ../side && GIT switch -q -c n HEAD~1 && GIT pull -q --rebase . feature"},
		{"stash", "GIT stash -q && GIT stash pop -q && GIT stash -q -u && GIT stash apply -q"},
		{"stash", "cd ../side && GIT stash branch -q new stash@{0}; GIT stash drop -q; true"},
		{"reset", "GIT reset -q --hard && GIT reset -q --soft HEAD~1"},
		{"clean", "GIT clean -fdxq"},
		{"checkout", "GIT checkout -q -- . && GIT checkout -qf feature"},
		{"branch", "GIT branch -D feature; GIT branch -m main trunk"},
		{"branch.force", "GIT branch -f feature main"},
		{"tag", "GIT tag -f v1.0.0 HEAD >/dev/null; GIT tag -d v1.0.0 >/dev/null"},
		{"update-ref", "GIT update-ref -d refs/heads/feature"},
		{"fetch.update", "GIT fetch -q . +main:feature"},
		{"gc", "GIT gc -q"},
		{"filter-branch", "cd ../side && FILTER_BRANCH_SQUELCH_WARNING=1 GIT filter-branch -f --msg-filter 'sed s/^/x/' HEAD~1..HEAD >/dev/null"},
		{"worktree", "GIT worktree remove ../side"},
		{"notes", "GIT notes add -m n"},
		{"push", "GIT push -q origin main:new"},
	} {
		t.Run(tt.allow, func(t *testing.T) {
			t.Parallel()
			sameAsWithout(t, shellLine(t, tt.line), func(st *guard.SessionState) { st.Allow = []string{tt.allow} })
		})
	}
}
