package revert_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/revert"
)

func capture(t *testing.T, f *gittest.Fixture, indexCopy string) *revert.RepoState {
	t.Helper()
	g, err := git.Find(t.Context(), f.Env())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := g.Discover(t.Context(), f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := revert.Capture(repo, indexCopy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompareSeesEveryChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*gittest.Fixture)
		want []string // what differs; none: nothing may
	}{
		"nothing":           {func(*gittest.Fixture) {}, nil},
		"status":            {func(f *gittest.Fixture) { f.Git("status") }, nil},
		"refreshed index":   {func(f *gittest.Fixture) { touch(f, "README.md"); _, _ = f.Try(f.Dir, "update-index", "--refresh") }, nil},
		"packed refs":       {func(f *gittest.Fixture) { f.Git("pack-refs", "--all") }, nil},
		"another worktree":  {func(f *gittest.Fixture) { f.Git("worktree", "add", "-q", "--detach", f.Home+"/wt") }, nil},
		"fetch":             {func(f *gittest.Fixture) { f.Git("fetch", "-q", ".") }, nil},
		"branch":            {func(f *gittest.Fixture) { f.Git("branch", "fresh") }, []string{"ref refs/heads/fresh"}},
		"branch deleted":    {func(f *gittest.Fixture) { f.Git("branch", "-D", "feature") }, []string{"ref refs/heads/feature"}},
		"packed then moved": {func(f *gittest.Fixture) { f.Git("pack-refs", "--all"); f.Git("branch", "-f", "feature", "HEAD~1") }, []string{"ref refs/heads/feature"}},
		"tag":               {func(f *gittest.Fixture) { f.Git("tag", "fresh") }, []string{"ref refs/tags/fresh"}},
		"commit":            {func(f *gittest.Fixture) { f.Git("commit", "-q", "--no-verify", "-m", "x") }, []string{"ref refs/heads/main"}},
		"checkout":          {func(f *gittest.Fixture) { f.Git("symbolic-ref", "HEAD", "refs/heads/feature") }, []string{"HEAD"}},
		"staged":            {func(f *gittest.Fixture) { f.Write("staged-now", "x"); f.Git("add", "staged-now") }, []string{"index"}},
		"index deleted":     {func(f *gittest.Fixture) { f.Remove(".git/index") }, []string{"index"}},
		"index garbage":     {func(f *gittest.Fixture) { f.Write(".git/index", "garbage") }, []string{"index"}},
		"config":            {func(f *gittest.Fixture) { f.Git("config", "alias.x", "status") }, []string{"config"}},
		"hook":              {func(f *gittest.Fixture) { f.WriteMode(".git/hooks/post-commit", "#!/bin/sh\n", 0o755) }, []string{"hooks/post-commit"}},
		"hook mode":         {func(f *gittest.Fixture) { _ = os.Chmod(f.Path(".git/hooks/pre-commit"), 0o644) }, []string{"hooks/pre-commit"}},
		"exclude":           {func(f *gittest.Fixture) { f.Write(".git/info/exclude", "x\n") }, []string{"info/exclude"}},
		"stash dropped":     {func(f *gittest.Fixture) { f.Git("stash", "drop", "-q") }, []string{"logs/refs/stash", "stash"}},
		"merge":             {func(f *gittest.Fixture) { f.Write(".git/MERGE_HEAD", strings.Repeat("0", 40)+"\n") }, []string{"MERGE_HEAD"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			before := capture(t, f, filepath.Join(t.TempDir(), "index"))
			saved := filepath.Join(t.TempDir(), "state.json")
			if err := before.Save(saved, atomicfile.Durable); err != nil {
				t.Fatal(err)
			}
			c.do(f)
			loaded, err := revert.LoadState(saved)
			if err != nil {
				t.Fatal(err)
			}
			diffs, err := loaded.Compare(capture(t, f, ""))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range diffs {
				got = append(got, d.What)
				if d.String() == "" || !strings.HasPrefix(d.String(), d.What) {
					t.Errorf("difference prints as %q", d)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("differs in %q, want %q", got, c.want)
			}
		})
	}
}

func touch(f *gittest.Fixture, rel string) {
	_ = os.Chtimes(f.Path(rel), time.Now(), time.Unix(1_000_000, 0))
}

func TestLoadStateBroken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if _, err := revert.LoadState(path); err == nil {
		t.Error("a missing state was loaded")
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := revert.LoadState(path); err == nil {
		t.Error("half a state was loaded")
	}
}
