package gitdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// mostBeside bounds how many branches, tags and stashes of a session are kept: each
// costs three processes of git.
const mostBeside = 20

// keepBeside copies into the store what the session's own git directory holds beside
// the history of its HEAD: commits of other branches and tags, and stashes. They are
// below refs/superqode/<session>/beside, and the session says so.
func keepBeside(ctx context.Context, s *site.Site, head string) error {
	dir := dirOf(s)
	if !atomicfile.Exists(filepath.Join(dir, "HEAD")) {
		return nil
	}
	old, err := baseCommits(ctx, s)
	if err != nil {
		return err
	}
	old = append(old, stashed(string(s.Rec.CommonDir))...)
	if validObject(head) {
		old = append(old, head)
	}
	refs := refsIn(dir)
	found := map[string]string{} // by id: where several names are one, the first
	for i, id := range stashed(dir) {
		found[id] = "stash-" + strconv.Itoa(i)
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if id := refs[name]; found[id] == "" && !strings.HasPrefix(name, "refs/remotes/") {
			found[id] = strings.TrimPrefix(name, "refs/")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	var kept []string
	for _, id := range slices.Sorted(maps.Keys(found)) {
		ref := s.Ref("beside/" + found[id])
		if !validObject(id) || slices.Contains(old, id) || !validRef(ref) {
			continue
		}
		if len(kept) == mostBeside {
			s.Warn(fmt.Sprintf("of the branches, tags and stashes of the session only %d are kept", mostBeside))
			break
		}
		if err := s.OpenStore(ctx); err != nil {
			return err
		}
		n, err := s.Store.CopyCommits(ctx, store.CopyCommits{Ref: ref, Head: id, Not: old, Objects: filepath.Join(dir, "objects")})
		switch {
		case errors.Is(err, store.ErrIncomplete): // there is nothing to keep
			s.Warn(fmt.Sprintf("the session's %s is not kept: %v", text.Printable(found[id]), err))
		case err != nil:
			return fmt.Errorf("keep %s: %w", text.Printable(found[id]), err)
		case n > 0:
			kept = append(kept, found[id])
		}
	}
	if len(kept) > 0 {
		slices.Sort(kept)
		s.Rec.Beside = state.Merged(s.Rec.Beside, kept)
		s.Warn(fmt.Sprintf("commits that HEAD does not hold are kept, too (%s): git fetch %s '%s/*:refs/%s/*'", text.FirstOf(kept),
			text.QuotePOSIX(s.Project.StorePath()), s.Ref("beside"), s.Rec.ID))
	}
	return nil
}

// stashed are the commits of a repository's stash, the newest first. The reflog has
// them: old id, new id, who and when, one line for each (git-reflog(1)).
func stashed(common string) (ids []string) {
	path := filepath.Join(common, "logs", "refs", "stash")
	if st, err := os.Lstat(path); err != nil || st.Size() > maxLogs {
		return nil
	}
	log, err := atomicfile.Read(path)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(log) {
		if f := strings.Fields(string(line)); len(f) > 1 && validObject(f[1]) {
			ids = append(ids, f[1])
		}
	}
	slices.Reverse(ids)
	return ids
}
