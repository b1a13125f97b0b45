package shelltext_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// corpusLine is one line of a corpus: text in C escapes, expected, the effect
// that it had, what must be known to decide on it ("": the words are enough;
// "dir": that it runs in /srv/orc/repo; "git": the repository).
type corpusLine struct {
	number                int
	text, expected, needs string
}

func readCorpus(t testing.TB, name string) []corpusLine {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []corpusLine
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		cols := strings.Split(sc.Text(), "\t")
		if n == 1 && strings.HasPrefix(cols[0], "# command") || sc.Text() == "" {
			continue
		}
		if len(cols) < 2 || cols[1] != "allow" && cols[1] != "block" {
			t.Fatalf("%s:%d: want a command, allow or block", name, n)
		}
		l := corpusLine{number: n, text: unescapeC(cols[0]), expected: cols[1]}
		if len(cols) > 3 {
			l.needs = cols[3]
		}
		out = append(out, l)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func unescapeC(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
}

// dirty is the kind of repository in which the corpus was measured.
func dirty(t testing.TB) (dir string, in guard.Context) {
	t.Helper()
	f := gittest.Repo(t)
	for _, name := range []string{"a.txt", "b.txt", "c.txt", "file.txt", "foo.txt", "README.md", "src/app.ts", "src/main.go", "dir/x.txt", "package.json", "Makefile", "paths.txt"} {
		f.Write(name, "v1 "+name+"\nl2\nl3\n")
	}
	f.Write(".gitignore", "*.log\n")
	f.Commit("first")
	f.Git("branch", "feature")
	f.Git("branch", "old-branch")
	f.Git("branch", "merged-branch")
	f.Git("tag", "v1")
	f.Git("worktree", "add", "-q", "../other-worktree", "old-branch")
	f.Write("a.txt", "changed\n")
	f.Write("untracked.txt", "new\n")
	f.Write("ignored.log", "log\n")
	g, err := git.Find(t.Context(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return f.Dir, guard.Context{Dir: f.Dir, Resolver: guard.NewGitResolver(g.Bin, os.Environ())}
}

func runCorpus(t *testing.T, name string, in guard.Context) {
	t.Helper()
	right, lines := 0, readCorpus(t, name)
	for _, l := range lines {
		if l.needs == "git" && in.Resolver == nil || l.needs == "dir" && in.Dir != corpusDir {
			continue
		}
		if reason, ok := mislabelled[l.text]; ok {
			t.Logf("%s:%d: not held to its label: %s", name, l.number, reason)
			continue
		}
		got := shelltext.Check(context.Background(), l.text, in)
		want := map[string]guard.Decision{"allow": guard.Allow, "block": guard.Deny}[l.expected]
		if got.Decision != want {
			t.Errorf("%s:%d: %q: got %s %s (%s), want %s\n  %v", name, l.number, l.text, got.Decision, got.Operation, got.Reason, want, got.Steps)
			continue
		}
		right++
	}
	t.Logf("%s: %d of %d", name, right, len(lines))
}

// mislabelled are lines whose label contradicts the policy; the law is the
// policy ("everything read-only: allow").
var mislabelled = map[string]string{
	"git merge-base main feature": "merge-base only prints a commit id; its row has no measured effect",
}

// corpusDir is where the lines of the corpora were run.
const corpusDir = "/srv/orc/repo"

func TestCorpus(t *testing.T) {
	t.Parallel()
	_, in := dirty(t)
	for _, name := range []string{"corpus-dev.tsv", "corpus-own.tsv", "corpus-own2.tsv", "corpus-own3.tsv", "corpus-own4.tsv", "corpus-harmless.tsv"} {
		t.Run(name+"/words alone", func(t *testing.T) {
			t.Parallel()
			runCorpus(t, name, guard.Context{})
		})
		t.Run(name+"/directory known", func(t *testing.T) {
			t.Parallel()
			runCorpus(t, name, guard.Context{Dir: corpusDir})
		})
		t.Run(name+"/asking git", func(t *testing.T) {
			t.Parallel()
			runCorpus(t, name, in)
		})
	}
}

// Lines are checked at once by programs that use this package, and each is read by itself.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 200 {
				word := strings.Repeat(strconv.Itoa(i), 20)
				for text, want := range map[string]guard.Decision{
					"printf -v c '%s %s' git stash; $c":             guard.Deny,
					"printf -v c '%s %s' echo " + word + "; $c":     guard.Allow,
					"$(printf '%b' 'git\\tpush " + word + "')":      guard.Deny,
					"$(echo -e 'echo\\tgit " + word + " commit x')": guard.Allow,
				} {
					if got := shelltext.Check(t.Context(), text, guard.Context{}); got.Decision != want {
						t.Errorf("%q: got %s, want %s: %v", text, got.Decision, want, got.Steps)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
