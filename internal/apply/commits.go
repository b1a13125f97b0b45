package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// CommitOptions says how to bring commits into an origin.
type CommitOptions struct {
	Repo  *git.Repo                          // the origin's
	Base  func() (*snapshot.Snapshot, error) // what the session began with; an error if that is no longer known
	Check bool                               // decide only
}

// commitApply is one apply of commits under way.
type commitApply struct {
	j    *Job
	repo *git.Repo
	base func() (*snapshot.Snapshot, error)
	made *gitdir.Commits
	dir  string // a folder of the session's, for this apply alone
	head string // the origin's HEAD, "" when it has no commit
	tip  string // its new HEAD
	res  *artifacts.AppliedCommits

	paths   []commitPath
	missing []string // missing folders that the commits need, the inner ones first
}

// Commits puts a session's commits on the origin's current branch; see
// session.Manager.ApplyCommits.
func (j *Job) Commits(ctx context.Context, made *gitdir.Commits,
	opt CommitOptions) (_ *artifacts.AppliedCommits, err error) {
	a := &commitApply{j: j, repo: opt.Repo, base: opt.Base, made: made,
		res: &artifacts.AppliedCommits{Checked: opt.Check}}
	if a.dir, err = os.MkdirTemp(j.Dir, merge.Prefix+"*"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(a.dir)) }()
	if err := a.decide(ctx); err != nil || opt.Check || a.tip == a.head {
		return a.result(err)
	}
	if err := a.carryOut(ctx); err != nil {
		return a.result(err)
	}
	failpoint.Hit("commits.applied")
	return a.res, a.verify(ctx)
}

// result returns what was decided, together with an error that says why nothing
// was done.
func (a *commitApply) result(err error) (*artifacts.AppliedCommits, error) {
	var conflict *Error
	if err != nil && !errors.As(err, &conflict) {
		return nil, err
	}
	if conflict != nil {
		a.res.Commits, a.res.Conflicts = nil, conflict.Conflicts
	}
	return a.res, err
}

// decide finds out what HEAD will be, and whether anything would be lost.
func (a *commitApply) decide(ctx context.Context) error {
	if err := a.underWay(); err != nil {
		return err
	}
	var err error
	if a.head, err = a.repo.Head(ctx); err != nil {
		return err
	}
	a.res.Branch = branchOf(a.repo)
	if a.head != "" {
		if err = a.run(ctx, nil, "", "merge-base", "--is-ancestor", a.made.Head, a.head); err == nil {
			a.tip, a.res.Head = a.head, a.head
			return nil // it has them
		}
	}
	if a.head == a.made.From {
		a.tip = a.made.Head
		if err := a.takeAsTheyAre(ctx); err != nil {
			return err
		}
	} else if err := a.replay(ctx); err != nil {
		return err
	}
	a.res.Head = a.tip
	return a.compare(ctx)
}

// underWay refuses an origin in which a git operation is unfinished.
func (a *commitApply) underWay() error {
	for name, what := range map[string]string{
		"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert",
		"rebase-merge": "a rebase", "rebase-apply": "a rebase or am", "sequencer": "a cherry-pick or revert",
	} {
		if atomicfile.Exists(filepath.Join(a.repo.GitDir, name)) {
			return a.seeStatus("%s is under way in %s", what, a.repo.TopLevel)
		}
	}
	a.dropLock()
	if atomicfile.Exists(a.lockPath()) {
		return superqode.WithHint(a.indexLocked(), "ls -l %s", a.lockPath())
	}
	return nil
}

// seeStatus is a conflict of which git status says more.
func (a *commitApply) seeStatus(format string, args ...any) error {
	return superqode.WithHint(superqode.Errorf(superqode.ErrConflict, format, args...), "git -C %s status",
		a.repo.TopLevel)
}

func (a *commitApply) indexLocked() error {
	return superqode.Errorf(superqode.ErrLocked, "another git works on the index of %s", a.repo.TopLevel)
}

// branchOf is the branch that HEAD names, "" when it is detached.
func branchOf(repo *git.Repo) string {
	name, _ := strings.CutPrefix(atomicfile.ReadBelow(repo.GitDir, "HEAD"), "ref: ")
	branch, ok := strings.CutPrefix(name, "refs/heads/")
	if !ok {
		branch = ""
	}
	return branch
}

// run runs git in the origin, with variables and something on its stdin.
func (a *commitApply) run(ctx context.Context, env []string, in string, args ...string) error {
	return a.repo.Run(ctx, git.Cmd{Dir: a.repo.TopLevel, Args: args, Env: env, Stdin: strings.NewReader(in)})
}

// storeGit runs git on the store's objects, without the user's configuration.
// New objects go into this apply's own folder.
func (a *commitApply) storeGit(ctx context.Context, in string, env []string, args ...string) (string, error) {
	if err := os.MkdirAll(filepath.Join(a.dir, "objects"), 0o700); err != nil {
		return "", err
	}
	env = slices.Concat(a.ownObjects(a.j.Store.Dir()), []string{
		"GIT_DIR=" + a.j.Store.Dir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"HOME=" + a.dir, "XDG_CONFIG_HOME=" + a.dir,
	}, env)
	out, err := a.repo.Output(ctx, git.Cmd{Dir: a.dir, Args: args, Env: env, Stdin: strings.NewReader(in)})
	return strings.TrimSuffix(string(out), "\n"), err
}

// ownObjects are the variables with which git writes objects into this apply's own
// folder and reads those of a git directory (git(1): quoted like a C string if the
// path contains a separator).
func (a *commitApply) ownObjects(gitDir string) []string {
	objects := filepath.Join(gitDir, "objects")
	if strings.ContainsAny(objects, "\":\\\n") {
		objects = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(objects) + `"`
	}
	return []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(a.dir, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects}
}

// said is what git printed, on one line.
func said(stderr string) string { return text.Printable(strings.TrimSpace(stderr)) }

// takeAsTheyAre lists the session's commits and creates no others.
func (a *commitApply) takeAsTheyAre(ctx context.Context) error {
	for _, c := range a.made.Line {
		subject, err := a.storeGit(ctx, "", nil, "log", "-1", "--format=%s", c)
		if err != nil {
			return err
		}
		a.res.Commits = append(a.res.Commits, artifacts.AppliedCommit{Commit: c, From: c, Subject: subject})
	}
	return nil
}

// replay makes the session's commits anew on the origin's HEAD.
func (a *commitApply) replay(ctx context.Context) error {
	if a.head == "" {
		return superqode.Errorf(superqode.ErrConflict, "the origin has no commit, and the session's are based on %s",
			gitdir.Short(a.made.From))
	}
	if err := a.repo.CheckVersion(ctx); err != nil {
		return err
	}
	if a.repo.Version.Before(git.Version{2, 38, 0}) {
		return a.byMail(superqode.Errorf(superqode.ErrConflict,
			"the origin has moved on, and git %s cannot merge without a work tree", a.repo.Version))
	}
	committer, err := a.committer(ctx)
	if err != nil {
		return err
	}
	a.tip = a.head
	for _, c := range a.made.Line {
		if err := a.pick(ctx, c, committer); err != nil {
			return err
		}
	}
	return nil
}

// committer is the person who applies: the user, as git knows them in the
// origin.
func (a *commitApply) committer(ctx context.Context) ([]string, error) {
	out, err := a.repo.Output(ctx, git.Cmd{Dir: a.repo.TopLevel, Args: []string{"var", "GIT_COMMITTER_IDENT"}})
	if err != nil {
		return nil, superqode.WithHint(err, "git config --global user.email you@example.com")
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(string(out)), " <")
	mail, _, ok2 := strings.Cut(rest, ">")
	if !ok || !ok2 {
		return nil, fmt.Errorf("git names no committer: %q", out)
	}
	return []string{"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail}, nil
}

// pick merges one commit's difference from its first parent into tip. git finds
// the base of a merge by history, so pick gives the three trees one.
func (a *commitApply) pick(ctx context.Context, c string, committer []string) error {
	about, err := a.storeGit(ctx, "", nil,
		"log", "-1", "--encoding=UTF-8", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%s%x00%B", c)
	if err != nil {
		return err
	}
	f := strings.SplitN(about, "\x00", 5)
	if len(f) != 5 {
		return fmt.Errorf("commit %s has no author", c)
	}
	who := append([]string{"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1], "GIT_AUTHOR_DATE=" + f[2]},
		committer...)
	base, err := a.storeGit(ctx, "", nil, "rev-parse", "--verify", "--quiet", c+"^1^{tree}")
	if err != nil { // a root commit
		if base, err = a.storeGit(ctx, "", nil, "mktree"); err != nil {
			return err
		}
	}
	at, err := a.storeGit(ctx, "base\n", who, "commit-tree", base)
	if err != nil {
		return err
	}
	sides := []string{a.tip, c}
	for i, rev := range sides {
		if sides[i], err = a.storeGit(ctx, "side\n", who, "commit-tree", "-p", at, rev+"^{tree}"); err != nil {
			return err
		}
	}
	tree, err := a.storeGit(ctx, "", nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
		sides[0], sides[1])
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return a.conflictIn(c, f[3], strings.Split(strings.Trim(tree, "\x00"), "\x00")[1:])
	}
	if err != nil {
		return err
	}
	tree, _, _ = strings.Cut(tree, "\x00")
	now, err := a.storeGit(ctx, "", nil, "rev-parse", a.tip+"^{tree}")
	if err != nil || now == tree {
		return err // the origin has it already
	}
	if a.tip, err = a.storeGit(ctx, f[4], who, "commit-tree", "-p", a.tip, tree); err != nil {
		return err
	}
	a.res.Commits = append(a.res.Commits, artifacts.AppliedCommit{Commit: a.tip, From: c, Subject: f[3]})
	return nil
}

func (a *commitApply) conflictIn(c, subject string, paths []string) error {
	var list []artifacts.ApplyConflict
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		list = append(list, conflictAt(p, fmt.Sprintf("CONFLICT (commit %s %q): %s was changed in the origin too",
			gitdir.Short(c), text.Printable(subject), text.Printable(p))))
	}
	return a.byMail(&Error{Conflicts: list})
}

func conflictAt(path, message string) artifacts.ApplyConflict {
	rel := superqode.RelPath(path)
	return artifacts.ApplyConflict{Path: rel, Kind: "content", Message: message}
}

// byMail is an error with the hint how to apply the commits without us.
func (a *commitApply) byMail(err error) error {
	mails := filepath.Join(".superqode", "qe-artifacts", artifacts.SessionCommits(a.j.ID))
	return superqode.WithHint(err, "git -C %s am -3 %s", a.repo.TopLevel, mails)
}
