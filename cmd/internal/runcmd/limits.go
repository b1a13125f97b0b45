package runcmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// execFlags say how a program runs. A session keeps what workspace create was
// given as defaults of the programs that are run in it later.
type execFlags struct {
	Timeout   time.Duration `placeholder:"DUR" help:"End the program and all it started after DUR. 90s, 15m; a plain number is seconds."`
	Env       []string      `placeholder:"K=V" sep:"none" help:"Set a variable for the program. K alone passes yours on; repeatable."`
	CleanEnv  bool          `help:"Start with only PATH, HOME, USER, LOGNAME, SHELL, TERM, COLORTERM, LANG, LC_ALL, LC_CTYPE and TZ."`
	EnvAllow  []string      `type:"names" placeholder:"K,…" help:"Start with only these of your variables and those of --clean-env; * and ? are wildcards."`
	Memory    int64         `type:"size" placeholder:"SIZE" help:"Limit the memory of the whole process tree."`
	Pids      int           `type:"count" placeholder:"N" help:"Limit on processes and threads for the program and everything it starts."`
	CPUTime   time.Duration `name:"cpu-time" placeholder:"DUR" help:"CPU time limit for the program and everything it starts."`
	MaxOutput int64         `type:"size" placeholder:"SIZE" help:"Pass on at most SIZE each of stdout and stderr; the log keeps everything."`
	Cwd       string        `type:"somepath" placeholder:"DIR" sep:"none" help:"Start in this folder of the workspace."`
	MaxDisk   int64         `type:"size" placeholder:"SIZE" help:"Limit on what the program writes to the workspace and its temporary folders."`
	kernelFlags
}

// options turns the flags into how a program runs.
func (f *execFlags) options(a *app.App, args []string) (program.ExecOptions, error) {
	env, err := f.env(a)
	return program.ExecOptions{
		Args: args, Cwd: f.Cwd, Stdin: a.In, Stdout: a.Out, Stderr: a.Err, Signals: a.Signals,
		Env: env, EnvAllow: f.EnvAllow, CleanEnv: f.CleanEnv,
		Timeout: f.Timeout, MaxOutput: f.MaxOutput, StdoutToo: a.Flags.JSON,
		Limits: runner.Limits{Memory: f.Memory, Pids: f.Pids, CPUTime: f.CPUTime, Disk: f.MaxDisk},
	}, err
}

// defaults are what a session keeps of the flags, and of the configuration
// where they are silent. Limits that cannot be enforced are refused.
func (f *execFlags) defaults(a *app.App, cfg *config.Config) (state.Defaults, error) {
	opt, err := f.options(a, nil)
	if err != nil {
		return state.Defaults{}, err
	}
	d := opt.With(configured(cfg)).Defaults()
	_, err = program.CheckLimits(d)
	return d, err
}

// configured are the defaults that the configuration says.
func configured(cfg *config.Config) state.Defaults {
	l := cfg.Limits
	if bound := cfg.Workspace.Bound(); l.MaxDisk == 0 && bound > 0 {
		if _, err := program.CheckLimits(state.Defaults{MaxDisk: bound}); err == nil { // where it can be held
			l.MaxDisk = bound
		}
	}
	return state.Defaults{
		Cwd:     state.HostPath(cfg.Workspace.Cwd),
		Timeout: l.Timeout, MaxOutput: l.MaxOutput, Memory: l.Memory, Pids: l.Pids, CPUTime: l.CPUTime, MaxDisk: l.MaxDisk,
	}
}

// env returns the variables to set; a name alone takes the caller's value, and
// nothing when the caller has none, as docker does.
func (f *execFlags) env(a *app.App) ([]string, error) {
	var env []string
	for _, kv := range f.Env {
		key, _, given := strings.Cut(kv, "=")
		if err := config.CheckVariable(key); key != "" && err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		switch {
		case key == "" || strings.ContainsRune(kv, 0):
			return nil, superqode.Errorf(superqode.ErrUsage, "--env: %q is not K=V", kv)
		case given:
			env = append(env, kv)
		default:
			if value, ok := superqode.LookupEnv(a.Env, key); ok {
				env = append(env, key+"="+value)
			}
		}
	}
	return env, nil
}

// kernelFlags say what the guard's kernel layer does. A session keeps what run
// and workspace create were given; workspace exec may add to it for one command.
type kernelFlags struct {
	Enforce    string   `enum:",auto,required,off" default:"" placeholder:"WHEN" help:"Kernel layer of the guard: auto (default), required or off."`
	AllowWrite []string `placeholder:"PATH" sep:"none" help:"Also let the program write to this file or folder (repeatable)."`
	Confine    bool     `help:"Let the program write only to the workspace and to what tools need (Landlock)."`
	OwnNetwork bool     `help:"Give the session a network of its own, which all its programs share: two sessions can listen on the same port. Nothing outside can be reached."`
	PrivateTmp bool     `help:"Give the session a /tmp and an XDG_RUNTIME_DIR of its own, and hide the sockets of docker, podman and containerd."`
	Socket     []string `name:"allow-socket" placeholder:"PATH" sep:"none" help:"With --private-tmp: leave this socket in reach (repeatable)."`
	NoNetwork  bool     `help:"Keep the program off the network. Where namespaces are closed: deny it TCP, Linux 6.7."`
}

// options turns the flags into what the kernel layer is asked for; what they
// leave open the configuration says, where there is one.
func (f *kernelFlags) options(a *app.App, cfg *config.Config) (program.KernelOptions, error) {
	opt := program.KernelOptions{Enforce: kernel.Enforce(f.Enforce), NoNetwork: f.NoNetwork, Confine: f.Confine, PrivateTmp: f.PrivateTmp, OwnNetwork: f.OwnNetwork}
	if opt.Enforce == "" && cfg != nil {
		opt.Enforce = kernel.Enforce(cfg.Guard.Enforce)
	}
	for _, path := range f.AllowWrite {
		if path == "" {
			return opt, superqode.Errorf(superqode.ErrUsage, "--allow-write: expected a path, not an empty string")
		}
		opt.AllowWrite = append(opt.AllowWrite, a.Abs(path))
	}
	for _, path := range f.Socket {
		opt.Sockets = append(opt.Sockets, a.Abs(path))
	}
	return opt, nil
}
