package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/session"
)

// The exit codes that no sentinel error stands for.
const (
	exitFailure    = 1
	exitOwnFailure = 125 // run and workspace exec: superqode itself failed
	exitPipe       = 141 // nobody reads stdout any more; what a shell shows for SIGPIPE
)

// An exitRow gives the errors that wrap err their exit code and their code in
// JSON.
type exitRow struct {
	err  error
	code int
	name string
}

// exitTable is the one place where errors become exit codes. The first row that
// matches counts.
func exitTable() []exitRow {
	return []exitRow{
		{superqode.ErrUsage, 80, "usage"},
		{superqode.ErrVerification, 6, "verification"},
		{superqode.ErrConflict, 4, "conflict"},
		{superqode.ErrDenied, 3, "denied"},
		{superqode.ErrLocked, 5, "locked"},
		{superqode.ErrNotFound, 7, "not_found"},
		{syscall.EPIPE, exitPipe, "pipe"},
		{context.Canceled, 130, "interrupted"},
	}
}

// statusError carries an exit code that is not an error of ours: the program's
// own, or one that was told already. Nothing is printed for it.
type statusError int

func (e statusError) Error() string { return "exit status" }

// exitCode returns the code for err after the given command ("run <cmd>", "workspace
// exec <cmd>", …).
func exitCode(err error, command string) int {
	code, _ := classify(err, command)
	return code
}

// classify returns the exit code and the JSON code of an error.
func classify(err error, command string) (int, string) {
	if err == nil {
		return 0, ""
	}
	if both, ok := errors.AsType[*failedProgram](err); ok {
		code, name := classify(both.err, command)
		if both.status == exitOwnFailure { // no program's: our error tells more
			return code, name
		}
		return int(both.status), name
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return int(status), "status"
	}
	if sig, ok := errors.AsType[*session.InterruptError](err); ok {
		return sig.ExitCode(), "interrupted"
	}
	if failed, ok := errors.AsType[*setup.Error](err); ok {
		return setupCode(failed)
	}
	if start, ok := errors.AsType[*runner.StartError](err); ok {
		return start.Code, "not_started"
	}
	for _, row := range exitTable() {
		if errors.Is(err, row.err) {
			return row.code, row.name
		}
	}
	if runsProgram(command) {
		return exitOwnFailure, "internal"
	}
	return exitFailure, "failure"
}

// setupCode is for a setup that failed: 125 unless the configuration is wrong or
// what it names does not exist. What a setup's command was about says nothing.
func setupCode(err *setup.Error) (int, string) {
	for _, row := range exitTable() {
		if errors.Is(err, row.err) && (row.err == superqode.ErrUsage || row.err == superqode.ErrNotFound || row.err == context.Canceled) {
			return row.code, row.name
		}
	}
	return exitOwnFailure, "setup"
}

// runsProgram reports whether a command passes a program's exit code through.
func runsProgram(command string) bool {
	return command == "run" || strings.HasPrefix(command, "run ") || strings.HasPrefix(command, "workspace exec") || command == session.DetachCommand
}

// errorPaths collects the paths that an error speaks of.
func errorPaths(err error) []string {
	paths := []string{}
	if many, ok := errors.AsType[interface {
		error
		ErrorPaths() []string
	}](err); ok {
		paths = append(paths, many.ErrorPaths()...)
	}
	if one, ok := errors.AsType[*fs.PathError](err); ok {
		paths = append(paths, one.Path)
	}
	return paths
}
