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
	// drainTime is how long to read a pipe after the tree has ended if someone
	// outside the tree still holds it open.
	drainTime = 200 * time.Millisecond
)

// run copies until the stream's end. If the user's writer fails it closes the
// reading end, so the program gets the same EPIPE as without us.
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
			// Take what the pipe held when the tree ended, but not what a
			// stranger writes afterwards.
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
