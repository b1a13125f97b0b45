package agentcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/text"
)

// ClaimCheck decides on edits.
type ClaimCheck struct {
	claimWho
	Format string   `default:"text" enum:"text,json,claude,codex,gemini,cursor,copilot" placeholder:"FORMAT" help:"text, json, or an agent's hook protocol: claude, codex, gemini, cursor, copilot."`
	Files  []string `arg:"" optional:"" name:"file" sep:"none" help:"What would be edited, for text and json: FILE or FILE:START-END, in lines of the file as it is now. The hooks read stdin."`
}

// maxHookPayload is what guard check takes, too.
const maxHookPayload = 16 << 20

// Run prints the verdict.
func (c *ClaimCheck) Run(ctx context.Context, a *app.App) error {
	format, err := guard.ParseFormat(c.Format)
	if err != nil {
		return err
	}
	if a.Flags.JSON && format == guard.Text {
		format = guard.JSON
	}
	if format == guard.Text || format == guard.JSON {
		return c.plain(ctx, a, format)
	}
	reply, err := c.hook(ctx, a, format)
	if err != nil { // who cannot ask must not edit
		why := "superqode cannot tell whether another agent has claimed this, so the edit is refused: " + err.Error()
		if reply, err = guard.Block(format, why); err != nil {
			return err
		}
	}
	return a.PrintReply(reply)
}

// plain decides on files named on the command line.
func (c *ClaimCheck) plain(ctx context.Context, a *app.App, format guard.Format) error {
	if len(c.Files) == 0 {
		err := superqode.Errorf(superqode.ErrUsage, "no file given")
		return superqode.WithHint(err, "superqode claim check FILE:10-20 --agent NAME")
	}
	p, err := c.place(ctx, a, true)
	if err != nil {
		return err
	}
	targets, err := p.targets(c.Files)
	if err != nil {
		return err
	}
	var edits []coordinator.CallEdit
	for _, t := range targets {
		if t.Kind != coordinator.KindFile {
			return superqode.Errorf(superqode.ErrUsage, "%s is not a file", text.Printable(t.String()))
		}
		edits = append(edits, coordinator.CallEdit{Bytes: []byte(t.Path), Lines: []coordinator.Lines{t.Lines}})
	}
	verdict, mode, err := c.decide(ctx, p, edits)
	if err != nil {
		return err
	}
	if err := c.print(a, format, verdict, mode); err != nil {
		return err
	}
	if verdict.Denied(mode) {
		return app.StatusError(app.ExitCode(superqode.ErrDenied, ""))
	}
	return nil
}

func (c *ClaimCheck) print(a *app.App, format guard.Format, v coordinator.Verdict, mode coordinator.Mode) error {
	decision, reason := "allow", ""
	if v.Denied(mode) {
		decision, reason = "deny", v.Reason(mode)
	}
	if format == guard.JSON {
		var uncovered []string
		for _, e := range v.Uncovered {
			text, _ := superqode.JSONPath(e.String())
			uncovered = append(uncovered, text)
		}
		return a.PrintFields("decision", decision, "reason", reason, "claims", mode,
			"held", claimsJSON(v.Held), "uncovered", uncovered)
	}
	if reason != "" {
		decision += "\nreason: " + text.Printable(reason)
	}
	return a.Line("%s", decision)
}

// hook decides on a coding agent's tool.
func (c *ClaimCheck) hook(ctx context.Context, a *app.App, format guard.Format) (guard.Reply, error) {
	payload, err := io.ReadAll(io.LimitReader(a.In, maxHookPayload+1))
	if err != nil || len(payload) > maxHookPayload {
		return guard.Reply{}, errors.Join(err, fmt.Errorf("the request is larger than %d MiB", maxHookPayload>>20))
	}
	request, err := guard.Decode(format, bytes.NewReader(payload))
	if err != nil {
		return guard.Reply{}, err
	}
	allowed := func() (guard.Reply, error) { return guard.Encode(format, guard.Line{}) }
	if len(request.Writes) == 0 {
		return allowed()
	}
	p, err := c.place(ctx, a, false) // who has no name has no claims, and is kept out of those of the others
	if err != nil {
		return guard.Reply{}, err
	}
	tools := coordinator.ToolEdits(payload, request.Writes)
	edits := coordinator.EditsOf(tools, cmp.Or(request.Dir, a.Flags.Repo), p.roots)
	if len(edits) == 0 {
		return allowed()
	}
	verdict, mode, err := c.decide(ctx, p, edits)
	if err != nil {
		return guard.Reply{}, err
	}
	if !verdict.Denied(mode) {
		return allowed()
	}
	or := ""
	if len(verdict.Held) > 0 {
		or = "edit other lines, or wait: "
	}
	return guard.Block(format, fmt.Sprintf("superqode claims refused the edit: %s. Instead: %ssuperqode claim acquire %s --wait 60s",
		text.Printable(verdict.Reason(mode)), or, wanted(verdict)))
}

// wanted names, for a shell, what an edit would have needed.
func wanted(v coordinator.Verdict) string {
	if len(v.Uncovered) == 0 {
		return "FILE:START-END"
	}
	return text.QuoteSingle(text.Printable(v.Uncovered[0].String()))
}

// decide holds edits, in lines of the files as they are, against the claims.
func (c *ClaimCheck) decide(
	ctx context.Context, p *claimPlace, list []coordinator.CallEdit,
) (coordinator.Verdict, coordinator.Mode, error) {
	cfg, err := p.a.Configuration(ctx)
	if err != nil {
		return coordinator.Verdict{}, "", err
	}
	mode := coordinator.Mode(cfg.Claims)
	answer, err := p.Ask(ctx, coordinator.OpCheck, coordinator.Call{Edits: list})
	if err != nil {
		return coordinator.Verdict{}, mode, err
	}
	return *answer.Verdict, mode, nil
}
