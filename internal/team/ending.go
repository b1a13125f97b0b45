package team

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Several agents in one session work in a workspace each. Each of these is that
// of a session of its own, with lock, guard, kernel layer, custody and
// base, so that recovery, cleanup and everything that looks at a workspace know
// it already; Record.Parent ties it to the session that people see. Its
// workspace is made from the parent's, which nobody works in: so all begin with
// the same base, whatever the user does to the origin meanwhile, and that is
// checked. At the end what each changed is stored as the parent's (patch, log,
// artifacts, findings), the changes are merged on the base, the result is put
// into the parent's workspace, and from there on the parent ends like any other
// session. The children are removed when that is stored.

// Ending is the agents' part of the end of their session.
type Ending struct {
	*attach.Attached
	Conflicts []attribution.AgentConflict // what could not be merged, once Merge has merged for good
	// what the agents' workspaces had of the outputs asked for, once Merge has taken them
	Outputs *artifacts.Outputs
}

// MergeError says that changes of agents conflict. They are in the agents' own
// patches. It wraps superqode.ErrConflict.
type MergeError struct{ Conflicts []attribution.AgentConflict }

// Error counts the conflicts and names the first.
func (e *MergeError) Error() string {
	first := e.Conflicts[0]
	more := ""
	if n := len(e.Conflicts) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s of agents could not be merged: %s (%s)%s", text.Plural(len(e.Conflicts), "change"),
		text.Printable(first.Path.String()), first.Agent, more)
}

// Unwrap returns superqode.ErrConflict.
func (*MergeError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths that conflict.
func (e *MergeError) ErrorPaths() []string {
	var paths []string
	for _, c := range e.Conflicts {
		if !slices.Contains(paths, c.Path.String()) {
			paths = append(paths, c.Path.String())
		}
	}
	return paths
}

// Merge takes what the agents did in workspaces of their own into the session:
// it stores each one's part, merges them and puts the result into the session's
// workspace. Until that is recorded all of it can be repeated, and the agents'
// workspaces are as they left them.
func (s *Ending) Merge(ctx context.Context) (err error) {
	base, err := s.LoadBase()
	if err != nil {
		return fmt.Errorf("session %s: read its base: %w", s.Rec.ID, err)
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	if err := s.endAgents(); err != nil {
		return err
	}
	works, err := s.Works(ctx)
	if err != nil {
		return err
	}
	s.SeenWorks = works
	failpoint.Hit("agents.looked")
	m, err := s.Authorship.Merge(ctx, base, works)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.Commit(ctx); err != nil {
		return err
	}
	if s.Credits, err = m.Credits(ctx); err != nil {
		return err
	}
	failpoint.Hit("agents.merged")
	f, err := s.storeParts(ctx, m)
	if err != nil {
		return fmt.Errorf("store the agents' artifacts: %w", err)
	}
	if err := s.WriteAgents(f, s.Credits); err != nil {
		return err
	}
	failpoint.Hit("agents.stored")
	s.Conflicts = m.Conflicts
	if err := s.checkOut(ctx, m); err != nil {
		return fmt.Errorf("put the merged changes into %s: %w", s.Rec.Workspace, err)
	}
	failpoint.Hit("agents.settled")
	if err := s.Update(ctx, func(r *state.Record) { r.Merged = true }); err != nil {
		return err
	}
	failpoint.Hit("agents.gathered")
	return nil
}

// endAgents ends what is left of the agents' programs, and takes away workspaces
// that were not made to the end.
func (s *Ending) endAgents() error {
	kids, err := s.Children()
	if err != nil {
		return err
	}
	for _, l := range kids {
		c := attach.Of(s.Child(l))
		if !l.Dead {
			continue
		}
		alone, terr := c.Take() // of a superqode that was killed
		if terr != nil {
			err = errors.Join(err, terr)
			continue
		}
		err = errors.Join(err, alone.EndLeftovers())
		if l.State == superqode.StateCreated {
			err = errors.Join(err, alone.Discard())
		}
		err = errors.Join(err, c.Close())
	}
	return err
}

// Conflict is the error of what could not be merged, or not even be found,
// nil when all could.
func (s *Ending) Conflict() error {
	for _, w := range s.SeenWorks {
		if w.Gone != "" {
			return superqode.Errorf(superqode.ErrVerification, "agent %s: %s; what it did there is not known",
				w.Agent, w.Gone)
		}
	}
	if len(s.Conflicts) == 0 {
		return nil
	}
	return superqode.WithHint(&MergeError{s.Conflicts}, "superqode workspace diff --session %s --agent %s",
		s.Rec.ID, s.Conflicts[0].Agent)
}

// Keeps decides whether an agent's own workspace stays, beside the session's:
// always, where that was asked for, else of an agent that failed or that has
// changes which could not be merged.
func (s *Ending) Keeps(agent superqode.AgentID, always bool) bool {
	if always {
		return true
	}
	for _, a := range s.Rec.Agents {
		if a.Agent == agent && (a.ExitCode == nil || *a.ExitCode != 0) {
			return true
		}
	}
	for _, c := range s.Conflicts {
		if c.Agent == agent {
			return true
		}
	}
	return false
}

// Discard takes away what was made for the agents of a session that was not
// opened to the end.
func (s *Ending) Discard() error {
	kids, err := s.Children()
	if err != nil {
		return err
	}
	for _, l := range kids {
		c := attach.Of(s.Child(l))
		alone, terr := c.Take()
		if terr != nil {
			err = errors.Join(err, terr)
			continue
		}
		err = errors.Join(err, alone.Discard())
	}
	return err
}

// Leave ends the agents' own sessions or, when what they did could not be
// put together, keeps them all: the next end of the session tries again.
func (s *Ending) Leave(ctx context.Context, unmerged bool, keep func(superqode.AgentID) bool) error {
	if !unmerged {
		return s.remove(ctx, keep)
	}
	kids, err := s.Children()
	for _, l := range kids {
		c := attach.Of(s.Child(l))
		if _, terr := c.Take(); terr != nil || c.Rec.State != superqode.StateActive {
			err = errors.Join(err, terr, c.Close())
			continue
		}
		uerr := c.Update(ctx, func(r *state.Record) { r.State, r.EndedAt = superqode.StatePreserved, s.Now().UTC() })
		err = errors.Join(err, uerr, c.Close())
	}
	return err
}

// remove takes the agents' own sessions away, once all of theirs is the
// session's. Those that keep names keep their workspaces.
func (s *Ending) remove(ctx context.Context, keep func(superqode.AgentID) bool) error {
	if len(s.Rec.Agents) == 0 || s.Rec.Shared {
		return nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	kids, err := s.Children()
	if err != nil {
		return err
	}
	for _, a := range s.Rec.Agents {
		l, ok := kids[a.Agent]
		if !ok {
			continue
		}
		if derr := s.removeOne(ctx, attach.Of(s.Child(l)), keep(a.Agent)); derr != nil {
			err = errors.Join(err, fmt.Errorf("agent %s: %w", a.Agent, derr))
		}
	}
	return err
}

// removeOne ends the session of an agent's own workspace. What it left is stored
// already; what came after that, in a workspace that was kept, is salvaged, and
// then its record stays for a cleanup.
func (s *Ending) removeOne(ctx context.Context, c *attach.Attached, keep bool) (err error) {
	alone, err := c.Take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.MakeRoom(ctx)
	if keep {
		if c.Rec.State == superqode.StatePreserved {
			return nil
		}
		digest, err := s.seenDigest(c.Rec.Agent)
		if err != nil {
			return err
		}
		return c.Update(ctx, func(r *state.Record) {
			r.State, r.EndedAt = superqode.StatePreserved, s.Now().UTC()
			r.Final.Digest, r.Collected = digest, !digest.IsZero()
		})
	}
	if c.Rec.State == superqode.StatePreserved {
		digest, err := s.seenDigest(c.Rec.Agent)
		if err != nil {
			return err
		}
		if !digest.IsZero() { // looked at, and stored, by this process
			c.Rec.Final.Digest, c.Rec.Collected = digest, true
		}
		unsaved, err := c.Unsaved(ctx)
		if err == nil && unsaved != "" {
			_, err = mode.SalvageWorkspace(ctx, c.Site, "workspace of agent "+c.Rec.Agent.String()+" removed")
		}
		if err != nil {
			return err
		}
	}
	if err := s.saveLost(ctx, c); err != nil {
		return err
	}
	if err := mode.TakeAway(ctx, c.Site, true); err != nil {
		return err
	}
	failpoint.Hit("agents.taken")
	err = c.Update(ctx, func(r *state.Record) { r.State, r.EndedAt = superqode.StateDone, s.Now().UTC() })
	if err != nil {
		return err
	}
	if atomicfile.Exists(filepath.Join(c.Folder, "large")) || atomicfile.Exists(salvage.Dir(c.Folder)) {
		return alone.Clear()
	}
	if err := trash.Put(c.Folder, c.Project.TrashPath()); err != nil {
		return err
	}
	failpoint.Hit("agents.forgotten")
	return s.Store.DeleteRefs(context.WithoutCancel(ctx), c.Rec.ID)
}

// seenDigest is the digest of what an agent's workspace was found to hold, zero
// when this value did not look.
func (s *Ending) seenDigest(agent superqode.AgentID) (superqode.Digest, error) {
	for _, w := range s.SeenWorks {
		if w.Agent == agent && w.Final != nil {
			return w.Final.Digest()
		}
	}
	return superqode.Digest{}, nil
}

// saveLost moves large files of an agent's that are in no patch and not in the
// session's workspace either, since they conflict, into that agent's folder.
func (s *Ending) saveLost(ctx context.Context, c *attach.Attached) error {
	f, err := s.ReadAgents()
	if err != nil || f == nil || !atomicfile.Exists(string(c.Rec.Workspace)) {
		return err
	}
	at := slices.IndexFunc(f.Agents, func(r attribution.AgentResult) bool { return r.Agent == c.Rec.Agent })
	if at < 0 {
		return nil
	}
	for _, k := range f.Agents[at].Conflicts {
		e, err := entryAt(c.WorkDir(), superqode.RelPath(k.Path))
		if err != nil {
			return err
		}
		if e.IsLarge() {
			if _, err := c.MoveLarge(ctx, c.WorkDir(), []snapshot.Entry{*e}); err != nil {
				return err
			}
		}
	}
	return nil
}

// entryAt looks at one path of a workspace; nil where nothing is.
func entryAt(dir string, path superqode.RelPath) (*snapshot.Entry, error) {
	skip := func(p superqode.RelPath, _ snapshot.Kind) bool { return !superqode.Within(path, p) }
	opt := snapshot.ScanOptions{Format: snapshot.SHA256, Contents: snapshot.StatOnly, Skip: skip}
	sn, _, err := snapshot.Scan(context.Background(), dir, opt)
	if err != nil {
		return nil, err
	}
	return sn.Find(path), nil
}
