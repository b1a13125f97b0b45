package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/config"
	"github.com/seed-2d964004/superqode/session"
)

// openFlags say what session to open; run and workspace create share them.
type openFlags struct {
	Mode        superqode.Mode `placeholder:"MODE" xor:"mode" help:"How the workspace is made: auto, worktree, snapshot, git_snapshot, directory or shared."`
	Worktree    bool           `xor:"mode" help:"Same as --mode worktree."`
	Snapshot    bool           `xor:"mode" help:"Same as --mode snapshot."`
	GitSnapshot bool           `xor:"mode" help:"Same as --mode git_snapshot."`
	From        string         `default:"working" placeholder:"REV" help:"Begin with what you see now (working) or with a commit's tree."`
	Template    string         `placeholder:"DIR" sep:"none" help:"Directory mode: begin with a copy of DIR."`
	Include     []string       `placeholder:"PATTERN" sep:"none" help:"Bring ignored files along that match (gitignore syntax; repeatable)."`
	Name        string         `help:"A name for people."`
	Agent       []string       `placeholder:"NAME[=CMD]" sep:"none" help:"Who works in the session; with run, NAME=SHELL COMMAND gives it a program of its own (repeatable)."`
	Case        string         `placeholder:"ID" help:"The case that the session belongs to (SUPERQODE_CASE_ID)."`
	Keep        keepFlag       `placeholder:"WHEN" xor:"keep" help:"Keep the workspace at the end: always, failure (default) or never."`
	Preserve    bool           `name:"preserve-workspace" xor:"keep" help:"Same as --keep always."`
	NoRevert    bool           `help:"Apply the patch to the origin at the end; in place, leave the changes."`
	Budget      sizeFlag       `name:"ignored-budget" placeholder:"SIZE" help:"git_snapshot: keep copies of ignored files up to SIZE in all (default 256M)."`
	LeaveOut    []string       `placeholder:"PATTERN" sep:"none" help:"git_snapshot: do not protect ignored files that match (repeatable)."`
	AllowGit    bool           `name:"allow-git-operations" help:"Switch the guard off; the report says so."`
	Output      []string       `placeholder:"GLOB" sep:"none" help:"Keep what matches as artifacts (repeatable)."`
	Report      []string       `placeholder:"FORMAT,…" enum:"md,json,html,sarif,junit,summary" help:"Write these reports beside the usual ones (md, json, html): sarif, junit, summary. summary goes to $$GITHUB_STEP_SUMMARY as well."`
	NoRedact    bool           `help:"Leave secrets in logs and reports as they are."`
	DryRun      bool           `help:"Say what would be done."`
}

// execFlags say how a program runs.
type execFlags struct {
	Timeout   durationFlag `placeholder:"DUR" help:"End the program after DUR (90s, 15m; a plain number is seconds)."`
	Env       []string     `placeholder:"K=V" sep:"none" help:"Set a variable for the program; K alone takes yours (repeatable)."`
	CleanEnv  bool         `help:"Begin with PATH, HOME, TERM, LANG and USER only."`
	EnvAllow  []string     `placeholder:"K" help:"With --clean-env: take these variables over."`
	Memory    string       `placeholder:"SIZE" help:"Limit of the program's memory."`
	Pids      int          `placeholder:"N" help:"Limit of the program's processes."`
	CPUTime   durationFlag `name:"cpu-time" placeholder:"DUR" help:"Limit of the program's processor time."`
	MaxOutput sizeFlag     `placeholder:"SIZE" help:"How much output the log keeps, each of stdout and stderr (default 64M)."`
	Cwd       string       `placeholder:"DIR" sep:"none" help:"Start in this folder of the workspace."`
	MaxDisk   string       `placeholder:"SIZE" help:"Limit of what the program writes."`
	kernelFlags
}

// mode returns the mode that the flags ask for, or "" when they do not say.
func (f *openFlags) mode() superqode.Mode {
	switch {
	case f.Worktree:
		return superqode.ModeWorktree
	case f.Snapshot:
		return superqode.ModeSnapshot
	case f.GitSnapshot:
		return superqode.ModeGitSnapshot
	}
	return f.Mode
}

// agent returns the one agent that works in the session.
func (f *openFlags) agent() (superqode.AgentID, error) {
	if len(f.Agent) == 0 {
		return superqode.AgentID{}, nil
	}
	if len(f.Agent) > 1 || strings.Contains(f.Agent[0], "=") {
		return superqode.AgentID{}, superqode.Errorf(superqode.ErrUsage, "--agent: several agents need a command each, and superqode run to run them")
	}
	id, err := superqode.ParseAgentID(f.Agent[0])
	if err != nil {
		return id, superqode.Errorf(superqode.ErrUsage, "--agent: %s", err)
	}
	return id, nil
}

// options turns the flags into what a session is opened with; what they leave
// open the configuration says.
func (f *openFlags) options(a *app, cfg *config.Config) (session.OpenOptions, error) {
	if f.From == "" { // a variable that was not set, say: it must not quietly mean something else
		return session.OpenOptions{}, superqode.Errorf(superqode.ErrUsage, "--from: expected working or a revision, not an empty string")
	}
	agent, err := f.agent()
	if err != nil {
		return session.OpenOptions{}, err
	}
	opt := session.OpenOptions{
		Dir: a.flags.Repo, Mode: f.mode(), From: f.From, Name: f.Name, Agent: agent, Case: f.Case, Keep: session.Keep(f.Keep),
		Include: append(slices.Clip(cfg.Workspace.Include), f.Include...), Exclude: cfg.Workspace.ExcludePatterns, MaxBytes: cfg.Workspace.MaxSize,
		Reports: f.Report, NoRedact: f.NoRedact,
		Template: a.abs(f.Template), NoRevert: f.NoRevert, IgnoredBudget: int64(f.Budget), LeaveOut: f.LeaveOut,
		Guard: session.GuardOptions{Off: f.AllowGit, Allow: cfg.Guard.Allow, Deny: cfg.Guard.Deny}, Claims: cfg.Claims,
	}
	if opt.Mode == "" {
		opt.Mode = cfg.Workspace.DefaultMode
	}
	switch {
	case f.Preserve:
		opt.Keep = session.KeepAlways
	case opt.Keep == "" && !cfg.Workspace.PreserveOnError:
		opt.Keep = session.KeepNever
	}
	return opt, nil
}

// options turns the flags into how a program runs.
func (f *execFlags) options(a *app, args []string) (session.ExecOptions, error) {
	env, err := f.env(a)
	return session.ExecOptions{
		Args: args, Cwd: f.Cwd, Stdin: a.In, Stdout: a.Out, Stderr: a.Err, Env: env, EnvAllow: f.EnvAllow, CleanEnv: f.CleanEnv,
		Timeout: time.Duration(f.Timeout), MaxOutput: int64(f.MaxOutput), StdoutToo: a.flags.JSON, Signals: a.Signals,
	}, err
}

// env returns the variables to set; a name alone takes the caller's value, and
// nothing when the caller has none, as docker does.
func (f *execFlags) env(a *app) ([]string, error) {
	var env []string
	for _, kv := range f.Env {
		key, _, given := strings.Cut(kv, "=")
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

// keepFlag is --keep.
type keepFlag string

// UnmarshalText accepts always, failure and never.
func (k *keepFlag) UnmarshalText(b []byte) error {
	switch s := string(b); s {
	case "always", "failure", "never":
		*k = keepFlag(s)
		return nil
	}
	return fmt.Errorf("must be always, failure or never, not %q", b)
}

// durationFlag is a duration with a unit, or a whole number of seconds; it is
// more than zero.
type durationFlag time.Duration

// UnmarshalText accepts what time.ParseDuration accepts, and whole seconds.
func (d *durationFlag) UnmarshalText(b []byte) error {
	s := string(b)
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		s = strconv.FormatUint(n, 10) + "s"
	}
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is not a duration such as 90s or 15m", b)
	}
	*d = durationFlag(v)
	return nil
}

// sizeFlag is a number of bytes, with k, M, G or T for powers of 1024; "iB" and
// "B" may follow.
type sizeFlag int64

// UnmarshalText parses a size greater than zero.
func (z *sizeFlag) UnmarshalText(b []byte) error {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(string(b)), "b"), "i")
	shift := 0
	if i := strings.IndexAny(s, "kmgt"); i >= 0 && i == len(s)-1 {
		shift = 10 * (strings.IndexByte("kmgt", s[i]) + 1)
		s = s[:i]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return fmt.Errorf("%q is not a size such as 512k, 10M or 2G", b)
	}
	*z = sizeFlag(n << shift)
	return nil
}
