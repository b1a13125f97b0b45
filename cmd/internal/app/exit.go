package app

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/setup"
)

// The exit codes that no sentinel error stands for.
const (
	ExitFailure    = 1
	exitOwnFailure = 125 // run and workspace exec: superqode itself failed
	exitPipe       = 141 // nobody reads stdout any more; what a shell shows for SIGPIPE
)

// ExitRow gives the errors that wrap err their exit code and their code in
// JSON.
type ExitRow struct {
	err  error
	Code int
	Name string
}

// ExitTable is the one place where errors become exit codes. The first row that
// matches counts.
func ExitTable() []ExitRow {
	return []ExitRow{
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

// StatusError carries an exit code that is not an error of ours: the program's
// own, or one that was reported already. Nothing is printed for it.
type StatusError int

func (e StatusError) Error() string { return "exit status" }

// ExitCode returns the code for err after the given command ("run <cmd>", "workspace
// exec <cmd>", …).
func ExitCode(err error, command string) int {
	code, _ := Classify(err, command)
	return code
}

// Classify returns the exit code and the JSON code of an error.
func Classify(err error, command string) (int, string) {
	if err == nil {
		return 0, ""
	}
	if both, ok := errors.AsType[*failedProgram](err); ok {
		code, name := Classify(both.err, command)
		if both.status == exitOwnFailure { // no program's: our error tells more
			return code, name
		}
		return int(both.status), name
	}
	if status, ok := errors.AsType[StatusError](err); ok {
		return int(status), "status"
	}
	if sig, ok := errors.AsType[*program.InterruptError](err); ok {
		return sig.ExitCode(), "interrupted"
	}
	if failed, ok := errors.AsType[*setup.Error](err); ok {
		return setupCode(failed)
	}
	if start, ok := errors.AsType[*runner.StartError](err); ok {
		return start.Code, "not_started"
	}
	for _, row := range ExitTable() {
		if errors.Is(err, row.err) {
			return row.Code, row.Name
		}
	}
	if RunsProgram(command) {
		return exitOwnFailure, "internal"
	}
	return ExitFailure, "failure"
}

// setupCode is for a setup that failed: 125 unless the configuration is wrong or
// what it names does not exist. What a setup's command was about says nothing.
func setupCode(err *setup.Error) (int, string) {
	for _, row := range ExitTable() {
		switch row.err {
		case superqode.ErrUsage, superqode.ErrNotFound, context.Canceled:
			if errors.Is(err, row.err) {
				return row.Code, row.Name
			}
		}
	}
	return exitOwnFailure, "setup"
}

// RunsProgram reports whether a command passes a program's exit code through.
func RunsProgram(command string) bool {
	return command == "run" || command == attach.DetachCommand ||
		strings.HasPrefix(command, "run ") || strings.HasPrefix(command, "workspace exec") || command == "workspace shell"
}

// ErrorPaths collects the paths that an error speaks of.
func ErrorPaths(err error) []string {
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

// ProgramError joins the program's exit code with what superqode could not do:
// a program that failed keeps its code, one that succeeded must not hide our
// failure.
func ProgramError(code int, err error) error {
	switch {
	case err != nil && code != 0:
		return &failedProgram{StatusError(code), err}
	case err != nil:
		return err
	case code != 0:
		return StatusError(code)
	}
	return nil
}

// failedProgram is an error of ours beside a program's own failure: its sentence
// is printed and the program's code is kept.
type failedProgram struct {
	status StatusError
	err    error
}

func (e *failedProgram) Error() string { return e.err.Error() }

func (e *failedProgram) Unwrap() error { return e.err }
