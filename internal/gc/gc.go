// Package gc removes what is left behind: sessions that have ended, what crashes
// left of others, trash; and it restores from salvages what was removed.
package gc

import (
	"context"

	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Collector cleans up one SUPERQODE_HOME. A session comes to its end in one way,
// also when it is cleaned up: what that is comes from package session.
type Collector struct {
	*site.Host

	// Recover takes a session whose process died to its end. preserved says that its
	// workspace stays, action what was done.
	Recover func(ctx context.Context, l state.Listed) (action string, preserved bool, err error)
	// Keeps says whether Recover would preserve the session.
	Keeps func(l state.Listed) bool
	// Dispose takes away the workspace of a session whose contents were salvaged. With
	// force it does so even where the session cannot come to its end.
	Dispose func(ctx context.Context, s attach.Alone, d mode.Disposal, force bool) error
}
