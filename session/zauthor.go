package session

import "github.com/seed-2d964004/superqode/internal/site"

// Authorship is what a session changed and who changed what: found by a look at
// the workspace, or at those of its agents, and by what agents say and claim.
type Authorship struct {
	*site.Site
	seenWorks []*agentWork // what the agents were found to have done, when this value has looked
	credits   credits      // whose the changes are
}
