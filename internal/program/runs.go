package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// The states of a run.
const (
	RunRunning = "running"
	RunExited  = "exited"
	RunDead    = "dead" // its supervisor was killed before it could record the end
)

// RunRecord is one program that was run in a session.
type RunRecord struct {
	SchemaVersion   int                 `json:"schema_version"`
	Run             int                 `json:"run"` // from 1
	SessionID       superqode.SessionID `json:"session_id"`
	State           string              `json:"state"` // running, exited or dead
	Agent           superqode.AgentID   `json:"agent_id"`
	Command         []string            `json:"command"`
	Cwd             state.HostPath      `json:"cwd"`
	PID             int                 `json:"pid"`        // the program's, while it runs
	Supervisor      int                 `json:"supervisor"` // superqode's
	Detached        bool                `json:"detached"`
	StartedAt       time.Time           `json:"started_at"`
	EndedAt         *time.Time          `json:"ended_at"`
	DurationSeconds float64             `json:"duration_seconds"`
	ExitCode        *int                `json:"exit_code"` // nil while it runs, and when nobody knows
	Signal          string              `json:"signal"`
	TimedOut        bool                `json:"timed_out"`
	Limit           string              `json:"limit"`
	Killed          bool                `json:"killed"` // by workspace kill
	Limits          []runner.Holding    `json:"limits"` // how each limit was held
	StdoutBytes     int64               `json:"stdout_bytes"`
	StderrBytes     int64               `json:"stderr_bytes"`
	Truncated       bool                `json:"truncated"`
	Error           string              `json:"error"` // why it could not be started
}

// recordStart writes the first line of a run. Where that fails the run goes on:
// its end is recorded, too.
func (r *run) recordStart(pid int) {
	if r.opt.Setup {
		return
	}
	rec := r.record()
	rec.State, rec.PID = RunRunning, pid
	if err := r.AppendRun(rec); err != nil {
		r.Log.Warn().Err(err).Msg("record the start of a run")
	}
}

func (r *run) record() RunRecord {
	return RunRecord{
		SchemaVersion: state.SchemaVersion, Run: r.number, SessionID: r.Rec.ID, Agent: r.Actor(), Command: r.opt.Args,
		Cwd:        state.HostPath(r.cwd),
		Supervisor: os.Getpid(), Detached: r.opt.Detached, StartedAt: r.Now().UTC(), Limits: []runner.Holding{},
	}
}

// recordEnd writes the last line of a run.
func (r *run) recordEnd(res runner.Result) error {
	if r.opt.Setup {
		return nil
	}
	rec := r.record()
	rec.State, rec.ExitCode, rec.Signal = RunExited, &res.ExitCode, res.Signal
	rec.TimedOut, rec.Limit, rec.Killed = res.TimedOut, res.Limit, res.Killed
	rec.Limits = append(rec.Limits, res.Holdings...)
	rec.StdoutBytes, rec.StderrBytes, rec.Truncated = res.Stdout.Bytes, res.Stderr.Bytes, res.Truncated
	ended := r.Now().UTC()
	rec.EndedAt = &ended
	if res.Started.IsZero() {
		rec.Error = "the program could not be started"
	} else {
		rec.StartedAt, rec.PID = res.Started.UTC(), res.PID
		rec.DurationSeconds = text.Seconds(res.Ended.Sub(res.Started))
		ended = res.Ended.UTC()
	}
	return r.AppendRun(rec)
}

// AppendRun writes a line of the session's runs.
func (s *Program) AppendRun(rec RunRecord) error {
	return ledger.Append(filepath.Join(s.Folder, state.RunsFile), rec)
}

// ReadRuns returns a session's runs in the order of their numbers.
func ReadRuns(dir string) ([]RunRecord, error) {
	lines, _, err := ledger.Read[RunRecord](filepath.Join(dir, state.RunsFile))
	if err != nil {
		return nil, err
	}
	byNumber := map[int]RunRecord{}
	for _, rec := range lines {
		if rec.Run <= 0 {
			continue
		}
		if old, ok := byNumber[rec.Run]; !ok || old.State == RunRunning {
			byNumber[rec.Run] = rec
		}
	}
	runs := make([]RunRecord, 0, len(byNumber))
	for _, rec := range byNumber {
		runs = append(runs, rec)
	}
	slices.SortFunc(runs, func(a, b RunRecord) int { return a.Run - b.Run })
	return runs, nil
}

// Runs returns what ran, and runs, in a session. A run whose supervisor died
// without recording its end is dead.
func Runs(l *state.Listed) ([]RunRecord, error) {
	runs, err := ReadRuns(l.Dir)
	for i := range runs {
		runs[i].settle(l.Dir)
	}
	return runs, err
}

// settle finds out whether a run that has no end is still under way.
func (r *RunRecord) settle(dir string) {
	if r.State != RunRunning {
		return
	}
	held, err := lockfile.IsHeld(filepath.Join(dir, "log", "run-"+strconv.Itoa(r.Run)+".lock"))
	if held && err == nil {
		r.DurationSeconds = text.Seconds(time.Since(r.StartedAt))
		return
	}
	// It may have ended since the record was read.
	if again, err := ReadRuns(dir); err == nil {
		for _, rec := range again {
			if rec.Run == r.Run && rec.State != RunRunning {
				*r = rec
				return
			}
		}
	}
	r.State = RunDead
}

func socketOf(dir string, run int) string { return filepath.Join(dir, "sock-"+strconv.Itoa(run)) }

// shareNetwork finds the programs that may be in the session's network. Nobody else looks
// for them before the function returned is called: when this program runs, too.
func (r *run) shareNetwork(ctx context.Context) (started func(), err error) {
	switch {
	case r.Rec.OwnNetwork:
	case r.opt.OwnNetwork:
		r.Warn(layers.NothingOutside)
	default:
		return func() {}, nil
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(r.Folder, "network.lock"))
	if err != nil {
		return nil, err
	}
	started = sync.OnceFunc(func() {
		if err := unlock(); err != nil {
			r.Log.Warn().Err(err).Msg("let others look for the session's network")
		}
	})
	runs, err := ReadRuns(r.Folder)
	if err != nil {
		started()
		return nil, err
	}
	for _, one := range runs {
		if one.settle(r.Folder); one.State == RunRunning {
			r.opt.Beside = append(r.opt.Beside, one.PID)
		}
	}
	return started, nil
}

// FindRun returns the run with a number; 0 is the last one. The error wraps
// superqode.ErrNotFound.
func FindRun(l *state.Listed, number int) (RunRecord, error) {
	runs, err := Runs(l)
	if err != nil {
		return RunRecord{}, err
	}
	if number == 0 && len(runs) > 0 {
		return runs[len(runs)-1], nil
	}
	for _, r := range runs {
		if r.Run == number {
			return r, nil
		}
	}
	what := fmt.Sprintf("no run %d", number)
	if number == 0 {
		what = "no run yet"
	}
	err = superqode.Errorf(superqode.ErrNotFound, "session %s has %s", l.ID, what)
	return RunRecord{}, superqode.WithHint(err, "superqode workspace ps --session %s", l.ID)
}

// outputTail is how many bytes of a run's output a report shows.
const outputTail = 4 << 10

// CommandRuns are the session's runs as its report tells them; secrets are masked
// where it is rendered.
func (s *Program) CommandRuns() ([]artifacts.CommandRun, error) {
	runs, err := ReadRuns(s.Folder)
	if err != nil {
		return nil, err
	}
	list := make([]artifacts.CommandRun, 0, len(runs))
	for _, r := range runs {
		c := artifacts.CommandRun{
			Run: r.Run, Agent: r.Agent, Command: r.Command, ExitCode: state.ExitUnknown, TimedOut: r.TimedOut,
			Limit:     r.Limit,
			StartedAt: artifacts.At(r.StartedAt), DurationSeconds: r.DurationSeconds,
			OutputBytes: r.StdoutBytes + r.StderrBytes, Truncated: r.Truncated,
		}
		if r.ExitCode != nil {
			c.ExitCode = *r.ExitCode
		}
		tail, err := lastBytes(filepath.Join(s.Folder, "log", "run-"+strconv.Itoa(r.Run)+".log"), outputTail)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		c.Output = text.PrintableLines(string(tail))
		list = append(list, c)
	}
	return list, nil
}

// killRequest asks a run's supervisor to end it.
type killRequest struct {
	GraceMS int64 `json:"grace_ms"`
}

// killHandler passes a request to end the run on to the runner. Any process of the
// session may ask: it could end the program by a signal as well.
func killHandler(kill chan<- time.Duration) supervisor.Handler {
	return func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		var q killRequest
		if err := json.Unmarshal(args, &q); err != nil || q.GraceMS < 0 || q.GraceMS > time.Hour.Milliseconds() {
			return nil, superqode.Errorf(superqode.ErrUsage, "run.kill: grace_ms must be between 0 and 3600000")
		}
		select {
		case kill <- time.Duration(q.GraceMS) * time.Millisecond:
		case <-time.After(time.Second): // the program is at its end already
		case <-ctx.Done():
		}
		return struct{}{}, nil
	}
}

// KillWait is how long a run may take to end after its grace: what hangs in the
// kernel is given up by the runner after ten seconds.
const KillWait = 20 * time.Second

// KillRun ends a run's whole tree: TERM, then KILL after the grace. It returns the
// run as it ended. Of a run whose supervisor is dead what is left is ended. The
// error wraps ErrNotFound when there is no such run or it has ended.
func KillRun(ctx context.Context, l *state.Listed, number int, grace time.Duration) (RunRecord, error) {
	run, err := FindRun(l, number)
	if err != nil {
		return run, err
	}
	switch run.State {
	case RunExited:
		return run, superqode.Errorf(superqode.ErrNotFound, "run %d of session %s has ended already", run.Run, l.ID)
	case RunDead:
		_, err := runner.EndMarked(Marker(filepath.Join(l.Dir, "tmp", "run-"+strconv.Itoa(run.Run))))
		return run, err
	}
	err = supervisor.CallSocket(ctx, socketOf(l.Dir, run.Run), "run.kill", killRequest{grace.Milliseconds()},
		&struct{}{})
	if err != nil && !errors.Is(err, superqode.ErrNotFound) { // not found: it ended this very moment
		return run, err
	}
	for deadline := time.Now().Add(grace + KillWait); ; {
		if run, err = FindRun(l, run.Run); err != nil || run.State != RunRunning {
			return run, err
		}
		if time.Now().After(deadline) {
			return run, superqode.Errorf(superqode.ErrLocked, "run %d of session %s did not end", run.Run, l.ID)
		}
		select {
		case <-ctx.Done():
			return run, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// KillRuns ends all runs of a session that are under way.
func KillRuns(ctx context.Context, l *state.Listed, grace time.Duration) error {
	runs, err := Runs(l)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.State != RunRunning {
			continue
		}
		if _, kerr := KillRun(ctx, l, r.Run, grace); kerr != nil && !errors.Is(kerr, superqode.ErrNotFound) {
			err = errors.Join(err, kerr)
		}
	}
	return err
}

// LogOptions choose what CopyLog copies.
type LogOptions struct {
	Run    int           // 0: the last one
	Stream string        // stdout, stderr or "" for both in the order in which they came
	Offset int64         // of the first byte, in what Stream chooses
	Line   int           // the number of the first line, from 0 at Offset
	Limit  int           // how many lines at most; 0: all
	Follow bool          // go on until the run has ended
	Wait   time.Duration // until there is something to copy, or the run has ended
}

// Next is where to go on from, after what CopyLog copied.
type Next struct {
	Offset int64
	Line   int // a last line without an end counts once the run has ended
}

// lines passes on lines from a number on.
type lines struct {
	w        io.Writer
	from, to int // the first one's number, and that after the last; 0: no last
	at       int
	passed   bool
	partial  bool // the last line has no end yet
}

// errLines ends a copy: there are enough.
var errLines = errors.New("enough lines")

// Write returns errLines where there are enough; n is then where they end.
func (l *lines) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if l.to > 0 && l.at >= l.to {
			return n, errLines
		}
		end := bytes.IndexByte(p[n:], '\n') + 1
		if l.partial = end == 0; l.partial {
			end = len(p) - n
		}
		if l.at >= l.from {
			if _, err := l.w.Write(p[n : n+end]); err != nil {
				return n, err
			}
			l.passed = true
		}
		if n += end; !l.partial {
			l.at++
		}
	}
	return n, nil
}

// CopyLog copies a run's output, also of one that is under way or of a session
// that has ended.
func CopyLog(ctx context.Context, l *state.Listed, w io.Writer, opt LogOptions) (run RunRecord, next Next, err error) {
	if run, err = FindRun(l, opt.Run); err != nil {
		return run, next, err
	}
	name := filepath.Join(l.Dir, "log", "run-"+strconv.Itoa(run.Run))
	r, err := runner.OpenLog(name+".log", name+".idx", opt.Stream)
	if errors.Is(err, os.ErrNotExist) {
		return run, next, superqode.Errorf(superqode.ErrNotFound, "the log of run %d of session %s is gone", run.Run, l.ID)
	}
	if err != nil {
		return run, next, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if next.Offset, err = skip(r, opt.Offset); err != nil {
		return run, next, err
	}
	buffered := bufio.NewWriter(w)
	out := &lines{w: buffered, from: opt.Line}
	if opt.Limit > 0 {
		out.to = opt.Line + opt.Limit
	}
	over := time.Now().Add(opt.Wait)
	for {
		live := run.State == RunRunning
		n, err := io.Copy(out, r)
		next.Offset += n
		next.Line = out.at
		if out.partial && !live {
			next.Line++
		}
		enough := errors.Is(err, errLines)
		if enough {
			err = nil
		}
		err = errors.Join(err, buffered.Flush())
		waits := opt.Follow || !out.passed && time.Now().Before(over)
		if err != nil || enough || !live || !waits {
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
