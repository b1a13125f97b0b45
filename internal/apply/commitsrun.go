package apply

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// carryOut brings the objects over and moves work tree, index and HEAD. It
// holds the locks of index and refs all the time, so that the decision stays
// valid. It undoes everything after a failure; after a kill the same command
// finishes the work tree.
func (a *commitApply) carryOut(ctx context.Context) error {
	if err := a.bringObjects(ctx); err != nil {
		return err
	}
	if err := a.salvage(ctx); err != nil {
		return err
	}
	env, err := a.prepareIndex(ctx)
	if err != nil {
		return err
	}
	lock, err := a.takeLock()
	if err != nil {
		return err
	}
	refs, err := a.lockRefs(ctx)
	if err != nil {
		return errors.Join(err, lock.Close(), a.freeLock())
	}
	ctx = context.WithoutCancel(ctx)
	a.noteFolders()
	if err := a.moveTree(ctx, env); err != nil {
		return errors.Join(err, a.undo(ctx, err), refs.end("abort"), lock.Close(), a.freeLock())
	}
	failpoint.Hit("commits.moved")
	data, err := atomicfile.Read(filepath.Join(a.dir, "next"))
	if err == nil {
		_, err = lock.Write(data)
	}
	if err = errors.Join(err, atomicfile.Sync(lock), lock.Close()); err != nil {
		return errors.Join(err, a.undo(ctx, err), refs.end("abort"), a.freeLock())
	}
	failpoint.Hit("commits.indexed")
	if err := os.Rename(a.lockPath(), filepath.Join(a.repo.GitDir, "index")); err != nil {
		return errors.Join(err, a.undo(ctx, err), refs.end("abort"), a.freeLock())
	}
	return errors.Join(refs.end("commit"), os.Remove(a.lockNote()))
}

func (a *commitApply) lockPath() string { return filepath.Join(a.repo.GitDir, "index.lock") }

// lockNote is the file in the session's folder that records which index.lock is
// ours.
func (a *commitApply) lockNote() string { return filepath.Join(a.j.Dir, "commits.lock") }

// takeLock makes the origin's index.lock, as git does.
func (a *commitApply) takeLock() (*os.File, error) {
	f, err := os.OpenFile(a.lockPath(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, a.indexLocked()
	}
	if err != nil {
		return nil, err
	}
	if err := os.Link(a.lockPath(), a.lockNote()); err != nil { // another file system: then nobody recognizes it later
		err = os.WriteFile(a.lockNote(), nil, 0o600)
		if err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(a.lockPath()))
		}
	}
	return f, nil
}

func (a *commitApply) freeLock() error {
	return errors.Join(os.Remove(a.lockPath()), os.Remove(a.lockNote()))
}

// dropLock removes the index.lock that an apply of this session left when it
// was killed. The caller holds the project's lock, so that no apply is running.
func (a *commitApply) dropLock() {
	if atomicfile.SameFile(a.lockNote(), a.lockPath()) {
		_ = os.Remove(a.lockPath()) // the next step reports it
	}
	_ = os.Remove(a.lockNote())
}

// noteFolders records which folders git will have to create.
func (a *commitApply) noteFolders() {
	for _, p := range a.paths {
		for dir := superqode.RelPath(p.path).Parent(); dir != "" && p.new != (object{}); dir = dir.Parent() {
			if !atomicfile.Exists(dir.In(a.repo.TopLevel)) {
				a.missing = append(a.missing, string(dir))
			}
		}
	}
	slices.SortFunc(a.missing, func(x, y string) int { return cmp.Compare(len(y), len(x)) })
}

// undo restores the paths to what they were when decide saw them; their
// contents are in this apply's own folder. If git refused to begin, nothing was
// changed.
func (a *commitApply) undo(ctx context.Context, why error) error {
	if errors.Is(why, superqode.ErrConflict) {
		return nil
	}
	root, err := atomicfile.OpenRoot(a.repo.TopLevel)
	if err != nil {
		return err
	}
	defer root.Close()
	var in strings.Builder
	for _, p := range a.paths {
		if p.work != (object{}) {
			in.WriteString(p.path + "\x00")
		} else if rerr := root.Remove(p.path); !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	for _, dir := range a.missing {
		_ = root.Remove(dir) // unless something else is in it by now
	}
	env := append(a.ownObjects(a.repo.CommonDir), "GIT_INDEX_FILE="+filepath.Join(a.dir, "work"))
	err = errors.Join(err, a.run(ctx, env, in.String(), "checkout-index", "-f", "-z", "--stdin"))
	if err != nil {
		return fmt.Errorf("%w: the apply could not be undone completely: %w", superqode.ErrVerification, err)
	}
	return nil
}

// bringObjects copies the commits into the origin.
func (a *commitApply) bringObjects(ctx context.Context) error {
	in := a.tip + "\n"
	if a.head != "" {
		in += "^" + a.head + "\n"
	}
	pack := filepath.Join(a.dir, "commits.pack")
	out, err := os.OpenFile(pack, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	env := append(a.ownObjects(a.j.Store.Dir()), "GIT_DIR="+a.j.Store.Dir())
	packing := git.Cmd{Dir: a.dir, Args: []string{"pack-objects", "-q", "--revs", "--stdout"}, Env: env}
	packing.Stdin, packing.Stdout = strings.NewReader(in), out
	if err := a.repo.Run(ctx, packing); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	unpacking := git.Cmd{Dir: a.repo.TopLevel, Args: []string{"unpack-objects", "-q", "--strict"}, Stdin: out,
		Stdout: io.Discard}
	return a.repo.Run(ctx, unpacking)
}

// salvage saves what is overwritten and was not committed.
func (a *commitApply) salvage(ctx context.Context) error {
	var paths []superqode.RelPath
	for _, p := range a.paths {
		if p.given() && p.work != (object{}) {
			paths = append(paths, superqode.RelPath(p.path))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	changes := make([]merge.Change, len(paths))
	for i, p := range paths {
		changes[i].Old = &snapshot.Entry{Path: p}
	}
	view, err := merge.Look(ctx, a.repo.TopLevel, a.j.Store.Format(), changes)
	if err == nil {
		err = view.Err()
	}
	if err != nil {
		return err
	}
	part := salvage.Part{Dir: a.repo.TopLevel}
	for _, p := range paths {
		if e := view.Now.Find(p); e != nil {
			part.Entries = append(part.Entries, *e)
		}
	}
	a.res.Salvage, err = a.j.salvageWhole(ctx, "apply of commits", part)
	return err
}

// prepareIndex makes the index from which git moves the work tree. Where the
// work tree is ahead of HEAD, the index holds the new state already, so git
// leaves it alone.
func (a *commitApply) prepareIndex(ctx context.Context) ([]string, error) {
	env, err := a.copyIndex("next")
	if err != nil {
		return nil, err
	}
	var in strings.Builder
	for _, p := range a.paths {
		switch {
		case p.work == p.old:
		case p.new == object{}:
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(a.tip)), p.path)
		default:
			fmt.Fprintf(&in, "%s %s\t%s\x00", p.new.mode, p.new.id, p.path)
		}
	}
	// git compares stat data before it writes; a copied repository has others
	if err := a.refresh(ctx, env); err != nil {
		return nil, err
	}
	if in.Len() == 0 {
		return env, nil
	}
	return env, a.run(ctx, env, in.String(), "update-index", "-z", "--index-info")
}

// moveTree writes the new state into the work tree. git checks every path first
// and touches none if one is in the way.
func (a *commitApply) moveTree(ctx context.Context, env []string) error {
	args := []string{"read-tree", "-m", "-u"}
	if a.head != "" {
		args = append(args, a.head)
	}
	err := a.run(ctx, env, "", append(args, a.tip)...)
	if exit, ok := errors.AsType[*git.ExitError](err); ok {
		return a.seeStatus("nothing was applied: %s", said(exit.Stderr))
	}
	if err != nil {
		return err
	}
	if err := failpoint.Err("commits.half"); err != nil {
		return err
	}
	var again strings.Builder
	root, err := atomicfile.OpenRoot(a.repo.TopLevel)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range a.paths {
		switch {
		case !p.given():
		case p.new == object{}:
			if rerr := root.Remove(p.path); !errors.Is(rerr, os.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		default:
			again.WriteString(p.path + "\x00")
		}
	}
	if again.Len() > 0 {
		err = errors.Join(err, a.run(ctx, env, again.String(), "checkout-index", "-f", "-u", "-z", "--stdin"))
	}
	return errors.Join(err, a.refresh(ctx, env))
}

// refresh brings an index's stat data up to date.
func (a *commitApply) refresh(ctx context.Context, env []string) error {
	err := a.run(ctx, env, "", "update-index", "-q", "--refresh")
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return nil // there are files that differ
	}
	return err
}

// refLock is a git that holds the locks of HEAD and its branch.
type refLock struct {
	in   io.WriteCloser
	wait func() error
}

func (l *refLock) end(how string) error {
	_, err := io.WriteString(l.in, how+"\n")
	return errors.Join(err, l.in.Close(), l.wait())
}

// lockRefs makes git lock the refs, after it has checked everything that could
// be wrong with them.
func (a *commitApply) lockRefs(ctx context.Context) (*refLock, error) {
	cmd := a.repo.Command(ctx, git.Cmd{Dir: a.repo.TopLevel, Args: []string{
		"update-ref", "--stdin", "-m", "superqode: commits of session " + a.j.ID.String(),
	}})
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var words strings.Builder
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	old := a.head
	if old == "" {
		old = strings.Repeat("0", len(a.tip))
	}
	_, err = fmt.Fprintf(in, "start\nupdate HEAD %s %s\nprepare\n", a.tip, old)
	lines := bufio.NewScanner(out)
	for err == nil && lines.Scan() {
		if lines.Text() == "prepare: ok" {
			return &refLock{in, func() error {
				_, _ = io.Copy(io.Discard, out) // until git closes it
				return cmd.Wait()
			}}, nil
		}
	}
	err = errors.Join(err, in.Close())
	if werr := cmd.Wait(); werr != nil {
		err = superqode.Errorf(superqode.ErrConflict, "nothing was applied: %s", said(words.String()))
	}
	return nil, err
}

// verify checks HEAD, index and work tree again.
func (a *commitApply) verify(ctx context.Context) error {
	head, err := a.repo.Head(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	out, err := a.repo.Output(ctx, git.Cmd{
		Dir: a.repo.TopLevel, Args: []string{"diff-index", "--name-only", "-z", "--no-renames", a.tip},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", superqode.ErrVerification, err)
	}
	differs := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		differs[name] = true
	}
	for _, p := range a.paths {
		if head != a.tip || differs[p.path] {
			return superqode.Errorf(superqode.ErrVerification, "applied, but the result is wrong: %s",
				text.Printable(p.path))
		}
	}
	return nil
}
