package mode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// CommitIndex is the file with the index of the commit that an overlay begins with; there
// is none where it begins with what the user sees.
func CommitIndex(s *site.Site) string { return filepath.Join(s.Folder, "commit.index") }

// ofCommit lays over a state what turns it into the clean tree of a commit. What git
// ignores comes along as it is.
func (k overlayKind) ofCommit(ctx context.Context, s *site.Site, st *frozen.State, commit string) (*frozen.State, error) {
	repo := s.Source.Repo
	scratch := filepath.Join(string(s.Rec.Workspace), "commit")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch) // what is left goes with the workspace
	run := func(stdin []byte, args ...string) error {
		return repo.Run(ctx, git.Cmd{Dir: repo.TopLevel, Args: append([]string{"-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"}, args...),
			Env: []string{"GIT_INDEX_FILE=" + CommitIndex(s), "GIT_LFS_SKIP_SMUDGE=1"}, Stdin: bytes.NewReader(stdin)})
	}
	if err := run(nil, "read-tree", "-m", commit); err != nil { // -m: as sparse as the work tree
		return nil, err
	}
	wanted, err := git.ReadIndex(CommitIndex(s), s.Source.Format)
	if err != nil {
		return nil, err
	}
	var write bytes.Buffer
	for _, ie := range wanted.Entries() {
		if e := st.Base.Find(ie.Path); linked.IsFile(&ie) && (e == nil || !linked.Holds(&ie, e)) {
			write.WriteString(string(ie.Path) + "\x00")
		}
	}
	gone, err := k.notIn(ctx, s, st, wanted)
	if err != nil {
		return nil, err
	}
	if write.Len() > 0 {
		if err := run(write.Bytes(), "checkout-index", "-z", "--stdin", "--prefix="+scratch+"/"); err != nil {
			return nil, err
		}
	}
	hidden := setOf(gone)
	for _, p := range gone { // a folder that stays, and loses something
		dir := p.Parent()
		if _, file := wanted.Search(dir); file || hidden[dir] {
			continue
		}
		if err := os.MkdirAll(dir.In(scratch), 0o700); err != nil {
			return nil, err
		}
	}
	made, problems, err := snapshot.Scan(ctx, scratch, snapshot.ScanOptions{Format: st.Base.Format})
	if err = snapshot.WithProblems(err, problems); err != nil {
		return nil, err
	}
	want := made.With(nil)
	var changed, folders []snapshot.Entry
	for was, e := range snapshot.Join(st.Base.Entries, made.Entries) {
		switch {
		case was != nil && (e == nil || e.Kind == snapshot.Dir && was.Kind == snapshot.Dir):
			if !hidden.covers(was.Path) {
				want.Entries = append(want.Entries, *was)
			}
			if e != nil {
				folders = append(folders, *was)
			}
		default:
			want.Entries, changed = append(want.Entries, *e), append(changed, *e)
		}
	}
	if err := treecopy.Adjust(ctx, scratch, folders); err != nil {
		return nil, err
	}
	over, err := frozen.Over(ctx, frozen.Options{}, filepath.Join(string(s.Rec.Workspace), "layer"), st, want, changed, gone)
	if err != nil {
		return nil, fmt.Errorf("lay %s over what you see: %w", commit, err)
	}
	return over, linked.CopyIndex(CommitIndex(s), CommitIndex(s), s.Source.Format, hooks.MonitorToken, nil, over.Base)
}

// notIn lists what a state shows and an index does not name, but for what git ignores and
// what lies in submodules.
func (k overlayKind) notIn(ctx context.Context, s *site.Site, st *frozen.State, wanted *git.Index) (gone []superqode.RelPath, err error) {
	index, err := originIndex(s)
	if err != nil {
		return nil, err
	}
	tree, err := linked.IgnoreTree(ctx, s.Source.Repo, s.Source.Top)
	if err != nil {
		return nil, err
	}
	ignored := setOf(linked.IgnoredIn(st.Base, index, tree))
	holds := pathSet{} // the folders of what is ignored
	for p := range ignored {
		for p = p.Parent(); p != "" && !holds[p]; p = p.Parent() {
			holds[p] = true
		}
	}
	for i := range st.Base.Entries {
		e := &st.Base.Entries[i]
		_, named := wanted.Search(e.Path)
		if e.Kind == snapshot.Dir && !named {
			_, named = wanted.SearchDir(e.Path)
			named = named || holds[e.Path]
		}
		if !named && !ignored.covers(e.Path) && !inModule(wanted, e.Path) {
			gone = append(gone, e.Path)
		}
	}
	return gone, nil
}

// inModule reports whether a path lies in a submodule of an index.
func inModule(x *git.Index, path superqode.RelPath) bool {
	for p := path.Parent(); p != ""; p = p.Parent() {
		if i, ok := x.Search(p); ok {
			ie := x.At(i)
			return !linked.IsFile(&ie)
		}
	}
	return false
}
