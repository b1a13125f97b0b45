package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trust"
)

// dryRun prints what run and workspace create would do.
func dryRun(
	ctx context.Context, a *app.App, open life.OpenOptions, exec program.ExecOptions, cfg *config.Config,
) error {
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	v, err := m.Preview(ctx, open, exec)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(open.Setup.Spec.Entries, func(e config.SetupEntry) bool { return e.Run != nil }) {
		t, err := trust.Untrusted(ctx, m.Host, app.OriginDir(a.Flags.Repo), cfg)
		if err != nil {
			return err
		}
		if t != nil {
			untrusted := "nobody has trusted the commands of " + string(t.Origin) + " yet: superqode trust"
			v.Warnings = append(v.Warnings, untrusted)
		}
	}
	if a.Flags.JSON {
		return a.PrintJSON(v)
	}
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", key+":", text.Printable(fmt.Sprintf(format, args...)))
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			line(key, "%s", strings.Join(values, ", "))
		}
	}
	line("Mode", "%s", v.Mode)
	line("Origin", "%s", v.Origin)
	line("Workspace", "%s", v.Workspace)
	base := v.From
	if v.Head != "" {
		base += " at " + v.Head
	}
	line("Base", "%s", base)
	list("Include", v.Include)
	list("Exclude", v.Exclude)
	if v.Template != "" {
		line("Template", "%s", v.Template)
	}
	for _, text := range v.Setup {
		line("Setup", "%s", text)
	}
	line("Guard", "expected: shim %s, hooks %s, kernel %s", v.Shim, v.Hooks, v.Kernel)
	for _, h := range v.Limits {
		line("Limit", "%s", limitText(h))
	}
	if v.TimeoutMS > 0 {
		line("Limit", "timeout %s", time.Duration(v.TimeoutMS)*time.Millisecond)
	}
	list("Outputs", v.Outputs)
	list("Variables", v.Env)
	line("Keep", "%s", v.Keep)
	if len(v.Command) > 0 {
		line("Command", "%s", text.QuoteLine(v.Command...))
	}
	for _, w := range v.Warnings {
		a.Warn(w)
	}
	a.Note("dry run: nothing was done")
	_, err = fmt.Fprint(a.Out, b.String())
	return err
}

// limitText is one limit and how it is held.
func limitText(h runner.Holding) string {
	value := text.Size(h.Value)
	switch h.Limit {
	case runner.LimitPids:
		value = fmt.Sprint(h.Value)
	case runner.LimitCPU:
		value = time.Duration(h.Value).String()
	}
	return fmt.Sprintf("%s %s, held by %s", h.Limit, value, h.By)
}
