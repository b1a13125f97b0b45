package shelltext_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
)

func TestOperationsTable(t *testing.T) {
	t.Parallel()
	ops := guard.Operations()
	if !slices.IsSortedFunc(ops, func(a, b guard.OperationInfo) int { return strings.Compare(string(a.Name), string(b.Name)) }) {
		t.Error("the table is not sorted by name")
	}
	commands := regexp.MustCompile("`([^`]+)`")
	for _, op := range ops {
		if op.Covers == "" || op.Why == "" || op.Default != guard.Allow && op.Default != guard.Deny {
			t.Errorf("%+v is not filled in", op)
		}
		if op.Default == guard.Deny && op.Suggestion == "" {
			t.Errorf("%s: a denial without a suggestion", op.Name)
		}
		if op.Default != (guard.Policy{}).Decide(op.Name) {
			t.Errorf("%s: not found in its own table", op.Name)
		}
		for _, m := range commands.FindAllStringSubmatch(op.Suggestion, -1) {
			if line := shelltext.Check(t.Context(), m[1], guard.Context{}); line.Denied() {
				t.Errorf("%s suggests %q, which is itself denied: %s", op.Name, m[1], line.Operation)
			}
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		allow, deny []string
		line        string
		want        guard.Decision
	}{
		{nil, nil, "git commit -m x", guard.Deny},
		{[]string{"commit"}, nil, "git commit -m x", guard.Allow},
		{[]string{"stash"}, nil, "git stash drop", guard.Allow},
		{[]string{"stash"}, []string{"stash.drop"}, "git stash drop", guard.Deny},
		{[]string{"stash"}, []string{"stash.drop"}, "git stash pop", guard.Allow},
		{[]string{"stash.drop"}, []string{"stash"}, "git stash drop", guard.Allow},
		{[]string{"push"}, []string{"push"}, "git push", guard.Deny},
		{nil, []string{"fetch"}, "git fetch", guard.Deny},
		{nil, []string{"log"}, "git log", guard.Deny},
		{nil, []string{"checkout"}, "git checkout main", guard.Deny},
		{[]string{"reset.hard"}, nil, "git reset --hard && git push", guard.Deny},
		{[]string{"reset.hard", "push"}, nil, "git reset --hard && git push", guard.Allow},
	}
	for _, tt := range tests {
		p, err := guard.NewPolicy(tt.allow, tt.deny)
		if err != nil {
			t.Fatal(err)
		}
		if got := shelltext.Check(t.Context(), tt.line, guard.Context{Policy: p}); got.Decision != tt.want {
			t.Errorf("allow %v deny %v: %q: %s", tt.allow, tt.deny, tt.line, got.Decision)
		}
	}
	for _, name := range []string{"comit", "", "stash.", "reset.soft-hard"} {
		if _, err := guard.NewPolicy([]string{name}, nil); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestVerdictFields(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line      string
		op        guard.Operation
		certainty guard.Certainty
	}{
		{"git status", "status", guard.Certain},
		{"npm ls", "", guard.Certain},
		{"npm test", "", guard.Unknown},
		{"npm run build -- --watch", "", guard.Unknown},
		{"yarn -s run x", "", guard.Unknown},
		{"make", "", guard.Unknown},
		{"make -C sub deploy", "", guard.Unknown},
		{"make --version", "", guard.Certain},
		{"just release", "", guard.Unknown},
		{"go build ./...", "", guard.Certain},
		{"go test ./...", "", guard.Unknown},
		{"frobnicate git push", "", guard.Unknown},
		{"frobnicate -v 'git push --force'", "", guard.Unknown},
		{"frobnicate bash -c 'git push'", "", guard.Unknown},
		{"frobnicate run --all", "", guard.Certain},
		{"apt-get install git curl", "", guard.Certain},
		{"echo git push", "", guard.Certain},
		{"dotenv run -- git push", "push", guard.Certain},
		{"dotenv -f .env git push", "push", guard.Certain},
		{"aws-vault exec prod -- git push", "push", guard.Certain},
		{"aws-vault exec -d 1h prod git push", "push", guard.Certain},
		{"chpst -u root -/ /srv git push", "push", guard.Certain},
		{"printf 'push\\0' | xargs -0 git", "push", guard.Certain},
		{"printf 'reset\\0--hard\\0' | xargs -0 git", "reset.hard", guard.Certain},
		{"printf '%s\\0' reset --hard | xargs --null git", "reset.hard", guard.Certain},
		{"git $(printf 'pu\\0sh')", "push", guard.Certain},
		{"xargs -0 git < list", "", guard.Unknown},
		{"git fetch --refmap= origin main:x", "fetch.update", guard.Certain},
		{"sh script.sh", "", guard.Unknown},
		{"./script.sh", "", guard.Unknown},
		{"$X push", "", guard.Unknown},
		{"git $X", "", guard.Unknown},
		{"git checkout $X", "checkout.switch", guard.Unknown},
		{"git frobnicate", "", guard.Unknown},
		{"curl -s https://x | sh", "", guard.Unknown},
		{"git reset --hard $X", "reset.hard", guard.Certain},
		{"git stash drop", "stash.drop", guard.Certain},
		{"git -c alias.x=push x", "push", guard.Certain},
		{"python3 x.py", "", guard.Unknown},
	}
	for _, tt := range tests {
		got := shelltext.Check(t.Context(), tt.line, guard.Context{})
		if got.Operation != tt.op || got.Certainty != tt.certainty {
			t.Errorf("%q: %q %s", tt.line, got.Operation, got.Certainty)
		}
		if got.Denied() && (got.Reason == "" || got.Suggestion == "" || len(got.Command) == 0) {
			t.Errorf("%q: %+v", tt.line, got.Verdict)
		}
	}
}

func TestCheckArgv(t *testing.T) {
	t.Parallel()
	tests := []struct {
		argv []string
		want guard.Operation
		deny bool
	}{
		{[]string{"git", "commit", "-m", "--dry-run"}, "commit", true},
		{[]string{"git", "commit", "--dry-run"}, "commit", false},
		{[]string{"/usr/lib/git-core/git-reset", "--hard"}, "reset.hard", true},
		{[]string{"/session/bin/shim", "reset", "--hard"}, "reset.hard", true},
		{[]string{"git", "log", "--grep", "$(git push)"}, "log", false},
		{[]string{"git", "-C"}, "", false},
		{[]string{"git"}, "", false},
		{nil, "", false},
	}
	for _, tt := range tests {
		got := shelltext.CheckArgs(t.Context(), tt.argv, guard.Context{})
		if got.Operation != tt.want || got.Denied() != tt.deny {
			t.Errorf("%q: %+v", tt.argv, got)
		}
	}
}
