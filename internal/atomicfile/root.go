package atomicfile

import "os"

// OpenRoot is os.OpenRoot for a folder that a program may have replaced: for a
// FIFO it fails with ENOTDIR. os.OpenRoot would open the FIFO and wait for a
// writer for ever (go1.26).
func OpenRoot(dir string) (*os.Root, error) {
	return os.OpenRoot(dir + string(os.PathSeparator) + ".")
}
