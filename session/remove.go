package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// discard undoes a session that was not opened to the end: workspace, admin
// folder and the session's own folder.
func (s *Session) discard() error {
	ctx, cancel := context.WithTimeout(context.Background(), mode.RemoveTimeout)
	defer cancel()
	var err error
	if s.Rec.Workspace != "" {
		err = mode.TakeAway(ctx, s.Site, true)
	}
	if err == nil {
		err = errors.Join(mode.Unpoint(s.Site), s.FreePorts(), s.UnnameCase(), os.RemoveAll(s.Folder))
	}
	if cerr := s.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if err != nil {
		return fmt.Errorf("undo the session: %w", err)
	}
	return nil
}

// clear deletes the working folders of a session that is done; its record,
// record, log and changes stay for `workspace list`, `diff` and `report`.
func (s *Session) clear() error {
	err := errors.Join(mode.Unpoint(s.Site), s.FreePorts(), s.UnnameCase())
	failpoint.Hit("end.unpointed")
	sockets, _ := filepath.Glob(filepath.Join(text.QuotePattern(s.Folder), "sock-*")) // the pattern is good; of supervisors that were killed
	for _, socket := range sockets {
		err = errors.Join(err, os.RemoveAll(socket))
	}
	err = errors.Join(err, trash.Put(s.AsideDir(), s.Project.TrashPath()))
	failpoint.Hit("end.trashed")
	for _, name := range []string{state.RepositorySnap, state.IgnoredFile, state.SetupBeforeFile, state.SetupAfterFile, state.SetupIgnoredFile, "bin", "exec", "hooks", "artifacts", "base.snap", "origin.snap", "state.json", "state", "excludes", "seen.json", "tmp"} {
		path := filepath.Join(s.Folder, name) // tmp last: as long as it stands the session is looked at as one that may have died
		if os.RemoveAll(path) != nil {        // a folder without permissions, say: the sweep can cope
			err = errors.Join(err, trash.Put(path, s.Project.TrashPath()))
		}
	}
	return err
}
