//go:build !failpoint

// Package failpoint marks the durable steps of superqode so that tests can kill
// the process, or make it fail, at exactly one of them.
//
// Without the build tag "failpoint" every call is an empty function. With it,
// the environment decides:
//
//	SUPERQODE_FAILPOINT=<name>[:<n>]=<kill|error|enospc|pause:<duration>>
//	SUPERQODE_FAILPOINT_LOG=<file>      every point that was reached, one a line
//	SUPERQODE_FAILPOINT_ERRORS=<file>   those of them that can fail
//	SUPERQODE_FAILPOINT_WAITS=<file>    every wait for the disk, one a line
//
// n counts from 1 and means the n-th time the point is reached in one process.
package failpoint

// Hit marks a step that can be interrupted but cannot fail by itself.
func Hit(name string) {}

// Err marks a step that may also fail: it returns the injected error or nil.
func Err(name string) error { return nil }

// Waits notes that the process waits for the disk: what for.
func Waits(what string) {}
