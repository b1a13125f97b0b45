package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// sendRequest is a piece of a program's stdin.
type sendRequest struct {
	Data []byte `json:"data"`
	End  bool   `json:"end"` // nothing follows it
}

type sendReply struct {
	Sent   int  `json:"sent"`   // bytes
	Closed bool `json:"closed"` // the program's stdin is
}

const (
	maxSend = 256 << 10 // bytes of one request, whose line has a limit
	// sendWait is how long a program may let one request wait.
	sendWait = 5 * time.Second
)

// sendHandler writes to the program's stdin. Any process of the session may ask: it could
// open the pipe as well.
func sendHandler(stdin io.Reader) supervisor.Handler {
	return func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		feed, ok := stdin.(*runner.Feed)
		if !ok {
			return nil, superqode.Errorf(superqode.ErrUsage, "the program's stdin was not left open")
		}
		var q sendRequest
		if err := json.Unmarshal(args, &q); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "run.send: %v", err)
		}
		ctx, cancel := context.WithTimeout(ctx, sendWait)
		defer cancel()
		n, err := feed.Write(ctx, q.Data)
		if err != nil && !errors.Is(err, os.ErrClosed) && ctx.Err() == nil {
			return nil, err
		}
		if q.End && n == len(q.Data) {
			feed.End()
		}
		return sendReply{n, errors.Is(err, os.ErrClosed) || q.End && n == len(q.Data)}, nil
	}
}

// Send writes what r has to the stdin of a run that is under way, and with end closes it.
// sent is how many bytes the program has, or has a pipe full of. The error wraps
// superqode.ErrNotFound when there is no such run or it has ended, superqode.ErrConflict
// when its stdin is closed, and superqode.ErrLocked when it reads none of it.
func Send(ctx context.Context, l *state.Listed, number int, r io.Reader, end bool) (sent int64, err error) {
	run, err := FindRun(l, number)
	if err != nil {
		return 0, err
	}
	if run.State != RunRunning {
		return 0, superqode.Errorf(superqode.ErrNotFound, "run %d of session %s has ended already", run.Run, l.ID)
	}
	buf := make([]byte, maxSend)
	for last := false; !last; {
		n, err := r.Read(buf)
		if last = err != nil; last && !errors.Is(err, io.EOF) {
			return sent, err
		}
		for q := (sendRequest{Data: buf[:n], End: end && last}); len(q.Data) > 0 || q.End; {
			ask, cancel := context.WithTimeout(ctx, 2*sendWait)
			var done sendReply
			err := supervisor.CallSocket(ask, socketOf(l.Dir, run.Run), "run.send", q, &done)
			cancel()
			if err != nil {
				err = sendError(err, l, run.Run)
			}
			if errors.Is(err, superqode.ErrNotFound) && len(q.Data) == 0 && sent > 0 {
				return sent, nil // it took all and ended before its stdin could
			}
			if err != nil {
				return sent, err
			}
			sent, q.Data = sent+int64(done.Sent), q.Data[min(done.Sent, len(q.Data)):]
			switch {
			case done.Closed && len(q.Data) == 0 && q.End:
				return sent, nil
			case done.Closed:
				return sent, superqode.Errorf(superqode.ErrConflict, "the stdin of run %d of session %s is closed", run.Run, l.ID)
			case done.Sent == 0 && sent == 0:
				return 0, superqode.Errorf(superqode.ErrLocked, "run %d of session %s does not read its stdin", run.Run, l.ID)
			case done.Sent == 0: // not to be sent again
				return sent, fmt.Errorf("run %d of session %s stopped reading its stdin after %d bytes", run.Run, l.ID, sent)
			}
		}
	}
	return sent, nil
}

// sendError says why a run's supervisor did not write.
func sendError(err error, l *state.Listed, number int) error {
	if errors.Is(err, superqode.ErrUsage) {
		err = superqode.Errorf(superqode.ErrUsage, "the stdin of run %d of session %s was not left open", number, l.ID)
		return superqode.WithHint(err, "superqode workspace exec --session %s --detach --stdin -- CMD", l.ID)
	}
	for range 50 { // who let go of the connection may not have recorded the end yet
		if run, ferr := FindRun(l, number); ferr == nil && run.State != RunRunning {
			return superqode.Errorf(superqode.ErrNotFound, "run %d of session %s has ended", number, l.ID)
		}
		time.Sleep(sendWait / 50)
	}
	return err
}
