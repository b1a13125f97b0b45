package session

import (
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

// crew is what a Session value knows of the agents that work in the session.
type crew struct {
	conflicts []attribution.AgentConflict // what of it could not be merged, when this value has merged it for good

	teamOutputs *artifacts.Outputs // what the agents' workspaces had of the outputs asked for, when this value has taken them
}
