package session

import (
	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attribution"
)

// Several agents in one session work in a workspace each. Each of these is that
// of a session of its own, with lock, guard, kernel layer, seal and
// base, so that recovery, cleanup and everything that looks at a workspace know
// it already; Record.Parent ties it to the session that people see. Its
// workspace is made from the parent's, which nobody works in: so all begin with
// the same base, whatever the user does to the origin meanwhile, and that is
// checked. At the end what each changed is stored as the parent's (patch, log,
// artifacts, findings), the changes are merged on the base, the result is put
// into the parent's workspace, and from there on the parent ends like any other
// session. The children go when that is stored.

// AgentCommand is one agent of a session of several.
type AgentCommand struct {
	Agent   superqode.AgentID
	Command string // for sh -c
}

// crew is what a Session value knows of the agents that work in the session.
type crew struct {
	conflicts []attribution.AgentConflict // what of it could not be merged, when this value has merged it for good

	teamOutputs *artifacts.Outputs // what the agents' workspaces had of the outputs asked for, when this value has taken them
}

// CheckAgents refuses a list of agents that can be no session: none, two of one
// name, one without a command. The error wraps superqode.ErrUsage.
func CheckAgents(list []AgentCommand) error {
	seen := map[string]bool{}
	for _, a := range list {
		name := a.Agent.String()
		switch {
		case a.Agent.IsZero():
			return superqode.Errorf(superqode.ErrUsage, "an agent without a name")
		case a.Command == "":
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "agent %s has no command", name), "superqode run --agent '%s=SHELL COMMAND'", name)
		case seen[name]:
			return superqode.Errorf(superqode.ErrUsage, "agent %s is given twice", name)
		}
		seen[name] = true
	}
	if len(list) == 0 {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "no agent to run"), "superqode run --agent 'alice=SHELL COMMAND' --agent 'bob=SHELL COMMAND'")
	}
	return nil
}
