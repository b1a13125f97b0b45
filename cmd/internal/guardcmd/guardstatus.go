package guardcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks/install"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Status shows what guards here: the layers of sessions, the hooks of guard
// install, the operations.
type Status struct {
	Operations bool   `help:"List the operations with the decision that applies here."`
	Policy     string `placeholder:"NAME" help:"With --operations: the policy, qe, contained or destructive (default: guard.policy)."`
}

type guardOperationJSON struct {
	guard.OperationInfo
	Decision guard.Decision `json:"decision"`
}

type guardStatusJSON struct {
	SchemaVersion int                  `json:"schema_version"`
	Git           string               `json:"git"`
	Layers        layers.Report        `json:"layers"`
	Repository    *superqode.HostPath  `json:"repository"`
	Installation  *install.Status      `json:"installation"`
	Operations    []guardOperationJSON `json:"operations,omitempty"`
}

// Run tries everything and prints what was found.
func (c *Status) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	doc := guardStatusJSON{SchemaVersion: 1}
	var err error
	if c.Policy != "" && !c.Operations {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--policy goes with --operations"),
			"superqode guard status --operations --policy %s", text.QuotePOSIX(c.Policy))
	}
	if c.Operations {
		if doc.Operations, err = operations(ctx, a, c.Policy); err != nil {
			return err
		}
		if !a.Flags.JSON {
			return printOperations(a, doc.Operations)
		}
	}
	g, err := m.CheckedGit(ctx)
	if err != nil {
		return err
	}
	doc.Git = g.Version.String()
	if doc.Layers, err = layers.MachineOf(m.Host).Report(ctx, g); err != nil {
		return err
	}
	if err := inspect(ctx, a, m, &doc); err != nil {
		return err
	}
	if a.Flags.JSON {
		err = a.PrintJSON(doc)
	} else {
		printGuardStatus(a, doc)
	}
	if err == nil && doc.Installation != nil && doc.Installation.Installed && !doc.Installation.Firing {
		return app.StatusError(app.ExitFailure)
	}
	return err
}

// inspect looks at the repository, if there is one.
func inspect(ctx context.Context, a *app.App, m *life.Manager, doc *guardStatusJSON) error {
	in, err := install.Open(ctx, a.Flags.Repo, a.Env, a.Avoid()...)
	if errors.Is(err, git.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	helper, err := layers.MachineOf(m.Host).Helper()
	if err != nil {
		helper = "" // told by the layers
	}
	in.Helper, in.Version = helper, a.BuildVersion()
	dir := superqode.HostPath(in.Dir())
	doc.Repository = &dir
	doc.Installation, err = in.Inspect(ctx, layers.MachineOf(m.Host).CachePath())
	if err != nil {
		return err
	}
	if !doc.Installation.Installed {
		return nil
	}
	cfg, err := a.Configuration(ctx)
	st := doc.Installation
	if err == nil && !(slices.Equal(cfg.Guard.Allow, st.Allow) && slices.Equal(cfg.Guard.Deny, st.Deny)) {
		a.Warn("guard.allow or guard.deny has changed since the guard was installed; " +
			"run superqode guard install to update it")
	}
	return nil
}

func printGuardStatus(a *app.App, doc guardStatusJSON) {
	fmt.Fprintf(a.Out, "In a session, with git %s:\n", doc.Git)
	for _, l := range []struct{ name, state string }{
		{"shim", doc.Layers.Shim}, {"hooks", doc.Layers.Hooks}, {"kernel", doc.Layers.Kernel},
		{"kernel, in place", doc.Layers.KernelInPlace},
	} {
		color := term.Green
		if l.state != kernel.Active {
			color = term.Yellow
		}
		fmt.Fprintf(a.Out, "  %-18s %s\n", l.name, a.PaintOut(text.Printable(l.state), color))
	}
	if doc.Repository == nil {
		fmt.Fprintf(a.Out, "%s is in no repository.\n", text.Printable(a.Flags.Repo))
		return
	}
	fmt.Fprintf(a.Out, "In %s, without a session:\n", text.Printable(string(*doc.Repository)))
	printInstallation(a, doc.Installation)
}

// printInstallation shows what guard install put in, and what fires.
func printInstallation(a *app.App, st *install.Status) {
	switch {
	case !st.Installed:
		fmt.Fprintf(a.Out, "  %-18s not installed (superqode guard install)\n", "guard")
	case st.Firing:
		fmt.Fprintf(a.Out, "  %-18s %s, tried\n", "guard", a.PaintOut("fires", term.Green))
	default:
		fmt.Fprintf(a.Out, "  %-18s %s\n", "guard", a.PaintOut("does not fire", term.Red))
	}
	if st.Installed {
		who := "programs are refused, people at a terminal pass"
		if st.Strict {
			who = "everybody is refused (--strict)"
		}
		fmt.Fprintf(a.Out, "  %-18s %s\n", "strictness", who)
	}
	from := "git's own folder"
	if st.Setting != "" {
		from = fmt.Sprintf("core.hooksPath, %s configuration", st.Scope)
	}
	fmt.Fprintf(a.Out, "  %-18s %s (%s)\n", "hooks folder", text.Printable(string(st.HooksPath)), from)
	for _, h := range st.Hooks {
		by := h.By
		if h.Next != "" {
			by += " → " + h.Next
		}
		fmt.Fprintf(a.Out, "    %-22s %s\n", h.Name, by)
	}
	for _, p := range st.Problems {
		fmt.Fprintf(a.Out, "  %s %s\n", a.PaintOut("problem:", term.Red), text.Printable(p))
	}
	if st.Remedy != "" {
		fmt.Fprintf(a.Out, "  → %s\n", st.Remedy)
	}
	for _, b := range st.Blocked {
		command := text.Printable(strings.Join(b.Command, " "))
		fmt.Fprintf(a.Out, "  refused %s: %s (%s)\n", b.At.Local().Format(time.DateTime), command, b.Operation)
	}
}

// operations is the table with the decisions that hold here.
func operations(ctx context.Context, a *app.App, name string) ([]guardOperationJSON, error) {
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := guard.PolicyName(cmp.Or(name, cfg.Guard.Policy)).Policy(cfg.Guard.Allow, cfg.Guard.Deny)
	if err != nil {
		return nil, err
	}
	list := []guardOperationJSON{}
	for _, op := range guard.Operations() {
		list = append(list, guardOperationJSON{op, policy.Decide(op.Name)})
	}
	return list, nil
}

func printOperations(a *app.App, list []guardOperationJSON) error {
	for _, op := range list {
		if err := a.Line("%-24s %-6s %s", op.Name, op.Decision, op.Covers); err != nil {
			return err
		}
	}
	return nil
}
