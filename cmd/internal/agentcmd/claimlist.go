package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/text"
)

// claimJSON is one claim, or a place in the queue, as the documents show it.
type claimJSON struct {
	Fence     uint64                 `json:"fence"`
	Target    string                 `json:"target"`
	Kind      coordinator.TargetKind `json:"kind"`
	Path      string                 `json:"path"`
	PathBytes string                 `json:"path_bytes,omitempty"`
	Start     int                    `json:"start"` // 0: the whole file
	End       int                    `json:"end"`
	AgentID   superqode.AgentID      `json:"agent_id"`
	SessionID superqode.SessionID    `json:"session_id"`
	Since     time.Time              `json:"since"`
	Until     *time.Time             `json:"until"`  // null: no time
	Holder    string                 `json:"holder"` // run, process or none: whose end ends it
	PID       int                    `json:"pid,omitempty"`
}

func toClaimJSON(l coordinator.Lease) claimJSON {
	j := claimJSON{
		Fence: l.Fence, Kind: l.Target.Kind, Start: l.Target.Lines.Start, End: l.Target.Lines.End,
		AgentID: l.Agent, SessionID: l.Session, Since: l.Since, Holder: "none", PID: l.Holder.PID,
	}
	j.Target, _ = superqode.JSONPath(l.Target.String())
	j.Path, j.PathBytes = superqode.JSONPath(l.Target.Path)
	if !l.Until.IsZero() {
		j.Until = &l.Until
	}
	switch {
	case l.Holder.Lock != "":
		j.Holder = "run"
	case l.Holder.PID != 0:
		j.Holder = "process"
	}
	return j
}

func claimsJSON(leases []coordinator.Lease) (out []claimJSON) {
	for _, l := range leases {
		out = append(out, toClaimJSON(l))
	}
	return out
}

// waitingJSON is a request in the queue.
type waitingJSON struct {
	Ticket    uint64              `json:"ticket"`
	Targets   []string            `json:"targets"`
	AgentID   superqode.AgentID   `json:"agent_id"`
	SessionID superqode.SessionID `json:"session_id"`
	Since     time.Time           `json:"since"`
}

func toWaitingJSON(list []coordinator.Waiter) (out []waitingJSON) {
	for _, w := range list {
		j := waitingJSON{Ticket: w.Ticket, AgentID: w.Agent, SessionID: w.Session, Since: w.Since}
		for _, t := range w.Targets {
			text, _ := superqode.JSONPath(t.String())
			j.Targets = append(j.Targets, text)
		}
		out = append(out, j)
	}
	return out
}

type edgeJSON struct {
	AgentID   superqode.AgentID   `json:"agent_id"`
	SessionID superqode.SessionID `json:"session_id"`
	Target    string              `json:"target"`
	Of        superqode.AgentID   `json:"held_by"`
	OfSession superqode.SessionID `json:"held_by_session"`
	Queued    bool                `json:"queued"`
}

// printConflict prints the document of a refusal, and returns the error.
func (p *claimPlace) printConflict(c *coordinator.ConflictError, err error) error {
	if !p.a.Flags.JSON {
		return err
	}
	var circle []edgeJSON
	for _, e := range c.Circle {
		text, _ := superqode.JSONPath(e.Target.String())
		circle = append(circle, edgeJSON{e.From.Agent, e.From.Session, text, e.To.Agent, e.To.Session, e.Queued})
	}
	return errors.Join(p.a.PrintFields("granted", false, "held", claimsJSON(c.Held), "ahead", toWaitingJSON(c.Ahead),
		"circle", circle, "error", app.ErrorField(err)), err)
}

// ClaimList lists claims.
type ClaimList struct {
	claimWho
}

// Run prints a table: the claims of all agents, or of one, then the queue.
func (c *ClaimList) Run(ctx context.Context, a *app.App) error {
	only := c.Agent
	c.Agent = ""
	p, err := c.place(ctx, a, false)
	if err != nil {
		return err
	}
	answer, err := p.Ask(ctx, coordinator.OpList, coordinator.Call{})
	if err != nil {
		return err
	}
	var shown []coordinator.Lease
	for _, l := range answer.Claims {
		if (only == "" || l.Agent.String() == only) && (c.Session == "" || l.Session == p.claims.Session) {
			shown = append(shown, l)
		}
	}
	if a.Flags.JSON {
		return a.PrintFields("claims", claimsJSON(shown), "waiting", toWaitingJSON(answer.Waiting))
	}
	if len(shown)+len(answer.Waiting) == 0 {
		a.Note("no claims")
		return nil
	}
	return a.Table([]string{"FENCE", "AGENT", "SESSION", "SINCE", "UNTIL", "CLAIM"}, claimRows(shown, answer.Waiting))
}

func claimRows(leases []coordinator.Lease, waiting []coordinator.Waiter) [][]string {
	const hour = "15:04:05"
	var rows [][]string
	for _, l := range leases {
		until := "released"
		switch {
		case !l.Until.IsZero():
			until = l.Until.Local().Format(hour)
		case l.Holder.PID != 0:
			until = "end of " + strconv.Itoa(l.Holder.PID)
		case l.Holder.Lock != "":
			until = "end of run"
		}
		rows = append(rows, []string{
			strconv.FormatUint(l.Fence, 10), l.Agent.String(), cmp.Or(l.Session.String(), "-"),
			l.Since.Local().Format(hour), until, text.QuotePath(l.Target.String()),
		})
	}
	for _, w := range waiting {
		for _, t := range w.Targets {
			rows = append(rows, []string{
				"waits", w.Agent.String(), cmp.Or(w.Session.String(), "-"),
				w.Since.Local().Format(hour), "-", text.QuotePath(t.String()),
			})
		}
	}
	return rows
}

// ClaimWait waits.
type ClaimWait struct {
	claimWho
	Wait  *waitFlag `aliases:"timeout" placeholder:"DUR" help:"Give up after DUR (default: never)."`
	Files []string  `arg:"" name:"file" sep:"none" help:"What to wait for, as for claim acquire."`
}

// waitPause is how often claim wait looks.
const waitPause = 50 * time.Millisecond

// Run returns when nobody else has a claim on the files.
func (c *ClaimWait) Run(ctx context.Context, a *app.App) error {
	p, err := c.place(ctx, a, false)
	if err != nil {
		return err
	}
	targets, err := p.targets(c.Files)
	if err != nil {
		return err
	}
	for start := time.Now(); ; {
		answer, err := p.Ask(ctx, coordinator.OpList, coordinator.Call{})
		if err != nil {
			return err
		}
		held := coordinator.Held(answer.Claims, answer.Owner, targets)
		if len(held) == 0 {
			if a.Flags.JSON {
				return a.PrintFields("free", true)
			}
			return nil
		}
		if waited := time.Since(start); c.Wait != nil && !c.Wait.Forever && waited >= c.Wait.For {
			conflict := coordinator.Conflict{Wanted: targets, Held: held, Waited: waited}
			err := &coordinator.ConflictError{Conflict: conflict}
			return p.printConflict(err, superqode.WithHint(err, "superqode claim list"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(waitPause):
		}
	}
}
