package treecopy

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// CopyContents fills an empty file with what another one holds, as Copy does, and stops when
// ctx ends. Holes stay holes.
func CopyContents(ctx context.Context, in, out *os.File) error {
	w := &copyWorker{copier: &copier{}, buf: make([]byte, 64<<10)}
	stop := context.AfterFunc(ctx, func() { w.stop.Store(true) })
	defer stop()
	var st unix.Stat_t
	err := unix.Fstat(int(in.Fd()), &st)
	if err == nil {
		err = w.transfer(int(in.Fd()), int(out.Fd()), &st)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
