package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
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
