// Package attach is a session in the hands of one process: its place, its programs,
// whose its changes are, and the lock that the process holds on it. Several
// processes may share a session; only one that holds it alone may end it.
package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/gitfiles"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/linked"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Attached is a session as one process works on it. Methods are not safe for
// concurrent use, but several processes may be attached to one session.
type Attached struct {
	*site.Site
	*attribution.Authorship
	*program.Program
	ReportOnly bool // cleanup took the session's folder: only its report is known

	unlock func() error
}

// At makes the Attached of a place without taking any lock.
func At(place *site.Site) *Attached { return Of(attribution.Of(place)) }

// Of is At for a place whose changes somebody has looked at already.
func Of(authors *attribution.Authorship) *Attached {
	return &Attached{Site: authors.Site, Authorship: authors, Program: &program.Program{Site: authors.Site, Authors: authors}}
}

// Share attaches to a session that exists, beside others. One that has ended needs
// no lock, and one that its process holds alone can be looked at: Held is false then.
func Share(place *site.Site) (*Attached, error) {
	s := At(place)
	if s.Rec.State == superqode.StateDone {
		return s, nil
	}
	if err := s.share(); errors.Is(err, lockfile.ErrHeld) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Attached) share() (err error) {
	if s.unlock, err = lockfile.TryShare(state.LockPath(s.Folder)); err != nil {
		return err
	}
	if err := s.Reload(); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Held reports whether this process has a lock on the session.
func (s *Attached) Held() bool { return s.unlock != nil }

// Alone is a session that this process holds alone: what undoes, ends or reverts it
// is its. Claim, Own, Await and Take make one.
type Alone struct{ *Attached }

// Claim takes the lock of a session alone; the error is lockfile.ErrHeld where
// anybody has it.
func (s *Attached) Claim() (_ Alone, err error) {
	s.unlock, err = lockfile.TryLock(state.LockPath(s.Folder))
	return Alone{s}, err
}

// Await is Own for who may wait until others have left the session.
func (s *Attached) Await(ctx context.Context, atMost time.Duration) (_ Alone, err error) {
	wait, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	if s.unlock, err = lockfile.Lock(wait, state.LockPath(s.Folder)); err == nil {
		return Alone{s}, s.Reload()
	}
	if ctx.Err() == nil && wait.Err() != nil {
		err = s.InUse()
	}
	return Alone{}, err
}

// Close releases what the session holds and ends nothing.
func (s *Attached) Close() error {
	err := s.Unmount()
	if s.unlock == nil {
		return err
	}
	err = errors.Join(err, s.unlock())
	s.unlock = nil
	return err
}

// Own takes the session for this process alone, as ending it requires.
func (s *Attached) Own() (Alone, error) {
	if err := s.Close(); err != nil {
		return Alone{}, err
	}
	a, err := s.Claim()
	if errors.Is(err, lockfile.ErrHeld) {
		return Alone{}, s.InUse()
	}
	if err != nil {
		return Alone{}, err
	}
	return a, s.Reload()
}

// InUse is the error of what needs a lock that another process holds.
func (s *Attached) InUse() error {
	runs, _ := program.Runs(&state.Listed{Record: s.Rec, Dir: s.Folder}) // only for the hint
	for _, r := range runs {
		if r.State == program.RunRunning {
			return superqode.WithHint(superqode.Errorf(superqode.ErrLocked, "session %s is in use: its run %d is under way (%s)", s.Rec.ID, r.Run, text.Printable(strings.Join(r.Command, " "))),
				"superqode workspace kill --session %s --run %d, or superqode workspace end --session %s --force", s.Rec.ID, r.Run, s.Rec.ID)
		}
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrLocked, "session %s is in use by another process", s.Rec.ID), "wait for it, or end the program that runs there")
}

// Hold keeps a cleanup away from a session that has ended.
func (s *Attached) Hold() error {
	err := s.share()
	if errors.Is(err, lockfile.ErrHeld) {
		return s.InUse()
	}
	return err
}

// Take holds the session alone where neither this process nor another one does.
func (s *Attached) Take() (Alone, error) {
	if s.unlock != nil {
		return Alone{s}, nil
	}
	a, err := s.Claim()
	if errors.Is(err, lockfile.ErrHeld) { // by this process, which opened it
		err = nil
	}
	return a, err
}

// Discard undoes a session that was not opened to the end: workspace, admin
// folder and the session's own folder.
func (s Alone) Discard() error {
	ctx, cancel := context.WithTimeout(context.Background(), mode.RemoveTimeout)
	defer cancel()
	var err error
	if s.Rec.Workspace != "" {
		err = mode.TakeAway(ctx, s.Site, true)
	}
	if err == nil {
		err = errors.Join(s.Unpoint(), s.FreePorts(), s.UnnameCase(), s.RemoveTmp(ctx), trash.Put(s.Folder, s.Project.TrashPath())) // at once: half a folder could be a lost session's
	}
	if cerr := s.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if err != nil {
		return fmt.Errorf("undo the session: %w", err)
	}
	return nil
}

// Clear deletes the working folders of a session that is done; its
// record, log and changes stay for `workspace list`, `diff` and `report`.
func (s Alone) Clear() error {
	err := errors.Join(s.Unpoint(), s.FreePorts(), s.UnnameCase())
	failpoint.Hit("end.unpointed")
	sockets, _ := filepath.Glob(filepath.Join(text.QuotePattern(s.Folder), "sock-*")) // the pattern is good; of supervisors that were killed
	for _, socket := range sockets {
		err = errors.Join(err, os.RemoveAll(socket))
	}
	err = errors.Join(err, trash.Put(s.AsideDir(), s.Project.TrashPath()))
	failpoint.Hit("end.trashed")
	for _, name := range []string{state.RepositorySnap, state.IgnoredFile, state.SetupBeforeFile, state.SetupAfterFile, state.SetupIgnoredFile, "bin", "exec", "hooks", "artifacts", "base.snap", "origin.snap", "state.json", "state", "commit.index", gitfiles.Folder, "seen.json", "ignored-base", "reserve", state.PrivateTmp, state.PrivateRun, "tmp"} {
		path := filepath.Join(s.Folder, name) // tmp last: as long as it stands the session is looked at as one that may have died
		if os.RemoveAll(path) != nil {        // a folder without permissions, say: the sweep can cope
			err = errors.Join(err, trash.Put(path, s.Project.TrashPath()))
		}
	}
	return err
}

// EndAbandoned is EndLeftovers for a session whose last command's supervisor was
// killed: nobody ended what that had started.
func (s Alone) EndAbandoned() error {
	sockets, err := filepath.Glob(filepath.Join(text.QuotePattern(s.Folder), "sock-*"))
	if err != nil || len(sockets) == 0 && (s.Rec.Runs == 0 || s.Rec.ExitCode != nil) {
		return err
	}
	return s.EndLeftovers()
}

// EndLeftovers ends what still runs of a dead session's programs. Each has its
// run folder in its environment, which no other process has.
func (s Alone) EndLeftovers() error {
	runs, err := filepath.Glob(filepath.Join(text.QuotePattern(s.Folder), "tmp", "run-*"))
	if err != nil {
		return err
	}
	var markers []string
	if s.Rec.State == superqode.StateCreated {
		markers = append(markers, linked.Marker(s.Rec.ID))
	}
	for _, dir := range runs {
		markers = append(markers, program.Marker(dir))
	}
	for _, marker := range markers {
		left, err := runner.EndMarked(marker)
		for _, p := range left {
			s.Warn(fmt.Sprintf("process %d, left by a superqode that was killed, was ended: %s", p.PID, text.Printable(strings.Join(p.Args, " "))))
		}
		if err != nil {
			return fmt.Errorf("end the dead session's processes: %w", err)
		}
	}
	return nil
}

// Guard is the session's guard, as package layers makes it.
func (s *Attached) Guard() *layers.Guard { return layers.Of(s.Site) }

// Findings is what the session's programs found, and its report.
func (s *Attached) Findings() *findings.Book {
	b := s.Program.Findings()
	b.Gone = s.ReportOnly
	return b
}

// Beside is the same session at another view of its place, under the same lock.
func (s *Attached) Beside(place *site.Site) *Attached {
	b := At(place)
	b.unlock = s.unlock
	return b
}
