// Package attribution finds out what a session changed and whose each change and
// each line is: of one agent, of several in workspaces of their own whose changes
// are merged, or of several in one workspace, told apart by what they say
// (superqode track) and what they claimed.
package attribution

import "github.com/seed-2d964004/superqode/internal/site"

// Authorship is what a session changed and who changed what: found by a look at
// the workspace, or at those of its agents, and by what agents say and claim.
type Authorship struct {
	*site.Site
	SeenWorks []*AgentWork // what the agents were found to have done, when this value has looked
	Credits   credits      // whose the changes are
}
