package session

import (
	"fmt"
	"path"
	"slices"

	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Limits returns the limits among the defaults.
func limitsOf(d state.Defaults) runner.Limits {
	return runner.Limits{Memory: d.Memory, Pids: d.Pids, CPUTime: d.CPUTime, Disk: d.MaxDisk}
}

// Fill returns opt with the defaults where it leaves something open. Variables are
// added to: a later one of the same name wins.
func (opt ExecOptions) With(d state.Defaults) ExecOptions {
	opt.Env = append(slices.Clone(d.Env), opt.Env...)
	opt.EnvAllow = append(slices.Clone(d.EnvAllow), opt.EnvAllow...)
	opt.CleanEnv = opt.CleanEnv || d.CleanEnv
	first(&opt.Cwd, string(d.Cwd))
	first(&opt.Timeout, d.Timeout)
	first(&opt.MaxOutput, d.MaxOutput)
	first(&opt.Limits.Memory, d.Memory)
	first(&opt.Limits.Pids, d.Pids)
	first(&opt.Limits.CPUTime, d.CPUTime)
	first(&opt.Limits.Disk, d.MaxDisk)
	return opt
}

// Defaults returns what of the options a session can keep.
func (opt ExecOptions) Defaults() state.Defaults {
	return state.Defaults{
		Env: opt.Env, EnvAllow: opt.EnvAllow, CleanEnv: opt.CleanEnv, Cwd: state.HostPath(opt.Cwd), Timeout: opt.Timeout, MaxOutput: opt.MaxOutput,
		Memory: opt.Limits.Memory, Pids: opt.Limits.Pids, CPUTime: opt.Limits.CPUTime, MaxDisk: opt.Limits.Disk,
	}
}

func first[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

// complete fills in the session's defaults and checks what belongs together. The
// session's setup has limits of its own.
func (opt *ExecOptions) complete(rec *state.Record) error {
	if !opt.setup {
		*opt = opt.With(rec.Defaults)
	}
	for _, pattern := range opt.EnvAllow {
		if _, err := path.Match(pattern, ""); err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--env-allow %q is not a pattern of names", pattern)
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
			return fmt.Sprintf("the program was ended: it used more than %s of processor time (--cpu-time)", time.Duration(h.Value))
		case runner.LimitMemory:
			return fmt.Sprintf("the program was ended: it needed more than %d bytes of memory (--memory)", h.Value)
		case runner.LimitDisk:
			return fmt.Sprintf("the program was ended: it wrote more than %d bytes (--max-disk)", h.Value)
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
