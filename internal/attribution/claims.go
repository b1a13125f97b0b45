package attribution

import (
	"bytes"
	"context"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// claimCheck decides whether agents had the right to make their changes, where
// claims are enforced. What counts are all claims that an agent was granted while
// the session lasted: by now it has let them go.
type claimCheck struct {
	*site.Site
	grants []coordinator.Lease
}

// claimCheck returns nil where claims are advice only.
func (s *Authorship) claimCheck(ctx context.Context) (*claimCheck, error) {
	if coordinator.Mode(s.Rec.Claims) != coordinator.Enforced {
		return nil, nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	grants, err := grantsOf(s.Site)
	return &claimCheck{s.Site, grants}, err
}

// grantsOf returns every claim that a session's agents have had.
func grantsOf(s *site.Site) ([]coordinator.Lease, error) {
	return coordinator.Grants(s.Project.SessionPath(s.PublicID().String()))
}

// refuses says which part of a change no claim of its agent covers, or "".
func (k *claimCheck) refuses(ctx context.Context, agent superqode.AgentID, c *merge.Change) string {
	if k == nil {
		return ""
	}
	owner := coordinator.Owner{Session: k.PublicID(), Agent: agent}
	if agent.IsZero() {
		owner.Agent, _ = superqode.ParseAgentID(owner.Session.String()) // every session's id is an agent's name, too
	}
	var own []coordinator.Lease
	for _, l := range k.grants {
		if l.Owner == owner {
			own = append(own, l)
		}
	}
	return coordinator.Check(own, owner, k.edits(ctx, c)).Reason(coordinator.Enforced)
}

// edits are the lines of the base that a change concerns. What has no lines is
// changed as a whole.
func (k *claimCheck) edits(ctx context.Context, c *merge.Change) []coordinator.Edit {
	var whole []coordinator.Edit
	for _, e := range []*snapshot.Entry{c.Old, c.New} {
		if e != nil && (len(whole) == 0 || whole[0].Path != e.Path) {
			whole = append(whole, coordinator.Edit{Path: e.Path})
		}
	}
	isText := func(e *snapshot.Entry) bool {
		return e != nil && e.Kind == snapshot.File && e.Size <= coordinator.MaxFile
	}
	if !isText(c.Old) || !isText(c.New) || c.Renamed() || c.Binary || c.Old.Mode() != c.New.Mode() {
		return whole
	}
	var base, final bytes.Buffer
	if k.Store.ReadBlob(ctx, c.Old.ID, &base) != nil || k.Store.ReadBlob(ctx, c.New.ID, &final) != nil {
		return whole
	}
	var out []coordinator.Edit
	for _, l := range coordinator.NewLineMap(base.Bytes(), final.Bytes()).Changed() {
		out = append(out, coordinator.Edit{Path: whole[0].Path, Lines: l})
	}
	return out
}

// RefuseUnclaimed returns the changes, as conflicts, that may not be applied
// where claims are enforced. What several agents did was judged when it was
// merged.
func (s *Authorship) RefuseUnclaimed(
	ctx context.Context, agent superqode.AgentID, list []merge.Change,
) (out []artifacts.ApplyConflict, err error) {
	if agent.IsZero() && len(s.Rec.Agents) > 0 {
		return nil, nil
	}
	if agent.IsZero() {
		agent = s.Rec.Agent
	}
	check, err := s.claimCheck(ctx)
	for i := range list {
		if why := check.refuses(ctx, agent, &list[i]); why != "" {
			path := list[i].Path()
			out = append(out, artifacts.ApplyConflict{
				Path: path, Kind: string(merge.ConflictClaim),
				Message: "CONFLICT (claim): " + text.Printable(path) + ": " + why,
			})
		}
	}
	return out, err
}
