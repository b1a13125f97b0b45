package workspacecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	machine "github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/revert"
)

// verifyFlag says how a directory is compared with the base.
type verifyFlag struct {
	Verify string `enum:"stat,full" default:"stat" placeholder:"HOW" help:"stat: trust the stat data of untouched files (default); full: read every byte."`
}

// Revert brings a workspace, or the origin, back to the base.
type Revert struct {
	app.SessionFlag
	verifyFlag
	DryRun bool              `help:"Print what would be reverted, without changing anything."`
	Agent  superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"Revert only this agent's changes, where they can be told apart."`
	Paths  []string          `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these paths, relative to the current directory."`
}

// Run prints what was brought back, and the proof.
func (c *Revert) Run(ctx context.Context, a *app.App, s *life.Session) error {
	paths, err := app.RelPaths(a, s.Record(), c.Paths)
	if err != nil {
		return err
	}
	if !c.DryRun {
		ctx = context.WithoutCancel(ctx) // once begun, it is not left half-way
	}
	opt := mode.RevertOptions{Paths: paths, How: machine.Method(c.Verify), DryRun: c.DryRun}
	res, mixed, err := c.revert(ctx, s, opt)
	if res == nil {
		return err
	}
	for _, m := range mixed {
		a.Warn("not reverted: " + m)
	}
	if a.Flags.JSON {
		if err == nil || len(res.Differences)+len(mixed) > 0 {
			fields := []any{
				"session_id", s.Record().ID, "dry_run", c.DryRun, "verified", res.Verified, "digest", res.Digest,
				"method", c.Verify, "paths", pathsJSON(res.Paths), "differences", res.Differences, "salvages", res.Salvages,
				"not_covered", mode.LeftOut(s.Record()),
			}
			if len(mixed) > 0 { // with --agent: what is left as it is
				fields = append(fields, "not_separable", mixed)
			}
			err = cmp.Or(err, a.PrintFields(fields...))
		}
		return err
	}
	if c.DryRun {
		for _, p := range res.Paths {
			err = cmp.Or(err, a.Line("%s", text.QuotePath(p)))
		}
		return err
	}
	for _, d := range res.Differences {
		fmt.Fprintln(a.Err, text.Printable(d))
	}
	if err != nil && len(mixed) == 0 {
		return err
	}
	for _, id := range res.Salvages {
		a.Note("overwritten files were salvaged: superqode workspace restore " + id)
	}
	noteLeftOut(a, s)
	return errors.Join(err, a.Line("reverted %s, verified%s", text.Plural(len(res.Paths), "path"), spaced(res.Digest)))
}

// revert takes back all, or one agent's part; mixed is what of that cannot be
// told from others' changes.
func (c *Revert) revert(
	ctx context.Context, s *life.Session, opt mode.RevertOptions,
) (res *mode.Reverted, mixed []string, err error) {
	agent, rec := c.Agent, s.Record()
	if agent.IsZero() || agent == rec.Agent && len(rec.Agents) == 0 {
		res, err = s.Revert(ctx, opt)
		return res, nil, err
	}
	part, err := s.RevertAgent(ctx, agent, opt)
	if part == nil || errors.Is(err, superqode.ErrNotFound) {
		return nil, nil, err
	}
	return &part.Reverted, part.Mixed, err
}

func spaced(d superqode.Digest) string {
	if d.IsZero() {
		return ""
	}
	return " " + d.String()
}

// Verify compares a workspace, or the origin, with the base.
type Verify struct {
	app.SessionFlag
	verifyFlag
	Paths []string `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these paths, relative to the current directory."`
}

// Run prints the digest or what differs.
func (c *Verify) Run(ctx context.Context, a *app.App, s *life.Session) error {
	paths, err := app.RelPaths(a, s.Record(), c.Paths)
	if err != nil {
		return err
	}
	v, err := s.Verify(ctx, revert.Method(c.Verify), paths)
	if v == nil {
		return err
	}
	if a.Flags.JSON {
		return errors.Join(err, a.PrintFields("session_id", s.Record().ID, "verified", err == nil, "digest", v.Digest,
			"method", c.Verify, "differences", v.Differences, "not_covered", mode.LeftOut(s.Record())))
	}
	noteLeftOut(a, s)
	for _, d := range v.Differences {
		if perr := a.Line("%s", text.Printable(d)); perr != nil {
			return perr
		}
	}
	if err != nil {
		return err
	}
	return a.Line("verified%s", spaced(v.Digest))
}

// noteLeftOut names what "verified" does not speak for.
func noteLeftOut(a *app.App, s *life.Session) {
	for _, l := range mode.LeftOut(s.Record()) {
		a.Note("not covered: %s", l)
	}
}
