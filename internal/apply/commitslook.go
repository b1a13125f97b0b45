package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// object is what a tree, an index or a work tree has at one path; the zero
// value means nothing.
type object struct{ mode, id string }

// commitPath is one path that the commits change.
type commitPath struct {
	path     string
	old, new object // in the origin's HEAD and in the new one
	work     object // in its work tree
}

// given reports whether the work tree holds neither the old nor the new state,
// but what the session began with.
func (p *commitPath) given() bool { return p.work != p.old && p.work != p.new }

// compare looks at every path that the commits change.
func (a *commitApply) compare(ctx context.Context) error {
	from, err := a.head, error(nil)
	if from == "" {
		if from, err = a.storeGit(ctx, "", nil, "mktree"); err != nil {
			return err
		}
	}
	out, err := a.storeGit(ctx, "", nil, "diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", from, a.tip)
	if err != nil {
		return err
	}
	f := strings.Split(out, "\x00")
	var names strings.Builder
	for i := 0; i+1 < len(f); i += 2 {
		m := strings.Fields(strings.TrimPrefix(f[i], ":")) // old mode, new mode, old id, new id, letter
		if len(m) != 5 {
			return fmt.Errorf("git diff-tree says %q", f[i])
		}
		a.paths = append(a.paths, commitPath{path: f[i+1], old: objectOf(m[0], m[2]), new: objectOf(m[1], m[3])})
		names.WriteString(f[i+1] + "\x00")
	}
	index, err := a.indexed(ctx, nil)
	if err != nil {
		return err
	}
	work, err := a.worked(ctx, names.String())
	if err != nil {
		return err
	}
	begun, err := a.begun(ctx)
	if err != nil {
		return err
	}
	var conflicts []artifacts.ApplyConflict
	for i := range a.paths {
		p := &a.paths[i]
		p.work = work[p.path]
		staged, known := index[p.path], begun != nil && p.work == begun[p.path]
		why := ""
		if p.given() && !known {
			why = "CONFLICT (local change): %s was changed in the origin, and not committed"
		} else if staged != p.old && staged != p.new && staged != p.work {
			why = "CONFLICT (staged change): something else is staged for %s"
		}
		if why != "" {
			conflicts = append(conflicts, conflictAt(p.path, fmt.Sprintf(why, text.Printable(p.path))))
		}
	}
	if len(conflicts) > 0 {
		return a.byMail(&Error{Conflicts: conflicts})
	}
	return nil
}

func objectOf(mode, id string) object {
	if strings.Trim(mode, "0") == "" {
		return object{}
	}
	return object{mode, id}
}

// indexed reads an index: the origin's, or the one that env names.
func (a *commitApply) indexed(ctx context.Context, env []string) (map[string]object, error) {
	out, err := a.repo.Output(ctx, git.Cmd{Dir: a.repo.TopLevel, Args: []string{"ls-files", "-s", "-z"}, Env: env})
	if err != nil {
		return nil, err
	}
	list := map[string]object{}
	for item := range strings.SplitSeq(string(out), "\x00") {
		about, path, ok := strings.Cut(item, "\t")
		if f := strings.Fields(about); ok && len(f) == 3 {
			list[path] = object{f[0], f[1]}
			if f[2] != "0" {
				list[path] = object{"unmerged", f[1]}
			}
		}
	}
	return list, nil
}

// worked reads what the work tree has at paths, as git would add it. It adds
// nothing to the origin's objects.
func (a *commitApply) worked(ctx context.Context, names string) (map[string]object, error) {
	env, err := a.copyIndex("work")
	if err != nil {
		return nil, err
	}
	env = append(env, a.ownObjects(a.repo.CommonDir)...)
	err = a.run(ctx, env, names,
		"update-index", "-z", "--add", "--remove", "--replace", "--ignore-skip-worktree-entries", "--stdin")
	if exit, ok := errors.AsType[*git.ExitError](err); ok {
		return nil, a.seeStatus("cannot compare what the commits change with the origin: %s", said(exit.Stderr))
	}
	if err != nil {
		return nil, err
	}
	return a.indexed(ctx, env)
}

// copyIndex copies the origin's index and returns the variable that leads git
// to the copy.
func (a *commitApply) copyIndex(name string) ([]string, error) {
	file := filepath.Join(a.dir, name)
	data, err := atomicfile.Read(filepath.Join(a.repo.GitDir, "index"))
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return []string{"GIT_INDEX_FILE=" + file}, nil
}

// gitMode is an entry's mode in a git tree.
func gitMode(e *snapshot.Entry) string {
	switch {
	case e.Kind == snapshot.Link:
		return "120000"
	case e.Perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// begun is what the session began with, nil if that is no longer known: then
// the session changed nothing.
func (a *commitApply) begun(ctx context.Context) (map[string]object, error) {
	list := map[string]object{}
	if base, err := a.base(); err == nil { // as long as the session has not ended
		for i := range base.Entries {
			if e := &base.Entries[i]; !e.ID.IsZero() {
				list[string(e.Path)] = object{gitMode(e), e.ID.String()}
			}
		}
		return list, nil
	}
	refs, err := a.j.Store.Refs(a.j.ID)
	if err != nil || refs["base"] == "" {
		return nil, err
	}
	out, err := a.storeGit(ctx, "", nil, "ls-tree", "-r", "-z", "--full-tree", refs["base"])
	if err != nil {
		return nil, err
	}
	for item := range strings.SplitSeq(out, "\x00") {
		about, path, ok := strings.Cut(item, "\t")
		if f := strings.Fields(about); ok && len(f) == 3 {
			list[path] = object{f[0], f[2]}
		}
	}
	return list, nil
}
