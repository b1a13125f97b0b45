// Package program runs one program, or several one after the other, in the workspace
// of a session, and keeps their record: environment, limits, logs, what goes on
// beside the program (claims, watching), and what the programs must not touch.
package program

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/custody"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Program runs programs in one session's workspace, one or several at a time, and
// keeps their record.
type Program struct {
	*site.Site
	Authors *attribution.Authorship // keeps what agents say of their edits

	custody *custody.Custody // while a program runs
}

// Wrote tells of lines of findings.jsonl that superqode itself has written while a
// program runs.
func (s *Program) Wrote(lines []byte) { s.custody.Wrote(lines) }

// Findings is what the session's programs found.
func (s *Program) Findings() *findings.Book {
	b := findings.Open(s.Site)
	b.Wrote = s.Wrote
	return b
}

// ExecOptions says what to run in a session, and with which streams. A stream
// that is an *os.File on a terminal stays a terminal for the program.
type ExecOptions struct {
	Args      []string
	Cwd       string // relative to the workspace; "" is the folder that the session was opened from
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Env       []string           // KEY=VALUE, added to the session's environment
	EnvAllow  []string           // patterns of names taken over from the caller's environment; any means CleanEnv
	CleanEnv  bool               // start from PATH, HOME, TERM, LANG, USER and the session's own variables only
	Timeout   time.Duration      // 0: none
	MaxOutput int64              // bytes passed on, per stream; 0: all of them
	Limits    runner.Limits      // of the whole tree; DiskFolders are the session's own
	TTY       bool               // a terminal for the program, whatever the streams are
	Code      *Code              // a program given as text; Args are its arguments
	Blocks    []Block            // programs to run one after the other instead; see ExecAll
	Started   func(run int)      // called once the program runs, with the run's number
	StdoutToo bool               // the program's stdout goes to Stderr (run --json)
	Signals   <-chan os.Signal   // passed to the program while it runs
	Kill      chan time.Duration // ends the whole tree: TERM at once, KILL after the time received; run.kill sends on it, too
	KernelOptions

	BlockEnded func(BlockResult) // called after each of Blocks

	Detached bool
	Setup    bool   // a command of the session's setup, not its program
	Log      string // the file in the session's log folder that gets the output; "": command.log
}

// KernelOptions say what is asked of the guard's kernel layer.
type KernelOptions = layers.KernelOptions

// Marker is the environment entry that only the processes of one run carry.
func Marker(runDir string) string { return "SUPERQODE_RUN_DIR=" + runDir }

// SetupReport is SetupSteps as reports hold it.
func (s *Program) SetupReport() []artifacts.SetupStep {
	list := []artifacts.SetupStep{}
	steps, err := SetupSteps(s.Folder)
	if err != nil {
		s.Note([]string{"what came of the setup can not be read: " + err.Error()})
	}
	for _, st := range steps {
		list = append(list, st.Report())
	}
	return list
}

// SetupMasked is SetupReport without secrets, for what people other than the
// session's user may see.
func (s *Program) SetupMasked() []artifacts.SetupStep {
	list := s.SetupReport()
	if r := s.Redactor(); r != nil {
		for i := range list {
			texts := []*string{&list[i].Name, &list[i].Reason, &list[i].Output}
			if in := list[i].Input; in != nil {
				texts = append(texts, &in.From, &in.To, &in.Resolved)
			}
			for _, text := range texts {
				*text = r.Text(*text)
			}
		}
	}
	return list
}

// SetupSteps returns what came of each entry the last time that the setup of the
// session in a folder was reconciled.
func SetupSteps(sessionDir string) ([]setup.Step, error) {
	st, err := setup.Load(filepath.Join(sessionDir, state.SetupStateFile))
	if err != nil {
		return nil, err
	}
	return st.Steps, nil
}

// limitsOf returns the limits among the defaults.
func limitsOf(d state.Defaults) runner.Limits {
	return runner.Limits{Memory: d.Memory, Pids: d.Pids, CPUTime: d.CPUTime, Disk: d.MaxDisk}
}

// With returns opt with the defaults where it leaves something open. Variables are
// added to: a later one of the same name wins.
func (opt ExecOptions) With(d state.Defaults) ExecOptions {
	opt.Env = append(slices.Clone(d.Env), opt.Env...)
	opt.EnvAllow = append(slices.Clone(d.EnvAllow), opt.EnvAllow...)
	opt.CleanEnv = opt.CleanEnv || d.CleanEnv
	opt.Cwd = cmp.Or(opt.Cwd, string(d.Cwd))
	opt.Timeout = cmp.Or(opt.Timeout, d.Timeout)
	opt.MaxOutput = cmp.Or(opt.MaxOutput, d.MaxOutput)
	opt.Limits.Memory = cmp.Or(opt.Limits.Memory, d.Memory)
	opt.Limits.Pids = cmp.Or(opt.Limits.Pids, d.Pids)
	opt.Limits.CPUTime = cmp.Or(opt.Limits.CPUTime, d.CPUTime)
	opt.Limits.Disk = cmp.Or(opt.Limits.Disk, d.MaxDisk)
	return opt
}

// Defaults returns what of the options a session can keep.
func (opt ExecOptions) Defaults() state.Defaults {
	return state.Defaults{
		Env: opt.Env, EnvAllow: opt.EnvAllow, CleanEnv: opt.CleanEnv, Cwd: state.HostPath(opt.Cwd),
		Timeout: opt.Timeout, MaxOutput: opt.MaxOutput,
		Memory: opt.Limits.Memory, Pids: opt.Limits.Pids, CPUTime: opt.Limits.CPUTime, MaxDisk: opt.Limits.Disk,
	}
}

// complete fills in the session's defaults and checks what belongs together. The
// session's setup has limits of its own.
func (opt *ExecOptions) complete(rec *state.Record) error {
	if !opt.Setup {
		*opt = opt.With(rec.Defaults)
	}
	for _, pattern := range opt.EnvAllow {
		if _, err := path.Match(pattern, ""); err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--env-allow %q is not a pattern of names", pattern)
		}
	}
	for _, kv := range opt.Env {
		key, _, _ := strings.Cut(kv, "=")
		if err := config.CheckVariable(key); err != nil {
			return fmt.Errorf("the program's environment: %w", err)
		}
	}
	if len(opt.Args) == 0 && opt.Code == nil {
		return superqode.Errorf(superqode.ErrUsage, "no program to run")
	}
	return nil
}

// allowed reports whether a variable of the caller's is taken over. A list that
// matches nothing lets nothing in.
func (opt ExecOptions) allowed(name string) bool {
	if slices.Contains(cleanNames(), name) {
		return true
	}
	return slices.ContainsFunc(opt.EnvAllow, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// limitSentence says which limit ended a program.
func limitSentence(res runner.Result) string {
	for _, h := range res.Holdings {
		if h.Limit != res.Limit {
			continue
		}
		switch h.Limit {
		case runner.LimitCPU:
			used := time.Duration(h.Value)
			return fmt.Sprintf("the program was ended: it used more than %s of processor time (--cpu-time)", used)
		case runner.LimitMemory:
			return fmt.Sprintf("the program was ended: it needed more than %s of memory (--memory)", text.Size(h.Value))
		case runner.LimitDisk:
			return fmt.Sprintf("the program was ended: it wrote more than %s (--max-disk, limits.max_disk or workspace.max_size_mb)", text.Size(h.Value))
		}
		if res.ExitCode != exitKilled {
			return fmt.Sprintf("the program failed after it was refused more than %d processes (--pids)", h.Value)
		}
		return fmt.Sprintf("the program was ended: it had more than %d processes (--pids)", h.Value)
	}
	return "the program was ended by the limit " + res.Limit
}

// exitKilled is the exit code of a program that a limit ended.
const exitKilled = 137

// CheckLimits refuses limits that cannot be enforced here, before anything is
// made.
func CheckLimits(d state.Defaults) ([]runner.Holding, error) {
	l := limitsOf(d)
	if l.Disk > 0 {
		l.DiskFolders = []string{"/"}
	}
	held, err := runner.CheckLimits(l)
	if err != nil {
		return nil, superqode.WithHint(err, "superqode doctor")
	}
	return held, nil
}
