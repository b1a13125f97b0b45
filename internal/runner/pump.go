package runner

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// pump copies one output stream until its end.
type pump struct {
	from *os.File
	to   *sink
	done chan struct{}
	err  error // why it ended early; read after done
}

const (
	chunk = 64 << 10
	// drainTime is how long a pipe that someone outside of the tree still holds
	// open is read after the tree has ended.
	drainTime = 200 * time.Millisecond
)

// run copies until the stream's end. When the user's writer fails the reading end
// is closed, so the program gets the EPIPE that it would have got without us.
func (p *pump) run() error {
	defer p.from.Close()
	buf := make([]byte, chunk)
	late, got, budget := false, 0, 4<<20
	for budget > 0 {
		n, err := p.from.Read(buf)
		if n > 0 {
			if werr := p.to.write(buf[:n]); werr != nil {
				return werr
			}
			got += n
		}
		if late {
			budget -= n
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// What the pipe held when the tree ended is still taken, but not what a
			// stranger goes on to write.
			if late && got == 0 {
				return nil
			}
			late, got = true, 0
			_ = p.from.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO), errors.Is(err, os.ErrClosed):
			return nil // EIO is a terminal's end
		default:
			return err
		}
	}
	return nil
}
