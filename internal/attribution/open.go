package attribution

import "github.com/seed-2d964004/superqode/internal/site"

// Of returns the authorship of one session. Nothing is looked at before it is asked.
func Of(s *site.Site) *Authorship { return &Authorship{Site: s} }
