package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// FuzzParseUpdates: whatever git would send, nothing that is a line of three words
// is lost, and nothing else counts.
func FuzzParseUpdates(f *testing.F) {
	f.Add([]byte("0000 1111 refs/heads/main\n"))
	f.Add([]byte("0000 ref:refs/heads/x HEAD\n1 2 refs/heads/with space\n"))
	f.Add([]byte("\n \n  \nx y\nx y \n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		list := parseUpdates(input)
		want := 0
		for line := range bytes.Lines(input) {
			if w := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 3); len(w) == 3 && w[2] != "" {
				want++
			}
		}
		if len(list) != want {
			t.Errorf("%d updates of %d in %q", len(list), want, input)
		}
		for _, u := range list {
			if !bytes.Contains(input, []byte(u.old+" "+u.new+" "+u.ref)) {
				t.Errorf("%+v is not in %q", u, input)
			}
			if u.idle() && isZero(u.new) {
				t.Errorf("%+v deletes a ref and counts as idle", u)
			}
		}
	})
}

// testAnswer is an answer in a fixture's repository, with a broken session state:
// the default policy, and no log.
func testAnswer(f *gittest.Fixture, errOut *bytes.Buffer) *answer {
	a := &answer{Call: Call{Dir: f.Dir, Env: f.Env(), Err: errOut}, broken: errors.New("gone in a test")}
	a.repo = guard.FindRepository(f.Dir, nil, "", "")
	return a
}

// TestRefValue: the values of refs are those that git tells, packed or not.
func TestRefValue(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	f.Git("branch", "feature-2")
	f.Git("branch", "deep/er/name")
	f.Git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
	for i := range 20 {
		f.Git("update-ref", fmt.Sprintf("refs/many/%d", i), "HEAD")
	}
	for range 2 {
		r := &refReader{a: testAnswer(f, new(bytes.Buffer))}
		for line := range strings.Lines(f.Git("for-each-ref", "--format=%(refname) %(symref) %(objectname)") + "\n") {
			w := strings.Split(strings.TrimSuffix(line, "\n"), " ")
			want := w[2]
			if w[1] != "" {
				want = "ref:" + w[1]
			}
			if got, ok := r.value(t.Context(), w[0]); !ok || got != want {
				t.Errorf("%s is %q, %t, not %q", w[0], got, ok, want)
			}
		}
		for _, none := range []string{"refs/heads/feat", "refs/heads/feature-", "refs/heads/eature", "refs/heads", "refs/heads/nothing", "heads/main"} {
			if got, ok := r.value(t.Context(), none); !ok || !isZero(got) {
				t.Errorf("%s is %q, %t", none, got, ok)
			}
		}
		for _, odd := range []string{"refs/../HEAD", "/etc/passwd"} {
			if got, ok := r.value(t.Context(), odd); ok {
				t.Errorf("%s is %q", odd, got)
			}
		}
		f.Git("pack-refs", "--all")
	}
}

// TestRefsAlone: where the system does not tell which command moves refs, they are
// judged by themselves.
func TestRefsAlone(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	zero, head, feature, tag := zeroID, f.Git("rev-parse", "main"), f.Git("rev-parse", "feature"), f.Git("rev-parse", "v1.0.0")
	for _, tt := range []struct {
		name  string
		lines []update
		want  guard.Operation
	}{
		{"nothing", nil, ""},
		{"new branch", []update{{zero, head, "refs/heads/new"}}, ""},
		{"new branch, checked out", []update{{zero, head, "refs/heads/new"}, {zero, "ref:refs/heads/new", "HEAD"}}, ""},
		{"new tag", []update{{zero, head, "refs/tags/new"}}, ""},
		{"detach", []update{{zero, feature, "HEAD"}}, ""},
		{"remote", []update{{head, feature, "refs/remotes/origin/main"}, {head, zero, "refs/remotes/origin/x"}}, ""},
		{"bisect", []update{{zero, head, "refs/bisect/bad"}}, ""},
		{"delete what is not there", []update{{zero, zero, "refs/heads/nothing"}}, ""},
		{"same value by force", []update{{zero, feature, "refs/heads/feature"}}, ""},
		{"commit", []update{{head, feature, "HEAD"}, {head, feature, "refs/heads/main"}}, "commit"},
		{"move", []update{{feature, head, "refs/heads/feature"}}, "branch.force"},
		{"move by force", []update{{zero, head, "refs/heads/feature"}}, "branch.force"},
		{"delete", []update{{feature, zero, "refs/heads/feature"}}, "branch.delete"},
		{"delete by force", []update{{zero, zero, "refs/heads/feature"}}, "branch.delete"},
		{"make it symbolic", []update{{feature, "ref:refs/heads/main", "refs/heads/feature"}}, "branch.force"},
		{"tag", []update{{tag, head, "refs/tags/v1.0.0"}}, "tag.force"},
		{"tag gone", []update{{zero, zero, "refs/tags/v1.0.0"}}, "tag.delete"},
		{"stash", []update{{zero, head, "refs/stash"}}, "stash.push"},
		{"stash gone", []update{{zero, zero, "refs/stash"}}, "stash.drop"},
		{"notes", []update{{zero, head, "refs/notes/commits"}}, "notes.write"},
		{"replace", []update{{zero, head, "refs/replace/" + head}}, "replace.write"},
		{"the last of many", []update{{zero, head, "refs/heads/new"}, {zero, head, "refs/tags/new"}, {zero, head, "refs/heads/feature"}}, "branch.force"},
		{"outside", []update{{zero, head, "refs/../../x"}}, "update-ref"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var errOut bytes.Buffer
			a := testAnswer(f, &errOut)
			code := a.refuseRefs(context.Background(), tt.lines, subject{verdict: guard.Verdict{Command: []string{"git"}}})
			if (code != 0) != (tt.want != "") || tt.want != "" && !strings.Contains(errOut.String(), "(operation "+string(tt.want)+")") {
				t.Errorf("exit code %d\n%s", code, &errOut)
			}
			a.policy, _ = guard.NewPolicy([]string{"commit", "branch", "tag", "stash", "notes", "replace", "update-ref"}, nil)
			if code := a.refuseRefs(context.Background(), tt.lines, subject{}); code != 0 {
				t.Errorf("refused although the configuration allows it: %s", &errOut)
			}
		})
	}
}

// TestStripPlace: what is left of a command line when git has gone where it was
// told to go.
func TestStripPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"git status", "git status"},
		{"/usr/bin/git -C a -C b reset --hard", "git reset --hard"},
		{"git --git-dir=x --work-tree y --bare reset -C z", "git reset -C z"},
		{"git --git-dir x commit", "git commit"},
		{"git -c a.b=c --config-env=x.y=Z --config-env q.r=S -p --no-pager log", "git -c a.b=c --config-env=x.y=Z --config-env q.r=S -p --no-pager log"},
		{"git-reset --hard", "git reset --hard"},
		{"/usr/lib/git-core/git-commit -m x", "git commit -m x"},
		{"harmless -C x commit", "git commit"},
		{"git-nonsense commit", "git commit"},
		{"git", "git"},
		{"git -C", "git"},
		{"git -c", "git -c"},
		{"git --namespace=n --super-prefix=s push", "git push"},
	} {
		if got := strings.Join(stripPlace(gitArgs(strings.Fields(tt.in))), " "); got != tt.want {
			t.Errorf("%s: %q, not %q", tt.in, got, tt.want)
		}
	}
}
