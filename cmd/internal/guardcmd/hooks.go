package guardcmd

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
)

// HooksPrint prints a snippet for one agent.
type HooksPrint struct {
	Agent   string `arg:"" enum:"claude,codex,gemini,cursor,copilot" help:"claude, codex, gemini, cursor or copilot."`
	Program string `placeholder:"PATH" help:"How the agent calls superqode (default: this program's path; for Copilot, whose file is committed, superqode from PATH)."`
}

// Run prints the snippet on stdout and its place on stderr.
func (c *HooksPrint) Run(_ context.Context, a *app.App) error {
	format, err := guard.ParseFormat(c.Agent)
	if err != nil {
		return err
	}
	program := c.Program
	switch {
	case program != "":
	case format == guard.Copilot:
		program = "superqode"
	default:
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	s, err := guard.AgentSnippet(format, program)
	if err != nil {
		return err
	}
	for _, line := range s.Where {
		a.Note("%s", line)
	}
	_, err = fmt.Fprint(a.Out, s.Text)
	return err
}
