package hooks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
)

// TestBrokenState: without its state the helper holds to the default policy in the
// repositories that lead to it, and lets everything else pass.
func TestBrokenState(t *testing.T) {
	t.Parallel()
	refused, allowed := []string{"reset --hard", "push -q --no-verify origin main:new"}, []string{"status --short", "switch -q -c new2"}
	allRefused := append([]string{"commit -qam x", "stash", "branch -D feature", "clean -fdx"}, refused...)
	allAllowed := append([]string{"diff", "add -A", "fetch -q", "branch new", "log --oneline", "worktree add -q ../w2"}, allowed...)
	for _, tt := range []struct {
		name             string
		spoil            func(file string) error
		refused, allowed []string
	}{
		{"gone", os.Remove, allRefused, allAllowed},
		{"empty", func(f string) error { return os.WriteFile(f, nil, 0o600) }, refused, allowed},
		{"cut", func(f string) error {
			return os.WriteFile(f, []byte(`{"schema_version":1,"allow_git_operations":true,`), 0o600)
		}, refused, allowed},
		{"other version", func(f string) error { return os.WriteFile(f, []byte(`{"schema_version":9}`), 0o600) }, refused, allowed},
		{"a folder", func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) }, refused, allowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			record := filepath.Join(f.Home, "record")
			installHooks(t, f.Path(".git/hooks"), recorder, "post-checkout", "reference-transaction")
			s := newSession(t, f, f.Dir, func(st *guard.SessionState) { st.Allow = []string{"commit"} })
			s.must(tt.spoil(filepath.Join(s.dir, guard.SessionStateFile)))
			git := realGit(t)
			hurt := damage(t, f)
			for _, line := range tt.refused {
				r := s.sh(f.Dir, git+" "+line, "RECORD="+record)
				if got := hurt(); !r.refused() || len(got) > 0 {
					t.Errorf("%s: exit code %d, %v\n%s", line, r.code, got, r.errOut)
				}
				if !strings.Contains(r.errOut, "the session's state is not there") {
					t.Errorf("%s: it does not say why: %s", line, r.errOut)
				}
			}
			for _, line := range tt.allowed {
				if r := s.sh(f.Dir, git+" "+line, "RECORD="+record); r.code != 0 {
					t.Errorf("%s: exit code %d\n%s", line, r.code, r.errOut)
				}
			}
			if text := read(t, record); !strings.Contains(text, "== post-checkout") || !strings.Contains(text, "arg <prepared>") {
				t.Errorf("the user's hooks did not run: %s", text)
			}
			if r := s.sh(s.dir, git+" init -q ../o && cd ../o && "+git+" commit -q --allow-empty -m x && "+git+" reset -q --hard"); r.code != 0 {
				t.Errorf("another repository: exit code %d\n%s", r.code, r.errOut)
			}
		})
	}
}

// TestOff: with the guard off everything passes and nothing is written down, even
// where the hooks of an earlier command are still in the environment.
func TestOff(t *testing.T) {
	t.Parallel()
	f := userRepo(t)
	s := newSession(t, f, f.Dir, nil)
	s.st.Off = true
	s.must(s.st.Save(s.dir))
	for _, line := range []string{"commit -qam x", "reset -q --hard HEAD~1", "stash -q; true", "branch -q -D feature"} {
		if r := s.sh(f.Dir, realGit(t)+" "+line); r.code != 0 || strings.Contains(r.errOut, "superqode") {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.errOut)
		}
	}
	if list := s.attempts(); len(list) > 0 {
		t.Error(list)
	}
}

// TestOnceOnly: a session's log has one line and the terminal one block for each
// command that is refused, with the git process as the one that was.
func TestOnceOnly(t *testing.T) {
	t.Parallel()
	f := userRepo(t)
	s := newSession(t, f, f.Dir, nil)
	lines := []string{"commit -qam x", "reset --hard", "stash", "branch -D feature", "branch -f feature main", "tag -f v1.0.0 HEAD", "push -q --no-verify origin main:new", "rebase -f HEAD~1", "update-ref -d refs/tags/v1.0.0", "worktree remove ../side"}
	for i, line := range lines {
		r := s.sh(f.Dir, realGit(t)+" "+line)
		if n := strings.Count(r.errOut, "superqode: refused"); n != 1 {
			t.Errorf("%s: %d blocks\n%s", line, n, r.errOut)
		}
		list := s.attempts()
		if len(list) != i+1 {
			t.Fatalf("%s: %d lines in the log\n%v", line, len(list), list)
		}
		a := list[i]
		if got := strings.Join(a.Command, " "); !strings.HasSuffix("git "+line, strings.TrimPrefix(got, "git ")) || a.Layer != guard.LayerHooks || a.Process == 0 || a.Operation == "" {
			t.Errorf("%s: %+v", line, a)
		}
	}
}
