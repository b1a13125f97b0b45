package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
)

func TestHintOf(t *testing.T) {
	t.Parallel()
	write := func(path string, err error) error {
		return fmt.Errorf("keep: %w", &fs.PathError{Op: "write", Path: path, Err: err})
	}
	for want, errs := range map[string][]error{
		"superqode workspace cleanup": {write("/home/u/.superqode/x", syscall.ENOSPC), write("x", syscall.EDQUOT)},
		"own":                         {superqode.WithHint(write("x", syscall.ENOSPC), "own")},
		"":                            {write("/dev/stdout", syscall.ENOSPC), write("x", syscall.EACCES), errors.New("any")},
	} {
		for _, err := range errs {
			if got := hintOf(err); got != want {
				t.Errorf("%v: hint %q, want %q", err, got, want)
			}
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	other := errors.New("disk on fire")
	verification := superqode.Errorf(superqode.ErrVerification, "v")
	for _, tt := range []struct {
		name    string
		err     error
		command string
		want    int
		code    string
	}{
		{"none", nil, "run <cmd>", 0, ""},
		{"failure", other, "workspace list", 1, "failure"},
		{"own failure of run", other, "run <cmd>", 125, "internal"},
		{"own failure of exec", other, "workspace exec <cmd>", 125, "internal"},
		{"end is no exec", other, "workspace end", 1, "failure"},
		{"denied", superqode.ErrDenied, "x", 3, "denied"},
		{"conflict", superqode.ErrConflict, "x", 4, "conflict"},
		{"locked", superqode.WithHint(superqode.ErrLocked, "h"), "run <cmd>", 5, "locked"},
		{"verification", verification, "run <cmd>", 6, "verification"},
		{"not found", superqode.Errorf(superqode.ErrNotFound, "n"), "x", 7, "not_found"},
		{"usage", superqode.ErrUsage, "run <cmd>", 80, "usage"},
		{"joined", errors.Join(other, superqode.ErrConflict), "x", 4, "conflict"},
		{"not executable", &runner.StartError{Name: "x", Code: 126, Err: other}, "run <cmd>", 126, "not_started"},
		{"program not found", fmt.Errorf("w: %w", &runner.StartError{Name: "x", Code: 127, Err: other}), "run <cmd>", 127, "not_started"},
		{"interrupted", &program.InterruptError{Signal: syscall.SIGINT}, "run <cmd>", 130, "interrupted"},
		{"terminated", &program.InterruptError{Signal: syscall.SIGTERM}, "workspace end", 143, "interrupted"},
		{"canceled", context.Canceled, "x", 130, "interrupted"},
		{"nobody reads", syscall.EPIPE, "workspace diff", 141, "pipe"},
		{"program's own", ProgramError(3, nil), "run <cmd>", 3, "status"},
		{"program and verification", ProgramError(3, verification), "run <cmd>", 3, "verification"},
		{"verification alone", ProgramError(0, verification), "run <cmd>", 6, "verification"},
		{"not started and verification", ProgramError(127, errors.Join(&runner.StartError{Code: 127, Err: other}, verification)), "run <cmd>", 127, "not_started"},
	} {
		code, name := Classify(tt.err, tt.command)
		if code != tt.want || name != tt.code {
			t.Errorf("%s: got %d %q, want %d %q", tt.name, code, name, tt.want, tt.code)
		}
	}
}

func TestErrorPaths(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "/x/y", Err: syscall.EACCES})
	if got := ErrorPaths(err); !cmp.Equal(got, []string{"/x/y"}) {
		t.Errorf("got %q", got)
	}
	if got := ErrorPaths(errors.New("x")); got == nil || len(got) != 0 {
		t.Errorf("got %#v, want an empty list", got)
	}
}
