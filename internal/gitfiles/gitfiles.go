// Package gitfiles records the files of an origin's repositories, objects
// included, by what lstat tells of them, and later says how they differ.
//
// RepoState of package revert compares what refs, index, configuration and hooks
// say. This package compares the rest: that every file is there, its type, mode
// and owner, and the files that no RepoState reads. What git does by itself is no
// difference: new objects, objects moved into a pack as long as git can still read
// them, and the files in which git notes what it fetched last.
package gitfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Origin is a user's folder whose repositories are recorded.
type Origin struct {
	Top   string             // absolute
	State *revert.RepoState  // of its repository; nil outside git
	Tree  *snapshot.Snapshot // what is in it, by a scan that left out what is named .git
	Kept  bool               // the kernel keeps programs from it: loose objects, mostly most of the files, are left out
}

// skip leaves out, of a git folder, sessions' worktrees and what Kept says.
func (o Origin) skip(dir string) snapshot.Skip {
	common := dir == o.commonDir()
	return func(path superqode.RelPath, _ snapshot.Kind) bool {
		return common && IsSession(path) || o.Kept && path.Parent().Name() == "objects" && isFanOut(path.Name())
	}
}

// isFanOut reports whether a folder of objects is named by the first byte of their names.
func isFanOut(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// Folder is the name of the folder, in that of a session, in which a record is kept:
// what the git folders are themselves, what is in each of them, and what nested
// repositories say.
const Folder = "repositories"

const (
	topsFile   = "folders.snap"
	statesFile = "states.json"
)

func snapFile(folder string, n int) string { return filepath.Join(folder, fmt.Sprintf("%d.snap", n)) }

// statesJSON is what nested repositories and submodules said.
type statesJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	Folders       int                 `json:"folders"` // how many snapshots there are
	Kept          bool                `json:"kept"`    // Origin.Kept
	Repositories  []*revert.RepoState `json:"repositories"`
}

// IsSession reports whether a path below a common dir is the folder in which git
// keeps the worktree of a session of superqode. It comes and goes.
func IsSession(path superqode.RelPath) bool {
	if path.Parent() != "worktrees" {
		return false
	}
	_, err := superqode.ParseSessionID(path.Name())
	return err == nil
}

// Record keeps in a session's folder what the origin's repositories are. Nothing is
// brought back from it, and where a power cut damages it nothing is said to be unchanged.
func Record(ctx context.Context, o Origin, session string) error {
	folder := filepath.Join(session, Folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	seen, err := look(ctx, o, nil)
	if err != nil {
		return err
	}
	f := statesJSON{SchemaVersion: 1, Kept: o.Kept}
	for _, dir := range seen.repositories(o) {
		name := filepath.Join(folder, fmt.Sprintf("%d.index", len(f.Repositories)))
		if s, err := revert.Capture(repository(dir), name); err == nil { // else it is compared by its stat data alone
			f.Repositories = append(f.Repositories, s)
		}
	}
	for _, sn := range seen.within {
		if err := hashSmall(ctx, sn, nil); err != nil {
			return err
		}
		if err := sn.SaveAs(snapFile(folder, f.Folders), atomicfile.Loose); err != nil {
			return err
		}
		f.Folders++
	}
	if err := atomicfile.Loose.WriteJSON(filepath.Join(folder, statesFile), f); err != nil {
		return err
	}
	return seen.tops.SaveAs(filepath.Join(folder, topsFile), atomicfile.Loose)
}

// load reads what Record kept.
func load(folder string) (l *looked, f statesJSON, err error) {
	l = &looked{within: map[string]*snapshot.Snapshot{}}
	if l.tops, err = snapshot.Load(filepath.Join(folder, topsFile)); err != nil {
		return nil, f, err
	}
	data, err := atomicfile.Read(filepath.Join(folder, statesFile))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	for n := 0; n < f.Folders && err == nil; n++ {
		var sn *snapshot.Snapshot
		if sn, err = snapshot.Load(snapFile(folder, n)); err == nil {
			l.within[sn.Root] = sn
		}
	}
	return l, f, err
}

// What is read of a repository at most: so many files (the reflogs of ten thousand
// branches take long) of that size each. The others are compared by their times.
const (
	mostRead  = 1000
	largeRead = 1 << 20 // bytes
)

// hashSmall fills in the content ids of what is neither an object nor a ref: git gc
// rewrites reflogs as they are, and a session that brings .git back all of them.
// With then, only of those that have an id there and other stat data.
func hashSmall(ctx context.Context, sn, then *snapshot.Snapshot) error {
	var small []*snapshot.Entry
	part := sn.With(nil)
	for i := range sn.Entries {
		e := &sn.Entries[i]
		path := "/" + string(e.Path)
		if e.Kind != snapshot.File || e.Size > largeRead || len(small) == mostRead || strings.Contains(path, "/objects/") || strings.HasPrefix(path, "/refs/") {
			continue
		}
		if then != nil {
			if was := then.Find(e.Path); was == nil || was.ID.IsZero() || was.Stat == e.Stat || was.Size != e.Size {
				continue
			}
		}
		small, part.Entries = append(small, e), append(part.Entries, *e)
	}
	_, err := snapshot.HashMissing(ctx, part) // of one that cannot be read the content stays unknown
	for i, e := range small {
		e.ID = part.Entries[i].ID
	}
	return err
}

// repository is a nested repository, or a submodule's, by its git dir.
func repository(dir string) *git.Repo {
	r := &git.Repo{GitDir: dir, CommonDir: dir, ObjectFormat: "sha1"}
	config, _ := atomicfile.Read(filepath.Join(dir, "config")) // without one it is sha1
	if strings.Contains(strings.ReplaceAll(strings.ToLower(string(config)), " ", ""), "objectformat=sha256") {
		r.ObjectFormat = "sha256"
	}
	return r
}

// looked is what a look found.
type looked struct {
	tops   *snapshot.Snapshot            // what the folders are themselves; paths are relative to the root directory
	within map[string]*snapshot.Snapshot // what is in each, by its path
	closed []superqode.RelPath           // folders that could not be listed, as in tops
}

// fromRoot is an absolute path as tops has it.
func fromRoot(path string) superqode.RelPath { return superqode.RelPath(strings.TrimPrefix(path, "/")) }

// has reports whether something is at an absolute path.
func (l *looked) has(path string) bool {
	if l.tops.Find(fromRoot(path)) != nil {
		return true
	}
	for dir, sn := range l.within {
		if rel, ok := strings.CutPrefix(path, dir+"/"); ok && sn.Find(superqode.RelPath(rel)) != nil {
			return true
		}
	}
	return false
}

// look lists the git folders: the common dir, and every .git in the tree. Of the
// origin's own folder it has the folder only. then is an earlier look, or nil.
func look(ctx context.Context, o Origin, then *looked) (*looked, error) {
	if then == nil {
		then = &looked{}
	}
	l := &looked{tops: o.Tree.With(nil), within: map[string]*snapshot.Snapshot{}}
	l.tops.Root = "/"
	dirs := []string{o.Top}
	for _, path := range o.Tree.Gits {
		dirs = append(dirs, path.In(o.Top))
	}
	if common := o.commonDir(); common != "" && !slices.Contains(dirs, common) {
		dirs = append(dirs, common)
	}
	for _, dir := range dirs {
		opt := snapshot.ScanOptions{Format: o.Tree.Format, Contents: snapshot.StatOnly, Previous: then.within[dir], Skip: o.skip(dir)}
		if err := l.add(ctx, dir, dir != o.Top, opt); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.tops.Entries, snapshot.ByPath)
	return l, nil
}

func (o Origin) commonDir() string {
	if o.State == nil {
		return ""
	}
	return string(o.State.CommonDir)
}

// add adds one file or folder, and what is in it.
func (l *looked) add(ctx context.Context, dir string, within bool, opt snapshot.ScanOptions) error {
	top, err := snapshot.StatEntry(dir)
	if err != nil {
		return nil //nolint:nilerr // nothing is there, as in most folders, or what is above it is told as unreadable
	}
	if top.Kind == snapshot.Link {
		if top.Link, err = os.Readlink(dir); err != nil {
			return err
		}
	}
	top.Path = fromRoot(dir)
	l.tops.Entries = append(l.tops.Entries, top)
	if !within || top.Kind != snapshot.Dir {
		return nil
	}
	sn, problems, err := snapshot.Scan(ctx, dir, opt)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrPermission):
		l.closed = append(l.closed, top.Path)
		return nil
	case err != nil:
		return fmt.Errorf("read the repository: %w", err)
	}
	l.within[dir] = sn
	for _, p := range problems {
		l.closed = append(l.closed, top.Path+"/"+p.Path)
	}
	return nil
}

// repositories lists the folders, the origin's own repository left out, that git
// would take for a repository: nested ones and those of submodules.
func (l *looked) repositories(o Origin) (dirs []string) {
	for root, sn := range l.within {
		for i := range sn.Entries {
			if path := sn.Entries[i].Path; path.Name() == "HEAD" && sn.Entries[i].Kind == snapshot.File {
				dir := filepath.Join(root, string(path.Parent()))
				if dir != o.commonDir() && l.has(dir+"/objects") {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	return dirs
}
