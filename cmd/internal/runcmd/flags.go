package runcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/session"
)

// openFlags say what session to open; run and workspace create share them.
type openFlags struct {
	Mode        superqode.Mode `placeholder:"MODE" xor:"mode" help:"How the workspace is made: auto, worktree, snapshot, git_snapshot, directory or shared."`
	Worktree    bool           `xor:"mode" help:"Same as --mode worktree."`
	Snapshot    bool           `xor:"mode" help:"Same as --mode snapshot."`
	GitSnapshot bool           `xor:"mode" help:"Same as --mode git_snapshot."`
	From        string         `default:"working" placeholder:"REV" help:"Begin with what you see now (working) or with a commit's tree."`
	Template    app.PathFlag   `placeholder:"DIR" sep:"none" help:"Directory mode: begin with a copy of DIR."`
	Include     []string       `placeholder:"PATTERN" sep:"none" help:"Bring ignored files along that match (gitignore syntax; repeatable)."`
	Name        string         `help:"A name for people."`
	Agent       []string       `placeholder:"NAME[=CMD]" sep:"none" help:"Who works in the session; with run, NAME=SHELL COMMAND gives it a program of its own (repeatable)."`
	Case        *string        `placeholder:"ID" sep:"none" help:"The case that the session belongs to (SUPERQODE_CASE_ID)."`
	Keep        keepFlag       `placeholder:"WHEN" xor:"keep" help:"Keep the workspace at the end: always, failure (default) or never."`
	Preserve    bool           `name:"preserve-workspace" xor:"keep" help:"Same as --keep always."`
	NoRevert    bool           `help:"Apply the patch to the origin at the end; in place, leave the changes."`
	Budget      app.SizeFlag   `name:"ignored-budget" placeholder:"SIZE" help:"git_snapshot: keep copies of ignored files up to SIZE in all (default 256M)."`
	LeaveOut    []string       `placeholder:"PATTERN" sep:"none" help:"git_snapshot: do not protect ignored files that match (repeatable)."`
	AllowGit    bool           `name:"allow-git-operations" help:"Switch the guard off; the report says so."`
	Output      []string       `placeholder:"GLOB" sep:"none" help:"Keep what matches as artifacts (repeatable)."`
	Report      []string       `placeholder:"FORMAT,…" enum:"md,json,html,sarif,junit,summary" help:"Write these reports beside the usual ones (md, json, html): sarif, junit, summary. summary goes to $$GITHUB_STEP_SUMMARY as well."`
	NoRedact    bool           `help:"Leave secrets in logs and reports as they are."`
	DryRun      bool           `help:"Say what would be done."`
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
func (f *openFlags) options(a *app.App, cfg *config.Config) (session.OpenOptions, error) {
	if f.From == "" { // a variable that was not set, say: it must not quietly mean something else
		return session.OpenOptions{}, superqode.Errorf(superqode.ErrUsage, "--from: expected working or a revision, not an empty string")
	}
	agent, err := f.agent()
	if err != nil {
		return session.OpenOptions{}, err
	}
	caseID := ""
	if f.Case != nil {
		if caseID = *f.Case; caseID == "" || strings.ContainsRune(caseID, 0) {
			return session.OpenOptions{}, superqode.Errorf(superqode.ErrUsage, "--case: expected an id, not an empty string")
		}
	}
	outputs, err := f.outputs(cfg)
	if err != nil {
		return session.OpenOptions{}, err
	}
	opt := session.OpenOptions{
		Outputs: outputs,
		Dir:     a.Flags.Repo, Mode: f.mode(), From: f.From, Name: f.Name, Agent: agent, Case: caseID, Keep: state.Keep(f.Keep),
		Include: append(slices.Clip(cfg.Workspace.Include), f.Include...), Exclude: cfg.Workspace.ExcludePatterns, MaxBytes: cfg.Workspace.MaxSize,
		Reports: f.Report, NoRedact: f.NoRedact,
		Template: a.Abs(string(f.Template)), NoRevert: f.NoRevert, IgnoredBudget: int64(f.Budget), LeaveOut: f.LeaveOut,
		Guard: session.GuardOptions{Off: f.AllowGit, Allow: cfg.Guard.Allow, Deny: cfg.Guard.Deny}, Claims: cfg.Claims,
		Watcher: state.WatcherOptions{Enabled: cfg.Workspace.Watcher.Enabled, Debounce: cfg.Workspace.Watcher.Debounce, Ignore: cfg.Workspace.Watcher.IgnorePatterns},
	}
	if opt.Mode == "" {
		opt.Mode = cfg.Workspace.DefaultMode
	}
	switch {
	case f.Preserve:
		opt.Keep = state.KeepAlways
	case opt.Keep == "" && !cfg.Workspace.PreserveOnError:
		opt.Keep = state.KeepNever
	}
	return opt, nil
}

// outputs are the patterns of the configuration and of the flags.
func (f *openFlags) outputs(cfg *config.Config) ([]string, error) {
	if err := session.CheckOutputs(cfg.Artifacts.Outputs); err != nil {
		return nil, fmt.Errorf("artifacts.outputs: %w", err)
	}
	if err := session.CheckOutputs(f.Output); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return append(slices.Clip(cfg.Artifacts.Outputs), f.Output...), nil
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
