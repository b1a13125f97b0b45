package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// disband takes the agents' own sessions away, once all of theirs is the
// session's. Those that keep names keep their workspaces.
func (s *Session) disband(ctx context.Context, keep func(superqode.AgentID) bool) error {
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
		if derr := s.dismiss(ctx, s.childSession(s.Child(l)), keep(a.Agent)); derr != nil {
			err = errors.Join(err, fmt.Errorf("agent %s: %w", a.Agent, derr))
		}
	}
	return err
}

// leaveAgents ends the agents' own sessions or, when what they did could not be
// put together, keeps them all: the next end of the session tries again.
func (s *Session) leaveAgents(ctx context.Context, gathered error, keep func(superqode.AgentID) bool) error {
	if gathered == nil {
		return s.disband(ctx, keep)
	}
	kids, err := s.Children()
	for _, l := range kids {
		c := s.childSession(s.Child(l))
		if herr := holdChild(c); herr != nil || c.Rec.State != superqode.StateActive {
			err = errors.Join(err, herr, c.Close())
			continue
		}
		uerr := c.Update(ctx, func(r *state.Record) { r.State, r.EndedAt = superqode.StatePreserved, s.Now().UTC() })
		err = errors.Join(err, uerr, c.Close())
	}
	return err // collectAfter reports gathered
}

// dismiss ends the session of an agent's own workspace. What it left is stored
// already; what came after that, in a workspace that was kept, is salvaged, and
// then its record stays for a cleanup.
func (s *Session) dismiss(ctx context.Context, c *Session, keep bool) (err error) {
	if err := holdChild(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if keep {
		if c.Rec.State == superqode.StatePreserved {
			return nil
		}
		digest, err := s.seenDigest(c.Rec.Agent)
		if err != nil {
			return err
		}
		return c.Update(ctx, func(r *state.Record) {
			r.State, r.Final.Digest, r.Collected, r.EndedAt = superqode.StatePreserved, digest, !digest.IsZero(), s.Now().UTC()
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
		unsaved, err := c.unsaved(ctx)
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
	if err := c.Update(ctx, func(r *state.Record) { r.State, r.EndedAt = superqode.StateDone, s.Now().UTC() }); err != nil {
		return err
	}
	if atomicfile.Exists(filepath.Join(c.Folder, "large")) || atomicfile.Exists(salvage.Dir(c.Folder)) {
		return c.clear()
	}
	if err := trash.Put(c.Folder, c.Project.TrashPath()); err != nil {
		return err
	}
	failpoint.Hit("agents.forgotten")
	return s.Store.DeleteRefs(context.WithoutCancel(ctx), c.Rec.ID)
}

// seenDigest is the digest of what an agent's workspace was found to hold, zero
// when this value did not look.
func (s *Session) seenDigest(agent superqode.AgentID) (superqode.Digest, error) {
	for _, w := range s.SeenWorks {
		if w.Agent == agent && w.Final != nil {
			return w.Final.Digest()
		}
	}
	return superqode.Digest{}, nil
}

// saveLost moves large files of an agent's that are in no patch and not in the
// session's workspace either, since they conflict, into that agent's folder.
func (s *Session) saveLost(ctx context.Context, c *Session) error {
	f, err := s.ReadAgents()
	if err != nil || f == nil || !atomicfile.Exists(string(c.Rec.Workspace)) {
		return err
	}
	at := slices.IndexFunc(f.Agents, func(r attribution.AgentResult) bool { return r.Agent == c.Rec.Agent })
	if at < 0 {
		return nil
	}
	for _, k := range f.Agents[at].Conflicts {
		e, err := entryAt(string(c.Rec.Workspace), string(k.Path))
		if err != nil {
			return err
		}
		if e.IsLarge() {
			if _, err := c.MoveLarge(ctx, string(c.Rec.Workspace), []snapshot.Entry{*e}); err != nil {
				return err
			}
		}
	}
	return nil
}

// entryAt looks at one path of a workspace; nil where nothing is.
func entryAt(dir, path string) (*snapshot.Entry, error) {
	sn, _, err := snapshot.Scan(context.Background(), dir, snapshot.ScanOptions{Format: snapshot.SHA256, Contents: snapshot.StatOnly, Skip: func(p string, _ snapshot.Kind) bool {
		return p != path && !pathAbove(p, path)
	}})
	if err != nil {
		return nil, err
	}
	return sn.Find(path), nil
}

// pathAbove reports whether dir is a folder above path.
func pathAbove(dir, path string) bool {
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// holdChild takes the lock of an agent's own workspace, as ending it needs.
func holdChild(c *Session) error {
	if c.unlock != nil {
		return nil
	}
	unlock, err := lockfile.TryLock(state.LockPath(c.Folder))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil // by this process, which opened it
	}
	if err != nil {
		return err
	}
	c.unlock = unlock
	return nil
}
