package session

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// The claims of an origin lie in its project's folder, so that all its sessions,
// and whoever works in the origin itself, see the same ones. The program in a
// session asks its supervisor (claimdesk.go); everybody else comes this way.

// Claims are the claims of one origin as a command outside of sessions works
// with them.
type Claims struct {
	Table   *coordinator.Table
	Root    string              // what the paths of the claims are relative to
	Session superqode.SessionID // whose owner's claims it makes; zero: of nobody's session

	m *Manager
	p state.Project
	s *Session // with a Session
}

// Claims returns the claims of the origin around dir. ref may name a session, or
// be "": then the claims are made outside of any. Nothing is made on disk.
func (m *Manager) Claims(ctx context.Context, dir, ref string) (*Claims, error) {
	if ref != "" {
		l, err := m.find(ctx, dir, ref)
		if err != nil {
			return nil, err
		}
		s := m.session(l)
		return &Claims{Table: coordinator.OpenTable(s.Project.Dir), Root: string(l.Workspace), Session: l.ID, m: m, p: s.Project, s: s}, nil
	}
	p, err := m.locate(ctx, dir)
	if err != nil {
		return nil, err
	}
	top, err := claimRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Claims{Table: coordinator.OpenTable(p.Dir), Root: top, m: m, p: p}, nil
}

// claimRoot returns the root of the work tree around dir, or the directory that
// is an origin of its own.
func claimRoot(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", site.NotFoundOr(err, dir)
	}
	for d := real; ; d = filepath.Dir(d) {
		if commonDirOf(d) != "" {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return real, nil
		}
	}
}

// Acquire is Table.Acquire for a request of this place: it makes the project's
// folder where there is none yet, and a session remembers what it was granted.
func (c *Claims) Acquire(ctx context.Context, r coordinator.Request, opt ClaimWait) ([]coordinator.Lease, error) {
	if c.s != nil && c.s.Rec.State == superqode.StateDone {
		return nil, c.s.ended()
	}
	if !c.p.Exists() {
		o, err := c.m.Resolve(ctx, c.Root)
		if err != nil {
			return nil, err
		}
		if err := c.m.checkHome(o); err != nil {
			return nil, err
		}
		if err := c.p.Create(o.Key(), c.m.Now()); err != nil {
			return nil, err
		}
	}
	if err := c.keepBase(ctx, r.Targets); err != nil {
		return nil, err
	}
	r.Session = c.Session
	leases, err := c.Table.Acquire(ctx, r, opt.wait())
	if err == nil && c.s != nil {
		err = keepGrants(c.s.Folder, leases)
	}
	return leases, err
}

// Lines turns the lines of a file of the workspace as it is now into lines of
// the session's base; outside of sessions, see claimbase.go.
func (c *Claims) Lines(ctx context.Context, path string, lines []coordinator.Lines) ([]coordinator.Lines, error) {
	if c.s == nil {
		return c.fromBase(ctx, path, lines)
	}
	return c.s.baseLines().translate(ctx, path, lines)
}

// grants.jsonl in a session's folder has a line for every claim that its agents
// were granted. When changes are applied or merged the claims themselves are
// gone, with the agents.
func grantsPath(dir string) string { return filepath.Join(dir, "grants.jsonl") }

func keepGrants(dir string, leases []coordinator.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	if err := atomicfile.ClearWay(grantsPath(dir)); err != nil {
		return err
	}
	return ledger.Append(grantsPath(dir), leases...)
}

// grants returns every claim that the session's agents have had.
func (s *Session) grants() ([]coordinator.Lease, error) {
	leases, _, err := ledger.Read[coordinator.Lease](grantsPath(s.Project.SessionPath(s.PublicID().String())))
	return leases, err
}

// endClaims lets go what the session's agents still have when it ends.
func (s *Session) endClaims(ctx context.Context) error {
	return coordinator.OpenTable(s.Project.Dir).EndSession(ctx, s.Rec.ID)
}
