package gitdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Commits are what a session committed.
type Commits struct {
	Head string   // its HEAD; "" if nothing is new
	Line []string // the new commits from head back along the first parents, the oldest first
	All  int      // number of new commits, including those on merged lines
	From string   // the parent of the first of line, "" for none
}

func (m *Commits) head() string {
	if m == nil {
		return ""
	}
	return m.Head
}

// Short is a commit's id in messages.
func Short(id string) string {
	if id == "" {
		return "an empty repository"
	}
	return id[:min(len(id), 12)]
}

// commitsRef is the name of the ref that keeps a session's commits.
const commitsRef = "commits"

// keepTime bounds the copying: a program may have put things into its object store
// on which git waits for ever.
const keepTime = 5 * time.Minute

// KeepCommits copies the session's commits into the store. It returns nil when there
// are none.
func KeepCommits(ctx context.Context, s *site.Site) (*Commits, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if s.Rec.CommonDir == "" || !mode.Of(s.Rec.Mode).WorkTree {
		return nil, nil
	}
	gitDir, common, objects := programsGit(s)
	head := refAt(gitDir, common, "HEAD")
	if head == "" && hasReftable(common) {
		repo, err := s.Repo(ctx)
		if err != nil {
			return nil, err
		}
		head = reftableHead(ctx, repo, gitDir)
	}
	if head == "" || head == s.Rec.Base.Head {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	old, err := baseCommits(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	n, err := s.Store.CopyCommits(ctx,
		store.CopyCommits{Ref: s.Ref(commitsRef), Head: head, Not: old, Objects: objects})
	if err != nil || n == 0 {
		return nil, err
	}
	failpoint.Hit("commits.kept")
	m, err := commitsOf(ctx, s, head, old)
	if err == nil && m != nil {
		err = m.writeBase(ctx, s, s.Ref(commitsRef))
	}
	return m, err
}

// writeRef keeps the commits, and what they begin from, below a ref of the store.
func (m *Commits) writeRef(ctx context.Context, s *site.Site, ref string) error {
	if err := s.Store.WriteRef(ctx, ref, m.Head); err != nil {
		return err
	}
	return m.writeBase(ctx, s, ref)
}

func (m *Commits) writeBase(ctx context.Context, s *site.Site, ref string) error {
	if m.From == "" {
		return nil
	}
	return s.Store.WriteRef(ctx, ref+store.BaseSuffix, m.From)
}

// programsGit is where the session's programs had their HEAD, and the folder of the
// objects that they made.
func programsGit(s *site.Site) (gitDir, common, objects string) {
	if p := dirOf(s); hasHead(p) {
		return p, p, filepath.Join(p, "objects")
	}
	common = string(s.Rec.CommonDir)
	if mode.Of(s.Rec.Mode).InPlace || s.Rec.Overlay != nil {
		return string(s.Rec.GitDir), common, filepath.Join(common, "objects")
	}
	return string(s.Rec.AdminDir), common, filepath.Join(common, "objects")
}

// reftableHead asks git, in the repository itself, which the programs of a session
// without the kernel layer could write to no more than the user could.
func reftableHead(ctx context.Context, repo *git.Repo, gitDir string) string {
	out, err := repo.Output(ctx, git.Cmd{Args: []string{"--git-dir", gitDir, "rev-parse", "--verify", "--quiet", "HEAD"}})
	if id := strings.TrimSpace(string(out)); err == nil && validObject(id) {
		return id
	}
	return ""
}

// baseCommits are the commits that the repository had when the session began: what
// its refs named.
func baseCommits(ctx context.Context, s *site.Site) ([]string, error) {
	var list []string
	if validObject(s.Rec.Base.Head) {
		list = append(list, s.Rec.Base.Head)
	}
	refs, err := baseRefs(s)
	if err != nil {
		return nil, err
	}
	for _, id := range refs {
		if validObject(id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), ctx.Err()
}

// baseRefs are the refs that the repository had when the session began.
func baseRefs(s *site.Site) (map[string]string, error) {
	if copied := filepath.Join(s.AsideDir(), "git"); atomicfile.Exists(copied) {
		refs, err := revert.ReadRefs(copied) // the copy that the repository is brought back from
		if errors.Is(err, os.ErrNotExist) {
			err = nil // it holds files only: then no ref is loose, and the base commit has to do
		}
		return refs, err
	}
	if s.RepoState != nil {
		return s.RepoState.Refs, nil
	}
	state, err := revert.LoadState(filepath.Join(s.Folder, "state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // in shared mode nothing is compared afterwards; the base commit has to do
	}
	if err != nil {
		return nil, err
	}
	return state.Refs, nil
}

// commitsOf describes the commits that the store keeps.
func commitsOf(ctx context.Context, s *site.Site, head string, old []string) (*Commits, error) {
	m := &Commits{Head: head}
	all, err := s.Store.RevList(ctx, []string{"--count"}, head, old)
	if err != nil {
		return nil, err
	}
	if m.All, err = strconv.Atoi(strings.TrimSpace(all)); err != nil || m.All == 0 {
		return nil, err
	}
	line, err := s.Store.RevList(ctx, []string{"--first-parent", "--reverse"}, head, old)
	if err != nil {
		return nil, err
	}
	if m.Line = strings.Fields(line); len(m.Line) == 0 {
		return nil, nil
	}
	parents, err := s.Store.RevList(ctx, []string{"--parents", "--max-count=1"}, m.Line[0], nil)
	if err != nil {
		return nil, err
	}
	if f := strings.Fields(parents); len(f) > 1 {
		m.From = f[1]
	}
	return m, nil
}

// Forget brings the session's own HEAD and refs back to the beginning: the next
// program finds a git directory that is made anew. What was committed is kept under a
// name of its own.
func Forget(ctx context.Context, s *site.Site) error {
	m, err := KeepCommits(ctx, s)
	if err == nil {
		err = keepBeside(ctx, s, m.head())
	}
	if err != nil {
		return fmt.Errorf("keep the session's commits: %w", err)
	}
	if m != nil {
		ref := s.Ref("reverted-" + commitsRef + "/" + Short(m.Head))
		err := m.writeRef(ctx, s, ref)
		for _, name := range []string{commitsRef, commitsRef + store.BaseSuffix} {
			err = errors.Join(err, s.Store.DeleteRef(ctx, s.Ref(name)))
		}
		if err != nil {
			return err
		}
		s.Warn(fmt.Sprintf("the session had made %s; the store keeps them as %s", text.Plural(m.All, "commit"), ref))
	}
	if dir := dirOf(s); atomicfile.Exists(dir) {
		if err := s.Unmount(); err != nil {
			return err
		}
		return trash.Put(dir, s.Project.TrashPath())
	}
	return nil
}

// Collect keeps the commits and writes them down for the user. It returns nil when
// there are none. On an error the session must be preserved.
func Collect(ctx context.Context, s *site.Site,
	into *artifacts.Store) (*artifacts.Commits, []artifacts.Artifact, error) {
	m, err := KeepCommits(ctx, s)
	if err == nil && m == nil && s.Store != nil {
		m, err = StoredCommits(ctx, s) // in place HEAD is what it was by now
	}
	if err == nil {
		err = keepBeside(ctx, s, m.head())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("keep the session's commits: %w", err)
	}
	if m == nil {
		return nil, nil, nil
	}
	n, err := writeSeries(ctx, s, m)
	if err != nil {
		return nil, nil, fmt.Errorf("write the session's commits down: %w", err)
	}
	commits := &artifacts.Commits{Count: m.All, Head: m.Head, Base: m.From, Ref: s.Ref(commitsRef),
		Series: artifacts.SessionCommits(s.Rec.ID)}
	if n == nil {
		commits.Series = ""
		return commits, nil, nil
	}
	defer os.Remove(n.File)
	added, err := into.AddAll(ctx, []artifacts.New{*n})
	return commits, added, err
}

// writeSeries writes the commits as mails for git am: one for each commit on the
// line of first parents, a merge with all that it brought. Commits that change
// nothing have none. It returns nil when none is left.
func writeSeries(ctx context.Context, s *site.Site, m *Commits) (_ *artifacts.New, err error) {
	f, err := os.CreateTemp(s.Folder, ".commits-*")
	if err != nil {
		return nil, err
	}
	n, err := s.Store.WriteMails(ctx, m.Line, f)
	if err = errors.Join(err, f.Close()); err != nil || n == 0 {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	about := fmt.Sprintf("the session's commits; git am brings them onto %s", Short(m.From))
	if n < m.All {
		about += fmt.Sprintf("; %d mails for %s: merges are one mail each, empty commits none", n,
			text.Plural(m.All, "commit"))
	}
	return &artifacts.New{
		Type: artifacts.TypePatch, Path: artifacts.SessionCommits(s.Rec.ID), Description: about, File: f.Name(),
		Session: s.Rec.ID, Agent: s.Rec.Agent,
		Metadata: map[string]any{"commits": m.All, "head": m.Head, "base": m.From, "ref": s.Ref(commitsRef)},
	}, nil
}

// AgentCommits keeps the commits that one of several agents made in its workspace as
// mails, and below the session's own refs. They stand on one base, side by side, so
// none of them can be the session's: the merge of all is in its patch.
func AgentCommits(ctx context.Context, s, child *site.Site) (*artifacts.New, error) {
	m, err := KeepCommits(ctx, child)
	if err != nil || m == nil {
		return nil, err
	}
	ref := s.Ref(commitsRef + "-of/" + child.Rec.ID.String())
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	if err := m.writeRef(ctx, s, ref); err != nil {
		return nil, err
	}
	n, err := writeSeries(ctx, child, m)
	if err != nil || n == nil {
		return nil, err
	}
	n.Path, n.Session, n.Agent = artifacts.AgentCommits(s.Rec.ID, child.Rec.Agent), s.Rec.ID, child.Rec.Agent
	n.Metadata["ref"] = ref
	s.Note([]string{fmt.Sprintf("agent %s made %s, kept: git am .superqode/qe-artifacts/%s", child.Rec.Agent,
		text.Plural(m.All, "commit"), n.Path)})
	return n, nil
}

// StoredCommits describes the commits of a session that the store has.
func StoredCommits(ctx context.Context, s *site.Site) (*Commits, error) {
	refs, err := s.Store.Refs(s.Rec.ID)
	if err != nil {
		return nil, err
	}
	head := refs[commitsRef]
	if head == "" {
		return nil, nil
	}
	var old []string
	if base := refs[commitsRef+store.BaseSuffix]; base != "" {
		old = append(old, base)
	}
	return commitsOf(ctx, s, head, old)
}
