package program

import (
	"os"
	"syscall"
)

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
