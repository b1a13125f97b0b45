// Package agentcmd has the commands by which agents share files: claims on lines, and what each has changed.
package agentcmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/text"
)

// defaultTTL ends a claim that neither a process nor a time of its own ends.
const defaultTTL = time.Hour

// claimWho names the owner of claims.
type claimWho struct {
	app.SessionFlag
	Agent string `predictor:"agent" placeholder:"NAME" help:"The owner of the claims (default: $$SUPERQODE_AGENT_ID; inside a session the run's own agent)."`
}

// claimPlace is how a command reaches the claims: by the session's supervisor
// when a program of the session asks, else by the state's own files.
type claimPlace struct {
	coordinator.Asker
	a      *app.App
	claims *coordinator.Claims // nil inside of a session
	roots  []string
}

func (w claimWho) place(ctx context.Context, a *app.App, needAgent bool) (*claimPlace, error) {
	name := w.Agent
	if name == "" && w.Session == "" {
		name = a.Getenv("SUPERQODE_AGENT_ID")
	}
	var agent superqode.AgentID
	if name != "" {
		var err error
		if agent, err = app.ParseAgent(name); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "--agent: %v", err)
		}
	}
	if w.Session == "" && a.Getenv("SUPERQODE_SOCKET") != "" {
		roots := []string{a.Getenv("SUPERQODE_WORKSPACE"), a.Getenv("SUPERQODE_ORIGIN")}
		return &claimPlace{Asker: coordinator.Supervised{Env: a.Env, Agent: agent}, a: a, roots: roots}, nil
	}
	if name == "" && needAgent {
		err := superqode.Errorf(superqode.ErrUsage, "outside of a session, --agent is required")
		return nil, superqode.WithHint(err, "superqode claim … --agent NAME")
	}
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	claims, err := m.Claims(ctx, a.Flags.Repo, w.Ref(a))
	if err != nil {
		return nil, err
	}
	claims.Agent = agent
	roots := []string{claims.Root}
	if !claims.Session.IsZero() {
		roots = append(roots, app.OriginDir(a.Flags.Repo))
	}
	return &claimPlace{Asker: claims, a: a, claims: claims, roots: roots}, nil
}

// targets reads the names on the command line.
func (p *claimPlace) targets(args []string) ([]coordinator.Target, error) {
	var out []coordinator.Target
	for _, arg := range args {
		t, err := coordinator.ParseTarget(p.a.Flags.Repo, p.roots, arg)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// print prints a line for each claim, its fencing number and what it is on, or the
// document, whose last key is that of the claims.
func (p *claimPlace) print(claims []coordinator.Lease, doc ...any) error {
	if p.a.Flags.JSON {
		return p.a.PrintFields(append(doc, claimsJSON(claims))...)
	}
	for _, l := range claims {
		if err := p.a.Line("%d\t%s", l.Fence, text.QuotePath(l.Target.String())); err != nil {
			return err
		}
	}
	return nil
}

// ClaimAcquire claims.
type ClaimAcquire struct {
	claimWho
	Wait  *waitFlag      `placeholder:"DUR" help:"If another agent has a claim, queue for up to DUR (30s, 5m, forever). First come, first served."`
	TTL   *time.Duration `name:"ttl" placeholder:"DUR" help:"Let the claim expire after DUR (default: never; 1h outside of a session without --pid)."`
	PID   int            `name:"pid" placeholder:"PID" help:"Outside of a session: release the claim when this process ends."`
	Files []string       `arg:"" name:"file" sep:"none" help:"FILE, FILE:START-END (lines of the base, counted from 1, inclusive), a folder, or a quoted pattern."`
}

// Run prints a line for each claim: its fencing number and what it is on.
func (c *ClaimAcquire) Run(ctx context.Context, a *app.App) error {
	p, err := c.place(ctx, a, true)
	if err != nil {
		return err
	}
	targets, err := p.targets(c.Files)
	if err != nil {
		return err
	}
	call, err := c.call(p, targets)
	if err != nil {
		return err
	}
	answer, err := p.Ask(ctx, coordinator.OpAcquire, call)
	if conflict, ok := errors.AsType[*coordinator.ConflictError](err); ok {
		hint := "superqode claim list"
		switch {
		case len(conflict.Circle) > 0:
			hint = "superqode claim release what the others wait for, then ask again"
		case c.Wait == nil:
			hint = "superqode claim acquire … --wait 30s, or superqode claim list"
		}
		return p.printConflict(conflict, superqode.WithHint(err, "%s", hint))
	}
	if err != nil {
		return err
	}
	return p.print(answer.Claims, "granted", true, "claims")
}

// call is what is asked for. Outside of a session a claim ends with a process or at
// a time.
func (c *ClaimAcquire) call(p *claimPlace, targets []coordinator.Target) (call coordinator.Call, err error) {
	call.Targets = targets
	if c.Wait != nil {
		call.Wait = coordinator.Wait(*c.Wait)
	}
	if c.TTL != nil {
		call.TTL = *c.TTL
	}
	switch {
	case p.claims == nil && c.PID != 0:
		err = superqode.Errorf(superqode.ErrUsage, "--pid: inside a session, the run itself holds the claim")
	case p.claims == nil:
	case c.PID != 0:
		p.claims.Holder, err = coordinator.ProcessHolder(c.PID)
	case c.TTL == nil:
		call.TTL = defaultTTL
	}
	return call, err
}

// ClaimRelease lets claims go.
type ClaimRelease struct {
	claimWho
	All   bool     `help:"Release all of the agent's claims."`
	Force bool     `help:"With --all and without --agent: release the claims of every agent on this origin, even if the file of claims is unreadable."`
	Files []string `arg:"" optional:"" name:"file" sep:"none" help:"What to release, as for claim acquire. Part of a claimed range can be released."`
}

// Run prints what was let go.
func (c *ClaimRelease) Run(ctx context.Context, a *app.App) error {
	switch {
	case c.Force && (!c.All || c.Agent != "" || len(c.Files) > 0):
		err := superqode.Errorf(superqode.ErrUsage, "--force requires --all and takes no --agent or FILE")
		return superqode.WithHint(err, "superqode claim release --all --force")
	case c.All == (len(c.Files) > 0):
		err := superqode.Errorf(superqode.ErrUsage, "name the files to release, or use --all")
		return superqode.WithHint(err, "superqode claim release FILE:10-20 --agent NAME")
	}
	p, err := c.place(ctx, a, !c.Force)
	if err != nil {
		return err
	}
	if c.Force {
		return p.forget(ctx)
	}
	targets, err := p.targets(c.Files)
	if err != nil {
		return err
	}
	answer, err := p.Ask(ctx, coordinator.OpRelease, coordinator.Call{Targets: targets})
	if err != nil {
		return err
	}
	return p.print(answer.Claims, "released")
}

func (p *claimPlace) forget(ctx context.Context) error {
	if p.claims == nil {
		return superqode.Errorf(superqode.ErrDenied, "a program in a session cannot release the claims of others")
	}
	n, err := p.claims.Table.Forget(ctx)
	if err != nil {
		return err
	}
	if p.a.Flags.JSON {
		return p.a.PrintFields("forgotten", n)
	}
	p.a.Note("released %d claims", n)
	return nil
}

// waitFlag is a duration, 0 for not at all, or "forever".
type waitFlag coordinator.Wait

// UnmarshalText accepts a duration, whole seconds, 0 and forever.
func (w *waitFlag) UnmarshalText(b []byte) error {
	switch strings.ToLower(string(b)) {
	case "forever", "infinity":
		w.Forever = true
		return nil
	case "0", "0s":
		return nil
	}
	d, err := text.ParseDuration(string(b))
	w.For = d
	return err
}
