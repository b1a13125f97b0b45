package hooks_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// recorder is a user's hook that writes down all that it is given. It starts no
// other program: it runs for each change of a ref.
const recorder = `#!/bin/sh
{
	printf '== %s in ' "${0##*/}"
	pwd
	for a; do echo "arg <$a>"; done
	export -p | while read -r line; do
		case "${line#export }" in
		GIT_DIR*|GIT_WORK_TREE*|GIT_INDEX_FILE*|GIT_PREFIX*|GIT_REFLOG_ACTION*|GIT_EDITOR*|GIT_AUTHOR_NAME*|GIT_EXEC_PATH*|GIT_PUSH_OPTION*) echo "$line" ;;
		esac
	done
	case "${0##*/}" in
	reference-transaction|pre-push|post-rewrite) while read -r line; do echo "in $line"; done ;;
	esac
} >> "$RECORD"
`

// hookNames are those that a test can make git call. post-index-change is not
// among them: with a file system monitor git writes the index more often.
var hookNames = strings.Fields(`pre-commit prepare-commit-msg commit-msg post-commit reference-transaction post-checkout post-rewrite post-merge
 pre-merge-commit pre-push pre-rebase applypatch-msg pre-applypatch post-applypatch pre-auto-gc`)

func installHooks(t *testing.T, dir, text string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// allowEverything lets the chain be seen without the guard in the way.
func allowEverything(st *guard.SessionState) {
	for _, op := range guard.Operations() {
		if op.Default == guard.Deny {
			st.Allow = append(st.Allow, string(op.Name))
		}
	}
}

// TestUserHooks: the user's hooks run as git alone would run them: the same ones in
// the same order, with the same arguments, input, directory and variables.
func TestUserHooks(t *testing.T) {
	t.Parallel()
	const found = `
GIT commit -qam one
cd src && GIT commit -q --allow-empty -m two && cd ..
GIT -C ../side switch -q -c other main && GIT -C ../side merge -q --no-ff --no-edit -s ours feature`
	const every = found + `
GIT commit -q --amend --allow-empty -m three
GIT switch -q -c new && GIT checkout -q --detach && GIT switch -q main
GIT -C ../side rebase -q -f HEAD~1
GIT format-patch -q -1 --stdout feature | GIT -C ../side am -q
GIT push -q --dry-run origin main:new 2>/dev/null
GIT branch -D new >/dev/null; GIT pack-refs --all; GIT fetch -q
GIT worktree add -q ../w2
GIT stash -q`
	for _, tt := range []struct {
		name, hooksPath, dir, lines string
		least                       int
	}{
		{"default", "", ".git/hooks", every, 40},
		{"relative", ".husky/_", ".husky/_", found, 8},
		{"absolute", "ABS", "../my hooks", found, 16},
		{"home", "~/hooks", "HOME/hooks", found, 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var records []string
			for _, guarded := range []bool{false, true} {
				f := userRepo(t)
				record := filepath.Join(f.Home, "record")
				dir := filepath.Join(f.Dir, tt.dir)
				if rest, ok := strings.CutPrefix(tt.dir, "HOME"); ok {
					dir = f.Home + rest
				}
				path := strings.Replace(tt.hooksPath, "ABS", dir, 1)
				if path != "" {
					f.Git("config", "core.hooksPath", path)
				}
				installHooks(t, dir, recorder, hookNames...)
				env := append(f.Env("RECORD="+record, "GIT_EDITOR=:", "GIT_AUTHOR_DATE=2024-02-03T04:05:06Z", "GIT_COMMITTER_DATE=2024-02-03T04:05:06Z"), "PATH="+os.Getenv("PATH"))
				if guarded {
					s := newSession(t, f, f.Dir, func(st *guard.SessionState) { allowEverything(st); st.HooksPath = hostPath(path) })
					env = append(env, hooks.Env(s.st, filepath.Join(s.dir, "hooks"))...)
				}
				cmd := exec.Command("sh", "-c", shellLine(t, tt.lines))
				cmd.Dir, cmd.Env = f.Dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("guarded %t: %v\n%s", guarded, err, out)
				}
				text := strings.NewReplacer(filepath.Dir(f.Dir), "TOP", f.Home, "HOME").Replace(read(t, record))
				records = append(records, text)
			}
			if n := strings.Count(records[0], "=="); n < tt.least {
				t.Errorf("only %d hooks ran:\n%s", n, records[0])
			}
			if d := cmp.Diff(records[0], records[1]); d != "" {
				t.Errorf("the hooks see something else (-without +with):\n%s", d)
			}
		})
	}
}

func hostPath(s string) superqode.HostPath { return superqode.HostPath(s) }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestUserHookKinds: what git does with hooks of every kind.
func TestUserHookKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		code       int
		err        string
	}{
		{"passes", "#!/bin/sh\nexit 0\n", 0o755, 0, ""},
		{"fails", "#!/bin/sh\necho no >&2\nexit 7\n", 0o755, 1, "no\n"},
		{"not executable", "#!/bin/sh\nexit 1\n", 0o644, 0, ""},
		{"no first line", "echo no >&2; exit 1\n", 0o755, 1, "no\n"},
		{"empty", "", 0o755, 0, ""},
		{"interpreter gone", "#!/no/such/shell\n", 0o755, 1, ""},
		{"killed", "#!/bin/sh\nkill -9 $$\n", 0o755, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, hook := range []string{"pre-commit", "reference-transaction"} {
				f := userRepo(t)
				path := filepath.Join(f.Dir, ".git/hooks", hook)
				if err := errors.Join(os.WriteFile(path, []byte(tt.text), tt.mode), os.Chmod(path, tt.mode)); err != nil {
					t.Fatal(err)
				}
				s := newSession(t, f, f.Dir, allowEverything)
				r := s.run(f.Dir, []string{realGit(t), "commit", "-qam", "x"})
				want := tt.code
				if hook == "reference-transaction" && want != 0 {
					want = 128
				}
				if r.code != want || !strings.Contains(r.errOut, tt.err) {
					t.Errorf("%s %s: exit code %d, want %d\n%s", hook, tt.name, r.code, want, r.errOut)
				}
			}
		})
	}
}

// TestUserHookLater: a hook that comes into being while the session runs is
// honoured, as husky's are; so is one that goes.
func TestUserHookLater(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	f.Git("config", "core.hooksPath", ".husky/_")
	s := newSession(t, f, f.Dir, func(st *guard.SessionState) { st.Allow = []string{"commit"}; st.HooksPath = ".husky/_" })
	git := realGit(t)
	if r := s.run(f.Dir, []string{git, "commit", "--allow-empty", "-qm", "x"}); r.code != 0 {
		t.Fatalf("%d %s", r.code, r.errOut)
	}
	installHooks(t, filepath.Join(f.Dir, ".husky/_"), "#!/bin/sh\nexit 1\n", "pre-commit")
	if r := s.run(f.Dir, []string{git, "commit", "--allow-empty", "-qm", "x"}); r.code != 1 {
		t.Errorf("the new hook did not run: %d %s", r.code, r.errOut)
	}
	if r := s.run(f.Dir, []string{git, "commit", "--allow-empty", "-qm", "x", "--no-verify"}); r.code != 0 {
		t.Errorf("--no-verify ran it: %d %s", r.code, r.errOut)
	}
	if err := os.RemoveAll(filepath.Join(f.Dir, ".husky")); err != nil {
		t.Fatal(err)
	}
	if r := s.run(f.Dir, []string{git, "commit", "--allow-empty", "-qm", "x"}); r.code != 0 {
		t.Errorf("%d %s", r.code, r.errOut)
	}
}

// TestRefusedBeforeUserHooks: nothing of the user's runs for a command that is
// refused by its index, and the session's own folder is never taken for the
// user's.
func TestRefusedBeforeUserHooks(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	record := filepath.Join(f.Home, "record")
	installHooks(t, f.Path(".git/hooks"), recorder, hookNames...)
	s := newSession(t, f, f.Dir, nil)
	if r := s.run(f.Dir, []string{realGit(t), "commit", "-qam", "x"}, "RECORD="+record); !r.refused() {
		t.Errorf("not refused: %s", r.errOut)
	}
	if _, err := os.Lstat(record); err == nil {
		t.Error(read(t, record))
	}
	s.st.Allow, s.st.HooksPath = []string{"commit"}, superqode.HostPath(filepath.Join(s.dir, "hooks"))
	s.must(s.st.Save(s.dir))
	if r := s.run(f.Dir, []string{realGit(t), "commit", "-q", "--allow-empty", "-m", "x"}, "RECORD="+record); r.code != 0 {
		t.Errorf("exit code %d\n%s", r.code, r.errOut)
	}
}

// TestLinks: only those hooks cost anything that the guard or the user has, and a
// folder that is filled again is right again.
func TestLinks(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t) // it has a pre-commit
	s := newSession(t, f, f.Dir, nil)
	list := func() string {
		entries, err := os.ReadDir(filepath.Join(s.dir, "hooks"))
		s.must(err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	fill := func() string {
		s.must(hooks.Populate(t.Context(), s.st, hooks.Folder{Dir: filepath.Join(s.dir, "hooks"), Helper: filepath.Join(s.dir, "bin", helperName), Config: userConfig(t, f)}))
		return strings.ReplaceAll(list(), " guard ", " ")
	}
	const own = "config config.core config.push fsmonitor pre-commit pre-push pre-rebase prepare-commit-msg receive-pack reference-transaction"
	if got := fill(); got != own {
		t.Errorf("%s", got)
	}
	installHooks(t, f.Path(".git/hooks"), "#!/bin/sh\n", "reference-transaction", "post-commit", "push-to-checkout", "nonsense")
	if got := fill(); !strings.Contains(got, "post-commit") || !strings.Contains(got, "push-to-checkout") || strings.Contains(got, "nonsense") {
		t.Errorf("%s", got)
	}
	if _, err := os.Readlink(filepath.Join(s.dir, "hooks/reference-transaction")); err != nil {
		t.Error(err)
	}
	s.st.HooksPath = ".husky/_"
	if got := fill(); !strings.Contains(got, "post-rewrite") || strings.Contains(got, "push-to-checkout") {
		t.Errorf("%s", got)
	}
	s.st.HooksPath = ""
	for _, n := range []string{"reference-transaction", "post-commit", "push-to-checkout"} {
		s.must(os.Remove(f.Path(".git/hooks/" + n)))
	}
	if got := fill(); got != own {
		t.Errorf("%s", got)
	}
}
