package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// BaseSuffix ends the name of the ref that says on what the commits of the ref
// without it stand: a store keeps those after it and borrows the ones before.
const BaseSuffix = "-base"

// CopyCommits says which commits are copied into a store.
type CopyCommits struct {
	Ref     string   // refs/superqode/<session>/<name>: what is to lead to Head
	Head    string   // a commit's id
	Not     []string // ids of commits whose history the origin has
	Objects string   // an objects folder that holds what is new; "" for the origin's own
}

// CopyCommits copies what of Head's history is not Not's into the store, whole, so
// that it outlives the folder that it comes from, and points Ref at it. Contents
// are hashed and checked on the way (git index-pack --strict): the folder may be a
// program's own. It returns how many commits are new; with none nothing is done.
func (s *Store) CopyCommits(ctx context.Context, c CopyCommits) (n int, err error) {
	var env []string
	if c.Objects != "" {
		path := c.Objects
		if strings.ContainsAny(path, ":\n\"\\") {
			path = cQuote(path)
		}
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+path)
	}
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: []string{"rev-list", "--count", "--stdin"}, Env: env, Stdin: revisions(c.Head, c.Not), Stdout: &out}); err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(out.String(), &n); err != nil || n == 0 {
		return 0, err
	}
	unlock, err := s.share(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f, err := os.CreateTemp(s.dir, ".commits-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := s.run(ctx, git.Cmd{Args: []string{"pack-objects", "-q", "--revs", "--stdout", "--no-reuse-delta"}, Env: env, Stdin: revisions(c.Head, c.Not), Stdout: f}); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if err := s.run(ctx, git.Cmd{Args: []string{"index-pack", "--stdin", "--strict"}, Stdin: f, Stdout: io.Discard}); err != nil {
		return 0, fmt.Errorf("check the copied commits: %w", err)
	}
	return n, s.writeRef(c.Ref, c.Head)
}

func revisions(head string, not []string) *bytes.Buffer {
	in := bytes.NewBufferString(head + "\n")
	for _, id := range not {
		in.WriteString("^" + id + "\n")
	}
	return in
}

// DeleteRef deletes one ref, if it is there.
func (s *Store) DeleteRef(ctx context.Context, ref string) error {
	if !validRef(ref) {
		return fmt.Errorf("bad ref name %q", ref)
	}
	return s.run(ctx, git.Cmd{Args: []string{"update-ref", "-d", ref}})
}

// RevList runs git rev-list in the store: commits of head that are not of not.
func (s *Store) RevList(ctx context.Context, args []string, head string, not []string) (string, error) {
	var out bytes.Buffer
	err := s.run(ctx, git.Cmd{Args: append(append([]string{"rev-list"}, args...), "--stdin"), Stdin: revisions(head, not), Stdout: &out})
	return out.String(), err
}

// WriteMails writes each commit as a mail for git am, with its difference from its
// first parent. Commits that change nothing are left out, since git am stops at them.
// It returns how many mails there are.
func (s *Store) WriteMails(ctx context.Context, commits []string, w io.Writer) (int, error) {
	list, err := s.withChanges(ctx, commits)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return len(list), s.run(ctx, git.Cmd{
		Args: []string{
			"-c", "core.quotePath=true", "log", "--no-walk=unsorted", "--stdin", "-m", "--first-parent", "--pretty=email", "--encoding=UTF-8", "--no-notes", "--no-show-signature", "--no-mailmap",
			"--stat=72", "--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
		},
		Stdin: strings.NewReader(strings.Join(list, "\n") + "\n"), Stdout: w,
	})
}

// withChanges leaves out the commits whose tree is their first parent's.
func (s *Store) withChanges(ctx context.Context, commits []string) ([]string, error) {
	var ask strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&ask, "%s^{tree}\n%s^1^{tree}\n", c, c)
	}
	var out bytes.Buffer
	err := s.run(ctx, git.Cmd{Args: []string{"cat-file", "--batch-check=%(objectname)"}, Stdin: strings.NewReader(ask.String()), Stdout: &out})
	if err != nil {
		return nil, err
	}
	trees := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(trees) != 2*len(commits) {
		return nil, fmt.Errorf("git told of %d trees of %d commits", len(trees), len(commits))
	}
	var list []string
	for i, c := range commits {
		if trees[2*i] != trees[2*i+1] {
			list = append(list, c)
		}
	}
	return list, nil
}
