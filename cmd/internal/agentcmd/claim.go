// Package agentcmd has the commands by which agents share files: claims on lines, and what each has changed.
package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// defaultTTL ends a claim that neither a process nor a time of its own ends.
const defaultTTL = time.Hour

// claimWho names the owner of claims.
type claimWho struct {
	app.SessionFlag
	Agent string `placeholder:"NAME" help:"Whose claims (default: $$SUPERQODE_AGENT_ID; inside a session the run's own agent)."`
}

// claimPlace is how a command reaches the claims: by the session's supervisor
// when a program of the session asks, else by the state's own files.
type claimPlace struct {
	a      *app.App
	inside bool
	agent  superqode.AgentID
	claims *coordinator.Claims // outside
	roots  []string
}

func (w claimWho) place(ctx context.Context, a *app.App, needAgent bool) (*claimPlace, error) {
	p := &claimPlace{a: a, inside: w.Session == "" && a.Getenv("SUPERQODE_SOCKET") != ""}
	name := w.Agent
	if name == "" && w.Session == "" {
		name = a.Getenv("SUPERQODE_AGENT_ID")
	}
	var err error
	if name != "" {
		if p.agent, err = superqode.ParseAgentID(name); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "--agent: %v", err)
		}
	}
	if p.inside {
		p.roots = []string{a.Getenv("SUPERQODE_WORKSPACE"), a.Getenv("SUPERQODE_ORIGIN")}
		return p, nil
	}
	if name == "" && needAgent {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "whose claim? outside of a session --agent says it"), "superqode claim … --agent NAME")
	}
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	if p.claims, err = m.Claims(ctx, a.Flags.Repo, w.Ref(a)); err != nil {
		return nil, err
	}
	p.roots = []string{p.claims.Root}
	if !p.claims.Session.IsZero() {
		p.roots = append(p.roots, app.OriginDir(a.Flags.Repo))
	}
	return p, nil
}

func (p *claimPlace) owner() coordinator.Owner {
	return coordinator.Owner{Session: p.claims.Session, Agent: p.agent}
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

// ask sends one operation to the supervisor; wait is how long it may take.
func (p *claimPlace) ask(ctx context.Context, op string, call coordinator.Call) (coordinator.Answer, error) {
	call.Agent = p.agent
	if call.Wait.Forever {
		call.Wait = coordinator.Wait{For: maxWait}
	}
	ctx, cancel := context.WithTimeout(ctx, call.Wait.For+10*time.Second)
	defer cancel()
	var answer coordinator.Answer
	err := supervisor.Call(ctx, p.a.Env, op, call, &answer)
	return answer, err
}

// maxWait is as good as for ever.
const maxWait = 366 * 24 * time.Hour

// ClaimAcquire claims.
type ClaimAcquire struct {
	claimWho
	Wait  *waitFlag         `placeholder:"DUR" help:"Wait for DUR (30s, 5m; or for ever) when somebody else has a claim on it; who asked first is served first."`
	TTL   *app.DurationFlag `name:"ttl" placeholder:"DUR" help:"End the claim after DUR (default: 1h outside of a session without --pid, else no end)."`
	PID   int               `name:"pid" placeholder:"PID" help:"Outside of a session: end the claim when this process ends."`
	Files []string          `arg:"" name:"file" sep:"none" help:"FILE, FILE:START-END (lines of the base, from 1, both included), a folder, or a pattern in quotes."`
}

// Help tells the rules.
func (*ClaimAcquire) Help() string {
	return "Exit code 4: somebody else has it, or the agents would wait for one another. Inside a session the claim ends with the run of its program. A file whose name looks like a range is written with a colon behind it: 'a:1-2:'."
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
	leases, err := c.acquire(ctx, p, targets)
	if conflict, ok := errors.AsType[*coordinator.ConflictError](err); ok {
		hint := "superqode claim list"
		if c.Wait == nil && len(conflict.Circle) == 0 {
			hint = "superqode claim acquire … --wait 30s, or superqode claim list"
		}
		if len(conflict.Circle) > 0 {
			hint = "superqode claim release what the others wait for, then ask again"
		}
		return p.printConflict(conflict, superqode.WithHint(err, "%s", hint))
	}
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int         `json:"schema_version"`
			Granted       bool        `json:"granted"`
			Claims        []claimJSON `json:"claims"`
		}{1, true, claimsJSON(leases)})
	}
	for _, l := range leases {
		if _, err := fmt.Fprintf(a.Out, "%d\t%s\n", l.Fence, text.QuotePath(l.Target.String())); err != nil {
			return err
		}
	}
	return nil
}

func (c *ClaimAcquire) acquire(ctx context.Context, p *claimPlace, targets []coordinator.Target) ([]coordinator.Lease, error) {
	var wait coordinator.Wait
	if c.Wait != nil {
		wait = coordinator.Wait(*c.Wait)
	}
	var ttl time.Duration
	if c.TTL != nil {
		ttl = time.Duration(*c.TTL)
	}
	if p.inside {
		if c.PID != 0 {
			return nil, superqode.Errorf(superqode.ErrUsage, "--pid: inside a session a claim is held by the run itself")
		}
		answer, err := p.ask(ctx, coordinator.OpAcquire, coordinator.Call{Targets: targets, TTL: ttl, Wait: wait})
		if err == nil && answer.Conflict != nil {
			answer.Conflict.Wanted, answer.Conflict.Owner = targets, answer.Owner
			err = &coordinator.ConflictError{Conflict: *answer.Conflict}
		}
		return answer.Claims, err
	}
	r := coordinator.Request{Owner: p.owner(), Targets: targets, TTL: ttl}
	switch {
	case c.PID != 0:
		var err error
		if r.Holder, err = coordinator.ProcessHolder(c.PID); err != nil {
			return nil, err
		}
	case c.TTL == nil:
		r.TTL = defaultTTL
	}
	return p.claims.Acquire(ctx, r, wait)
}

// ClaimRelease lets claims go.
type ClaimRelease struct {
	claimWho
	All   bool     `help:"All of the agent's claims."`
	Force bool     `help:"With --all and without --agent: the claims of every agent on this origin, also those in a file that can not be read."`
	Files []string `arg:"" optional:"" name:"file" sep:"none" help:"What to let go, as in claim acquire; a part of a range is taken out of it."`
}

// Run prints what was let go.
func (c *ClaimRelease) Run(ctx context.Context, a *app.App) error {
	switch {
	case c.Force && (!c.All || c.Agent != "" || len(c.Files) > 0):
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--force goes with --all alone"), "superqode claim release --all --force")
	case c.All == (len(c.Files) > 0):
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "name what to release, or --all"), "superqode claim release FILE:10-20 --agent NAME")
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
	var ended []coordinator.Lease
	if p.inside {
		answer, err := p.ask(ctx, coordinator.OpRelease, coordinator.Call{Targets: targets})
		if err != nil {
			return err
		}
		ended = answer.Claims
	} else if ended, err = p.claims.Table.Release(ctx, p.owner(), targets); err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int         `json:"schema_version"`
			Released      []claimJSON `json:"released"`
		}{1, claimsJSON(ended)})
	}
	for _, l := range ended {
		if _, err := fmt.Fprintf(a.Out, "%d\t%s\n", l.Fence, text.QuotePath(l.Target.String())); err != nil {
			return err
		}
	}
	return nil
}

func (p *claimPlace) forget(ctx context.Context) error {
	if p.inside {
		return superqode.Errorf(superqode.ErrDenied, "what runs in a session can not let the claims of others go")
	}
	n, err := p.claims.Table.Forget(ctx)
	if err != nil {
		return err
	}
	if p.a.Flags.JSON {
		return p.a.PrintJSON(map[string]any{"schema_version": 1, "forgotten": n})
	}
	p.a.Note("%d claims let go", n)
	return nil
}

// waitFlag is a duration, 0 for not at all, or "forever".
type waitFlag coordinator.Wait

// UnmarshalText accepts a duration, whole seconds, 0 and forever.
func (w *waitFlag) UnmarshalText(b []byte) error {
	switch text := strings.ToLower(string(b)); text {
	case "forever", "infinity":
		w.Forever = true
		return nil
	case "0", "0s":
		return nil
	}
	var d app.DurationFlag
	if err := d.UnmarshalText(b); err != nil {
		return err
	}
	w.For = min(time.Duration(d), maxWait)
	return nil
}
