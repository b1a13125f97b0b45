package artifacts

import (
	"errors"
	"io/fs"
	"syscall"
)

// readOnly reports whether err says that the store's folder can not be written.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
