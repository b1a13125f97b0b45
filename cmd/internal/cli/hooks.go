package cli

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode/guard"
)

// hooksCmd groups what goes into coding agents' own configurations.
type hooksCmd struct {
	Print hooksPrintCmd `cmd:"" help:"Print the configuration that makes a coding agent ask before it runs a command or edits a file."`
}

// hooksPrintCmd prints a snippet for one agent.
type hooksPrintCmd struct {
	Agent   string `arg:"" enum:"claude,codex,gemini,cursor,copilot" help:"claude, codex, gemini, cursor or copilot."`
	Program string `placeholder:"PATH" help:"How the agent finds superqode (default: superqode, by PATH)." default:"superqode"`
}

// Run prints the snippet on stdout and its place on stderr.
func (c *hooksPrintCmd) Run(_ context.Context, a *app) error {
	format, err := guard.ParseFormat(c.Agent)
	if err != nil {
		return err
	}
	s, err := guard.AgentSnippet(format, c.Program)
	if err != nil {
		return err
	}
	for _, line := range s.Where {
		a.note("%s", line)
	}
	_, err = fmt.Fprint(a.Out, s.Text)
	return err
}
