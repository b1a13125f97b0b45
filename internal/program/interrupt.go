package program

import (
	"errors"
	"os"
	"syscall"

	"github.com/seed-2d964004/superqode/internal/state"
)

// ExitCode returns the exit code of a session whose program could not be run.
func ExitCode(err error) int {
	if sig, ok := errors.AsType[*InterruptError](err); ok {
		return sig.ExitCode()
	}
	return state.ExitUnknown
}

// InterruptError means that a signal ended the work before the program ran.
type InterruptError struct{ Signal os.Signal }

// Error names the signal.
func (e *InterruptError) Error() string { return "interrupted: " + e.Signal.String() }

// ExitCode returns 128 plus the signal's number.
func (e *InterruptError) ExitCode() int {
	if sig, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	return 130
}
