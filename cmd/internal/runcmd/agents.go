package runcmd

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// agentsFlags say how several agents work in one session.
type agentsFlags struct {
	Agents      string `placeholder:"all|NAME,…" help:"Run these agents from the configuration, each in its own workspace."`
	MaxParallel int    `placeholder:"N" help:"Run at most N agents at the same time (default: all)."`
	SharedSpace bool   `name:"shared-workspace" help:"Let all agents share one workspace."`
}

// team returns the agents that the command line asks for, in the order given;
// none for a session of one program.
func (c *Run) team(cfg *config.Config) ([]team.AgentCommand, error) {
	var list []team.AgentCommand
	named := ""
	for _, arg := range c.Agent {
		name, command, given := strings.Cut(arg, "=")
		if !given {
			named = arg
			continue
		}
		id, err := app.ParseAgent(name)
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "--agent: %s", err)
		}
		list = append(list, team.AgentCommand{Agent: id, Command: command})
	}
	more, err := c.configured(cfg)
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	switch {
	case len(list) == 0 && (c.SharedSpace || c.MaxParallel != 0):
		err := superqode.Errorf(superqode.ErrUsage, "--shared-workspace and --max-parallel require several agents")
		return nil, superqode.WithHint(err, "superqode run --agent 'alice=SHELL COMMAND' --agent 'bob=SHELL COMMAND'")
	case len(list) == 0:
		return nil, nil
	case named != "":
		err := superqode.Errorf(superqode.ErrUsage, "agent %s has no command, but others have one", text.Printable(named))
		return nil, superqode.WithHint(err, "superqode run --agent '%s=SHELL COMMAND' …", named)
	case len(c.Cmd) > 0:
		err := superqode.Errorf(superqode.ErrUsage, "agents with their own commands cannot be combined with a program to run")
		return nil, superqode.WithHint(err, "give each program to an agent: --agent 'NAME=SHELL COMMAND'")
	case c.MaxParallel < 0:
		return nil, superqode.Errorf(superqode.ErrUsage, "--max-parallel: expected a number greater than zero, not %d",
			c.MaxParallel)
	}
	return list, team.CheckAgents(list)
}

// configured returns the agents that --agents names, "all" in the order of their
// names.
func (c *Run) configured(cfg *config.Config) ([]team.AgentCommand, error) {
	if c.Agents == "" {
		return nil, nil
	}
	if len(cfg.Agents) == 0 {
		err := superqode.Errorf(superqode.ErrUsage, "--agents %s: the configuration has no agents", text.Printable(c.Agents))
		return nil, superqode.WithHint(err, "add agents: {NAME: SHELL COMMAND} to superqode.yaml")
	}
	names := slices.SortedFunc(maps.Keys(cfg.Agents), func(a, b superqode.AgentID) int {
		return cmp.Compare(a.String(), b.String())
	})
	if c.Agents != "all" {
		known := names
		names = nil
		for name := range strings.SplitSeq(c.Agents, ",") {
			id, err := superqode.ParseAgentID(name)
			if err != nil || !slices.Contains(known, id) {
				err := superqode.Errorf(superqode.ErrUsage, "--agents: the configuration has no agent %q", name)
				return nil, superqode.WithHint(err, "superqode config show")
			}
			names = append(names, id)
		}
	}
	list := make([]team.AgentCommand, len(names))
	for i, id := range names {
		list[i] = team.AgentCommand{Agent: id, Command: cfg.Agents[id]}
	}
	return list, nil
}

// runAgents runs several agents in one session and prints what came of it.
func runAgents(
	ctx context.Context, a *app.App, open life.OpenOptions, exec program.ExecOptions, opt team.AgentsOptions,
) error {
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	var names []string
	for _, g := range opt.Agents {
		names = append(names, g.Agent.String())
	}
	board := makeBoard(a, names)
	opt.Streams = func(id superqode.AgentID) (io.Writer, io.Writer) {
		stdout := board.stream(a.Out, id.String(), a.OutTTY)
		if a.Flags.JSON {
			stdout = board.stream(a.Err, id.String(), a.ErrTTY)
		}
		return stdout, board.stream(a.Err, id.String(), a.ErrTTY)
	}
	opt.Watch = board.show
	res, err := m.RunAgents(ctx, open, exec, opt)
	board.close()
	if res == nil {
		return err
	}
	return printRun(a, res, err)
}
