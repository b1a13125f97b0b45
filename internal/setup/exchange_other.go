//go:build !linux

package setup

import (
	"errors"
	"os"
)

// exchangeAt is not available through an open folder here; two renames replace
// it.
func exchangeAt(*os.File, string, string) error { return errors.ErrUnsupported }
