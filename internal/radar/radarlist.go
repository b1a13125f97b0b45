package radar

import (
	"context"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// A listing of sessions looks into their workspaces itself as long as nobody
// notices that; beyond these limits it tells what the radar of running agents, or
// `workspace conflicts`, saw last.
const (
	listedSides = 12
	listedFiles = 5000 // of all workspaces together
)

// ListedConflicts returns what would conflict among the given sessions of the
// origin around dir, and whether that was found out just now. look asks for a
// look whatever it costs.
func Listed(ctx context.Context, m *site.Host, dir string, list []state.Listed, look bool) (conflicts []Conflict, fresh bool, err error) {
	open, files := 0, 0
	for i := range list {
		l := &list[i]
		if l.State != superqode.StateActive && l.State != superqode.StatePreserved {
			continue
		}
		n := 1
		if len(l.Agents) > 0 && !l.Shared && !l.Merged {
			n = len(l.Agents)
		}
		open, files = open+n, files+n*l.Base.Files
	}
	switch {
	case open < 2:
		return nil, true, nil
	case look || open <= listedSides && files <= listedFiles:
		conflicts, err = Look(ctx, m, dir)
		return conflicts, true, err
	}
	p, err := registry.Locate(ctx, m, dir)
	if err != nil {
		return nil, false, err
	}
	conflicts, err = read(p)
	return stillOpen(conflicts, list), false, err
}

// stillOpen leaves out what concerns a session that has ended since.
func stillOpen(conflicts []Conflict, list []state.Listed) []Conflict {
	open := map[superqode.SessionID]bool{}
	for i := range list {
		open[list[i].ID] = list[i].State != superqode.StateDone
	}
	var out []Conflict
	for _, c := range conflicts {
		if open[c.A.Session] && open[c.B.Session] {
			out = append(out, c)
		}
	}
	return out
}

// ConflictsOf returns those of the conflicts that a session, or an agent in it,
// takes part in; never nil.
func ConflictsOf(list []Conflict, id superqode.SessionID) []Conflict {
	out := []Conflict{}
	for _, c := range list {
		if c.A.Session == id || c.B.Session == id {
			out = append(out, c)
		}
	}
	return out
}
