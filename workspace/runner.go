package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
)

// A Runner runs commands. A command that fails is no error: Result.ExitCode says so. One
// that is not found is superqode.ErrNotFound, one that Options.Timeout ended
// context.DeadlineExceeded, and what ends ctx its cause; in each case the whole tree of
// processes has ended, and the Result holds what they wrote. What a Runner cannot hold is
// ErrNotAvailable, and nothing was started.
type Runner interface {
	Exec(ctx context.Context, cmd string, args []string, opt Options) (Result, error)
}

// Options are how a command runs. The zero value is the root, no input, no variable of
// this process, and no limit but that on output. A negative number is superqode.ErrUsage.
type Options struct {
	// Dir is relative to the FS, or an absolute path in it. One that leaves it, by a link
	// too, is ErrPathTraversal.
	Dir     string
	Stdin   []byte
	Timeout time.Duration
	Env     Env
	Net     Net
	// Memory (bytes, swap included), CPU (processor time) and Pids (processes and threads)
	// bound the whole tree; beyond one it is killed, see Result.Limit.
	Memory int64
	CPU    time.Duration
	Pids   int
	// MaxOutput is how many bytes of each stream are kept; 0 is DefaultMaxOutput.
	MaxOutput int64
}

// DefaultMaxOutput is Options.MaxOutput where none is given.
const DefaultMaxOutput = 10 << 20

// Env is a command's environment. Allow names the variables of this process that it gets;
// the patterns are path.Match's, and "*" is all of them. An Allow that is nil, empty or
// matches nothing lets none through. Inject is added, and wins. A command without a slash
// is looked up in the PATH that results, or in this process's one where there is none.
type Env struct {
	Allow  []string
	Inject map[string]string
}

// Net is what a command sees of the network.
type Net string

// The choices of Net.
const (
	NetHost Net = ""     // this machine's network
	NetNone Net = "none" // none, not even loopback; Linux, with network namespaces
)

// Result says what a command wrote and how it ended.
type Result struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"` // 128+n for signal n, 124 after a time-out, 137 for a limit
	Truncated bool   `json:"truncated"` // a stream had more than MaxOutput
	Limit     string `json:"limit"`     // memory, cpu_time or pids: what ended the command
}

// NewRunner returns a Runner whose commands start in a Dir, or in a view of one; below
// another FS there is no directory, which is ErrNotAvailable. The rules of a Scoped hold
// for Options.Dir, whose refusal is a violation. They do not hold for what a command does.
func NewRunner(f FS) Runner { return &local{methods{doerOf(f)}} }

type local struct{ methods }

// Exec implements Runner.
func (l *local) Exec(ctx context.Context, cmd string, args []string, opt Options) (Result, error) {
	env, err := opt.check()
	if err != nil {
		return Result{}, &Error{Op: string(opExec), Path: cmd, Kind: superqode.ErrUsage, Err: err}
	}
	dir, err := l.enter(ctx, opt.Dir)
	if err != nil {
		return Result{}, err
	}
	defer dir.Close()
	if _, ok := superqode.LookupEnv(env, "PATH"); !ok && !strings.Contains(cmd, "/") {
		if found, err := exec.LookPath(cmd); err == nil {
			cmd = found
		}
	}
	var stdout, stderr bytes.Buffer
	spec := runner.Spec{
		Args: append([]string{cmd}, args...), Dir: dir.Name(), Env: env, Stdout: &stdout, Stderr: &stderr, Timeout: opt.Timeout,
		Limits:    runner.Limits{Memory: opt.Memory, CPUTime: opt.CPU, Pids: opt.Pids},
		MaxPassed: cmp.Or(opt.MaxOutput, DefaultMaxOutput), Wrap: start(dir, opt.Net),
		Marker: "SUPERQODE_EXEC=" + rand.Text(), // tells the trees of several commands apart
	}
	if opt.Stdin != nil {
		spec.Stdin = bytes.NewReader(opt.Stdin)
	}
	res, err := runner.Run(ctx, spec)
	out := Result{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: res.ExitCode, Truncated: res.Truncated, Limit: res.Limit}
	if err == nil && res.TimedOut {
		err = context.DeadlineExceeded
	}
	return out, execError(cmd, opt, err)
}

// execError gives the runner's error its kind.
func execError(cmd string, opt Options, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: string(opExec), Path: cmd, Err: err}
	limit, limited := errors.AsType[*runner.LimitError](err)
	start, failed := errors.AsType[*runner.StartError](err)
	switch {
	case limited:
		e.Kind, e.Err = ErrNotAvailable, fmt.Errorf("%s: %s", limit.Limit, limit.Missing)
	case opt.Net == NetNone && (errors.Is(err, ErrNotAvailable) || errors.Is(err, syscall.EPERM)):
		e.Kind, e.Err = ErrNotAvailable, errors.New("a network of its own was refused")
	case failed && start.Code == 127:
		e.Kind, e.Err = superqode.ErrNotFound, start.Err
	case failed:
		e.Err = start.Err
	}
	return e
}

// enter opens the directory in which a command starts. Its Name is the path there.
func (l *local) enter(ctx context.Context, dir string) (*os.File, error) {
	if filepath.IsAbs(dir) {
		top, err := l.enter(ctx, "")
		if err != nil {
			return nil, err
		}
		if err := top.Close(); err != nil {
			return nil, err
		}
		if within(filepath.Clean(dir), top.Name()) {
			dir = rel(filepath.Clean(dir), top.Name())
		}
	}
	r, err := l.run(ctx, call{op: opExec, name: dir})
	return r.dir, err
}

// check refuses what is no choice, and returns the environment.
func (o Options) check() ([]string, error) {
	for name, negative := range map[string]bool{"Timeout": o.Timeout < 0, "Memory": o.Memory < 0, "CPU": o.CPU < 0, "Pids": o.Pids < 0, "MaxOutput": o.MaxOutput < 0} {
		if negative {
			return nil, fmt.Errorf("field Options.%s is negative", name)
		}
	}
	if o.Net != NetHost && o.Net != NetNone {
		return nil, fmt.Errorf("field Options.Net is %q, neither NetHost nor NetNone", o.Net)
	}
	env := []string{}
	for _, pattern := range o.Env.Allow {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("field Options.Env.Allow: %q is not a pattern", pattern)
		}
		for _, kv := range os.Environ() {
			key, _, _ := strings.Cut(kv, "=")
			if ok, _ := path.Match(pattern, key); ok { // the pattern was checked
				env = append(env, kv)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.Env.Inject)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(o.Env.Inject[key], "\x00") {
			return nil, fmt.Errorf("field Options.Env.Inject: %q cannot be a variable", key)
		}
		env = append(env, key+"="+o.Env.Inject[key])
	}
	return superqode.Override(nil, env), nil
}

// AllowCommands returns a Runner that passes on the commands in allowed, written exactly
// so: "ls" does not allow "/bin/ls". The others, and all of them where allowed is empty,
// are ErrAccessDenied and reach log, which may be nil.
func AllowCommands(inner Runner, allowed []string, log ViolationLogger) Runner {
	return &commands{inner, slices.Clone(allowed), &scope{log: log}}
}

type commands struct {
	inner Runner
	names []string
	scope *scope
}

// Exec implements Runner.
func (a *commands) Exec(ctx context.Context, cmd string, args []string, opt Options) (Result, error) {
	if !slices.Contains(a.names, cmd) {
		const rule = "not in the whitelist of commands"
		a.scope.report(ctx, Violation{Operation: string(opExec), Path: cmd, Rule: rule})
		return Result{}, &Error{Op: string(opExec), Path: cmd, Rule: rule, Kind: ErrAccessDenied}
	}
	return a.inner.Exec(ctx, cmd, args, opt)
}

// WithDefaults returns a Runner that fills in what a call leaves open and never grants
// more than the defaults do: of two limits the lower one holds, Net is NetNone if either
// is, and Env.Allow is that of the defaults whatever the call says. Dir, Stdin and the
// variables of Env.Inject are the call's where it has them.
func WithDefaults(inner Runner, defaults Options) Runner {
	defaults.Env.Allow = slices.Clone(defaults.Env.Allow)
	defaults.Env.Inject = maps.Clone(defaults.Env.Inject)
	return &defaulted{inner, defaults}
}

type defaulted struct {
	inner Runner
	opt   Options
}

// Exec implements Runner.
func (d *defaulted) Exec(ctx context.Context, cmd string, args []string, opt Options) (Result, error) {
	opt.Dir = cmp.Or(opt.Dir, d.opt.Dir)
	if opt.Stdin == nil {
		opt.Stdin = d.opt.Stdin
	}
	opt.Timeout, opt.CPU = lower(opt.Timeout, d.opt.Timeout), lower(opt.CPU, d.opt.CPU)
	opt.Memory, opt.Pids = lower(opt.Memory, d.opt.Memory), lower(opt.Pids, d.opt.Pids)
	opt.MaxOutput = lower(opt.MaxOutput, d.opt.MaxOutput)
	opt.Net = cmp.Or(d.opt.Net, opt.Net)
	opt.Env.Allow = slices.Clone(d.opt.Env.Allow)
	if len(d.opt.Env.Inject) > 0 {
		inject := maps.Clone(d.opt.Env.Inject)
		maps.Copy(inject, opt.Env.Inject)
		opt.Env.Inject = inject
	}
	return d.inner.Exec(ctx, cmd, args, opt)
}

// lower returns the lower of two limits; 0 is none, and what is negative is left for the
// Runner to refuse.
func lower[N cmp.Ordered](a, b N) N {
	var none N
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// Noop is a Runner that starts nothing: every command succeeds without a word.
type Noop struct{}

// Exec implements Runner.
func (Noop) Exec(context.Context, string, []string, Options) (Result, error) { return Result{}, nil }
