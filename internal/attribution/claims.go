package attribution

import (
	"bytes"
	"context"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// claimJudge returns what decides whether an agent had the right to make a
// change, or nil where claims are advice only. The answer is why it had not, ""
// for a change that is right. What counts are all claims that the agent was
// granted while the session lasted: by now it has let them go.
func (s *Authorship) claimJudge(ctx context.Context) (func(w *AgentWork, c *merge.Change) string, error) {
	if coordinator.Mode(s.Rec.Claims) != coordinator.Enforced {
		return nil, nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	grants, err := s.grants()
	if err != nil {
		return nil, err
	}
	return func(w *AgentWork, c *merge.Change) string {
		return s.unclaimed(ctx, s.claimOwner(w.Agent), grants, c)
	}, nil
}

// claimOwner is in whose name an agent of the session claims.
func (s *Authorship) claimOwner(agent superqode.AgentID) coordinator.Owner {
	o := coordinator.Owner{Session: s.PublicID(), Agent: agent}
	if agent.IsZero() {
		o.Agent, _ = superqode.ParseAgentID(o.Session.String()) // every session's id is an agent's name, too
	}
	return o
}

// unclaimed says which part of a change no claim of its agent covers, or "".
func (s *Authorship) unclaimed(ctx context.Context, o coordinator.Owner, grants []coordinator.Lease, c *merge.Change) string {
	own := make([]coordinator.Lease, 0, len(grants))
	for _, l := range grants {
		if l.Owner == o {
			own = append(own, l)
		}
	}
	return coordinator.Check(own, o, s.editsOf(ctx, c)).Reason(coordinator.Enforced)
}

// editsOf are the lines of the base that a change concerns. What has no lines is
// changed as a whole.
func (s *Authorship) editsOf(ctx context.Context, c *merge.Change) []coordinator.Edit {
	var out []coordinator.Edit
	for _, e := range []*snapshot.Entry{c.Old, c.New} {
		if e != nil && (len(out) == 0 || out[0].Path != e.Path) {
			out = append(out, coordinator.Edit{Path: e.Path})
		}
	}
	if c.Old == nil || c.New == nil || c.Renamed() || c.Binary || c.Old.Kind != snapshot.File || c.New.Kind != snapshot.File || c.Old.Mode() != c.New.Mode() {
		return out
	}
	var base, final bytes.Buffer
	if c.Old.Size > coordinator.MaxFile || c.New.Size > coordinator.MaxFile || s.Store.ReadBlob(ctx, c.Old.ID, &base) != nil || s.Store.ReadBlob(ctx, c.New.ID, &final) != nil {
		return out
	}
	path := out[0].Path
	out = nil
	for _, l := range coordinator.NewLineMap(base.Bytes(), final.Bytes()).Changed() {
		out = append(out, coordinator.Edit{Path: path, Lines: l})
	}
	return out
}

// RefuseUnclaimed returns the changes, as conflicts, that may not be applied
// where claims are enforced. What several agents did was judged when it was
// merged.
func (s *Authorship) RefuseUnclaimed(ctx context.Context, agent superqode.AgentID, list []merge.Change) (out []artifacts.ApplyConflict, err error) {
	if coordinator.Mode(s.Rec.Claims) != coordinator.Enforced || agent.IsZero() && len(s.Rec.Agents) > 0 {
		return nil, nil
	}
	if agent.IsZero() {
		agent = s.Rec.Agent
	}
	grants, err := s.grants()
	for i := range list {
		if why := s.unclaimed(ctx, s.claimOwner(agent), grants, &list[i]); why != "" {
			p, _ := superqode.ParseRelPath(list[i].Path()) // it came out of a snapshot
			out = append(out, artifacts.ApplyConflict{Path: p, Kind: string(merge.ConflictClaim), Message: "CONFLICT (claim): " + text.Printable(list[i].Path()) + ": " + why})
		}
	}
	return out, err
}

// grants returns every claim that the session's agents have had.
func (s *Authorship) grants() ([]coordinator.Lease, error) {
	return coordinator.Grants(s.Project.SessionPath(s.PublicID().String()))
}
