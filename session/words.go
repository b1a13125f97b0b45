package session

import (
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// The words of the packages below that a caller of this one needs.
type (
	Record        = state.Record          // a session's session.json
	Listed        = state.Listed          // one session as List returns it
	Broken        = state.Broken          // a session whose record cannot be read
	ExecOptions   = program.ExecOptions   // what Exec runs, with which streams and limits
	KernelOptions = program.KernelOptions // what is asked of the guard's kernel layer
	HolderError   = mode.HolderError      // another session works in the origin itself
)
