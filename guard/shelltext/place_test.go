package shelltext_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestOtherRepositories: with the guarded repository named, commands that act on
// another one pass; those that send something away, or name the guarded one in
// another way, do not.
func TestOtherRepositories(t *testing.T) {
	t.Parallel()
	dir, in := dirty(t)
	other := gittest.Repo(t)
	other.Write("a.txt", "x\n")
	other.Commit("first")
	side := filepath.Join(t.TempDir(), "side")
	common, ok := in.Resolver.Repository(t.Context(), guard.At{Dir: dir})
	if !ok {
		t.Fatal("no repository")
	}
	in.Guarded = common
	tests := []struct {
		line string
		want guard.Decision
	}{
		{"git commit -m x", guard.Deny},
		{"git -C " + other.Dir + " commit -m x", guard.Allow},
		{"cd " + other.Dir + " && git reset --hard && git clean -fd", guard.Allow},
		{"cd " + other.Dir + " && cd - && git stash", guard.Deny},
		{"git -C " + other.Dir + " push", guard.Deny},
		{"git -C " + other.Dir + " config --global a.b c", guard.Deny},
		{"rm -rf " + other.Dir + "/.git", guard.Allow},
		{"rm -rf " + dir + "/.git", guard.Deny},
		{"cd / && rm -rf " + dir + "/.git", guard.Deny},
		{"cd " + other.Dir + " && git --git-dir=" + dir + "/.git reset --soft HEAD~1", guard.Deny},
		{"cd " + other.Dir + " && git --work-tree=" + dir + " checkout -f", guard.Deny},
		{"cd " + other.Dir + " && git -c core.worktree=" + dir + " checkout -f", guard.Deny},
		{"git -C /nowhere/at/all commit -m x", guard.Deny},
		{"git worktree add --detach " + side + " && cd " + side + " && git commit -m x", guard.Deny},
		{"mkdir fresh && cd fresh && git init -q && git commit --allow-empty -m x", guard.Allow},
		{"mkdir fresh && cd fresh && git init -q && cd .. && git commit --allow-empty -m x", guard.Deny},
		{"git init && git commit -m x", guard.Deny},
		{"git init " + dir, guard.Deny},
		{"git clone -q . /tmp/clone-of-it && cd /tmp/clone-of-it && git push", guard.Deny},
	}
	for _, tt := range tests {
		if got := shelltext.Check(t.Context(), tt.line, in); got.Decision != tt.want {
			t.Errorf("%q: %s %s %v", tt.line, got.Decision, got.Reason, got.Steps)
		}
	}
}

// TestResolverDecides: what the words leave open is asked of git.
func TestResolverDecides(t *testing.T) {
	t.Parallel()
	dir, in := dirty(t)
	cfg := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(cfg, []byte("[alias]\n\tundo = reset --hard\n\tst = status\n\tshove = !git push\n[help]\n\tautocorrect = immediate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "both"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		line string
		want guard.Operation
		deny bool
	}{
		{"git checkout both", "checkout.discard", true},
		{"git checkout dir", "checkout.discard", true},
		{"git checkout feature", "checkout.switch", false},
		{"git checkout v1", "checkout.switch", false},
		{"git checkout -B brand-new", "checkout.switch", false},
		{"git checkout -B feature", "checkout.reset-branch", true},
		{"git switch -C brand-new", "switch", false},
		{"git reset dir", "reset", false},
		{"git reset feature", "reset.commit", true},
		{"git fetch origin pull/1/head:pr-1", "fetch", false},
		{"git fetch origin main:feature", "fetch.update", true},
		{"GIT_CONFIG_GLOBAL=" + cfg + " git undo", "reset.hard", true},
		{"GIT_CONFIG_GLOBAL=" + cfg + " git st", "status", false},
		{"GIT_CONFIG_GLOBAL=" + cfg + " git shove", "push", true},
		{"GIT_CONFIG_GLOBAL=" + cfg + " git comit -m x", "commit", true},
		{"git -c include.path=" + cfg + " undo", "reset.hard", true},
		{"git diff --output=a.txt", "output.overwrite", true},
		{"git diff --output=not-there.txt", "diff", false},
	}
	for _, tt := range tests {
		if got := shelltext.Check(t.Context(), tt.line, in); got.Operation != tt.want || got.Denied() != tt.deny {
			t.Errorf("%q: %s %s %v", tt.line, got.Decision, got.Operation, got.Steps)
		}
	}
}
