package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// LogOptions choose what CopyLog copies.
type LogOptions struct {
	Run    int    // 0: the last one
	Stream string // stdout, stderr or "" for both in the order in which they came
	Offset int64  // of the first byte, in what Stream chooses
	Follow bool   // go on until the run has ended
}

// CopyLog copies a run's output, also of one that is under way or of a session
// that has ended. next is the offset to go on from.
func CopyLog(ctx context.Context, l *state.Listed, w io.Writer, opt LogOptions) (run RunRecord, next int64, err error) {
	if run, err = FindRun(l, opt.Run); err != nil {
		return run, 0, err
	}
	name := filepath.Join(l.Dir, "log", "run-"+strconv.Itoa(run.Run))
	r, err := runner.OpenLog(name+".log", name+".idx", opt.Stream)
	if errors.Is(err, os.ErrNotExist) {
		return run, 0, superqode.Errorf(superqode.ErrNotFound, "the log of run %d of session %s is gone", run.Run, l.ID)
	}
	if err != nil {
		return run, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if next, err = skip(r, opt.Offset); err != nil {
		return run, next, err
	}
	for {
		live := run.State == RunRunning
		n, err := io.Copy(w, r)
		next += n
		if err != nil || !live || !opt.Follow {
			return run, next, err
		}
		select {
		case <-ctx.Done():
			return run, next, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		run.settle(l.Dir) // and then once more what came until the end
	}
}

// skip reads over the first bytes; an offset behind the end is the end.
func skip(r io.Reader, offset int64) (int64, error) {
	n, err := io.CopyN(io.Discard, r, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// lastBytes returns the end of a file, from the beginning of a line.
func lastBytes(path string, most int64) ([]byte, error) {
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, st.Size()-most)
	data := make([]byte, st.Size()-from)
	n, err := f.ReadAt(data, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	data = data[:n]
	if i := bytes.IndexByte(data, '\n'); from > 0 && i >= 0 && i < len(data)-1 {
		data = data[i+1:]
	}
	return data, nil
}
