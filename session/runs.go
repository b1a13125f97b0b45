package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
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
func (s *Program) recordStart(opt ExecOptions, paths runPaths, pid int) {
	if opt.setup {
		return
	}
	rec := s.runRecord(opt, paths)
	rec.State, rec.PID = RunRunning, pid
	if err := s.appendRun(rec); err != nil {
		s.Log.Warn().Err(err).Msg("record the start of a run")
	}
}

func (s *Program) runRecord(opt ExecOptions, paths runPaths) RunRecord {
	return RunRecord{
		SchemaVersion: state.SchemaVersion, Run: paths.number, SessionID: s.Rec.ID, Agent: s.Actor(), Command: opt.Args, Cwd: state.HostPath(paths.cwd),
		Supervisor: os.Getpid(), Detached: opt.detached, StartedAt: s.Now().UTC(), Limits: []runner.Holding{},
	}
}

// recordEnd writes the last line of a run.
func (s *Program) recordEnd(opt ExecOptions, paths runPaths, res runner.Result) error {
	if opt.setup {
		return nil
	}
	rec := s.runRecord(opt, paths)
	rec.State, rec.ExitCode, rec.Signal, rec.TimedOut, rec.Limit, rec.Killed = RunExited, &res.ExitCode, res.Signal, res.TimedOut, res.Limit, res.Killed
	rec.Limits = append(rec.Limits, res.Holdings...)
	rec.StdoutBytes, rec.StderrBytes, rec.Truncated = res.Stdout.Bytes, res.Stderr.Bytes, res.Truncated
	ended := s.Now().UTC()
	rec.EndedAt = &ended
	if res.Started.IsZero() {
		rec.Error = "the program could not be started"
	} else {
		rec.StartedAt, rec.PID = res.Started.UTC(), res.PID
		rec.DurationSeconds = text.Seconds(res.Ended.Sub(res.Started))
		ended = res.Ended.UTC()
	}
	return s.appendRun(rec)
}

func (s *Program) appendRun(rec RunRecord) error {
	return ledger.Append(filepath.Join(s.Folder, state.RunsFile), rec)
}

// readRuns returns a session's runs in the order of their numbers.
func readRuns(dir string) ([]RunRecord, error) {
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
	runs, err := readRuns(l.Dir)
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
	if again, err := readRuns(dir); err == nil {
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
	return RunRecord{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has %s", l.ID, what), "superqode workspace ps --session %s", l.ID)
}

// outputTail is how many bytes of a run's output a report shows.
const outputTail = 4 << 10

// commandRuns are the session's runs as its report tells them; secrets are masked
// where it is rendered.
func (s *Program) commandRuns() ([]artifacts.CommandRun, error) {
	runs, err := readRuns(s.Folder)
	if err != nil {
		return nil, err
	}
	list := make([]artifacts.CommandRun, 0, len(runs))
	for _, r := range runs {
		c := artifacts.CommandRun{
			Run: r.Run, Agent: r.Agent, Command: r.Command, ExitCode: state.ExitUnknown, TimedOut: r.TimedOut, Limit: r.Limit,
			StartedAt: artifacts.At(r.StartedAt), DurationSeconds: r.DurationSeconds, OutputBytes: r.StdoutBytes + r.StderrBytes, Truncated: r.Truncated,
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
