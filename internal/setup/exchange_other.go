//go:build !linux

package setup

import (
	"errors"
	"os"
)

// exchangeAt is not to be had through an open folder here; two renames do.
func exchangeAt(*os.File, string, string) error { return errors.ErrUnsupported }
