package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// newSession has the flags of the commands that open a session.
type newSession struct {
	openFlags
	setupFlags
	execFlags
}

// options turns the flags and the configuration into what a session is opened with. Commands of the
// setup that need trust and have none are asked for, or refused. ends says that the command
// itself ends the session.
func (f *newSession) options(ctx context.Context, a *app.App, cfg *config.Config, ends bool) (life.OpenOptions, error) {
	opt, err := f.openFlags.options(a, cfg)
	if err != nil {
		return opt, err
	}
	if opt.KernelOptions, err = f.kernelFlags.options(a, cfg); err != nil {
		return opt, err
	}
	if isAuto(f.mode()) {
		if err := chooseOverlay(ctx, a, &opt, ends && isAuto(opt.Mode), f.DryRun); err != nil {
			return opt, err
		}
	}
	if opt.Defaults, err = f.execFlags.defaults(a, cfg); err != nil {
		return opt, err
	}
	opt.Defaults.CollectTimeout = cmp.Or(f.CollectTimeout, cfg.Limits.CollectTimeout)
	opt.Setup = f.setupFlags.options(a, cfg)
	if !f.DryRun && !f.NoSetup && len(cfg.SetupCommands()) > 0 {
		err = ensureTrust(ctx, a, cfg)
	}
	return opt, err
}

// openFlags say what session to open; run and workspace create share them.
type openFlags struct {
	Mode        superqode.Mode `placeholder:"MODE" xor:"mode" help:"How to make the workspace: auto, overlay, worktree, snapshot, git_snapshot, directory or shared."`
	Overlay     bool           `xor:"mode" help:"Same as --mode overlay."`
	Worktree    bool           `xor:"mode" help:"Same as --mode worktree."`
	Snapshot    bool           `xor:"mode" help:"Same as --mode snapshot."`
	GitSnapshot bool           `xor:"mode" help:"Same as --mode git_snapshot."`
	From        string         `default:"working" placeholder:"REV" help:"Start from what you see now (working) or REV."`
	Template    string         `type:"somepath" predictor:"file" placeholder:"DIR" sep:"none" help:"directory mode: start from a copy of DIR."`
	Include     []string       `placeholder:"PATTERN" sep:"none" help:"Also copy ignored files that match. Gitignore syntax; repeatable."`
	Name        string         `help:"A name for the session and its workspace. No two open sessions have the same."`
	Agent       []string       `predictor:"agent" placeholder:"NAME[=CMD]" sep:"none" help:"The agent that works in the session. With run, NAME=COMMAND gives the agent its own shell command (repeatable)."`
	Case        *string        `placeholder:"ID" sep:"none" help:"The case the session belongs to (SUPERQODE_CASE_ID)."`
	Keep        superqode.Keep `placeholder:"WHEN" xor:"keep" help:"Keep the workspace: always, failure or never. By default where the program failed and changed something."`
	Preserve    bool           `name:"preserve-workspace" xor:"keep" help:"Same as --keep always."`
	NoRevert    bool           `help:"Apply the changes to the origin at the end. In place, leave them there."`
	Budget      int64          `type:"size" name:"ignored-budget" placeholder:"SIZE" help:"Ignored files up to SIZE in total are protected (git_snapshot mode; default 256M), or come along (overlay; 2G)."`
	LeaveOut    []string       `placeholder:"PATTERN" sep:"none" help:"Ignored files that match are not protected (git_snapshot mode), or stay behind (overlay). Repeatable."`
	Policy      string         `placeholder:"NAME" help:"What the guard refuses: qe (default: all that changes what is the user's) or contained (what leaves a git directory of the session's own)."`
	AllowGit    bool           `name:"allow-git-operations" help:"Switch the guard off. The report records it."`
	Output      []string       `placeholder:"GLOB" sep:"none" help:"Save the files that match as artifacts. Repeatable."`
	app.OutputLimits
	Report   []string `placeholder:"FORMAT,…" enum:"md,json,html,sarif,junit,summary" help:"Also write sarif, junit or summary reports. summary is also appended to $$GITHUB_STEP_SUMMARY."`
	NoRedact bool     `help:"Do not mask secrets in logs and reports."`
	DryRun   bool     `help:"Print what would be done, without doing it."`

	CollectTimeout time.Duration `placeholder:"DUR" help:"Stop collecting what the session left after DUR (default 2m) when it first ends; what is not collected is kept."`
}

// mode returns the mode that the flags ask for, or "" when they do not say.
func (f *openFlags) mode() superqode.Mode {
	switch {
	case f.Overlay:
		return superqode.ModeOverlay
	case f.Worktree:
		return superqode.ModeWorktree
	case f.Snapshot:
		return superqode.ModeSnapshot
	case f.GitSnapshot:
		return superqode.ModeGitSnapshot
	}
	return f.Mode
}

func isAuto(m superqode.Mode) bool { return m == "" || m == superqode.ModeAuto }

// agent returns the one agent that works in the session.
func (f *openFlags) agent() (superqode.AgentID, error) {
	if len(f.Agent) == 0 {
		return superqode.AgentID{}, nil
	}
	if len(f.Agent) > 1 || strings.Contains(f.Agent[0], "=") {
		return superqode.AgentID{}, superqode.Errorf(superqode.ErrUsage,
			"--agent: several agents require superqode run and a command each")
	}
	id, err := app.ParseAgent(f.Agent[0])
	if err != nil {
		return id, superqode.Errorf(superqode.ErrUsage, "--agent: %s", err)
	}
	return id, nil
}

// options turns the flags into what a session is opened with; what they leave
// open the configuration says.
func (f *openFlags) options(a *app.App, cfg *config.Config) (life.OpenOptions, error) {
	set, watcher := cfg.Workspace, cfg.Workspace.Watcher
	opt := life.OpenOptions{
		Dir: a.Flags.Repo, Mode: cmp.Or(f.mode(), set.DefaultMode), From: f.From, Name: f.Name, Keep: f.Keep,
		Include: append(slices.Clip(set.Include), f.Include...), Exclude: set.ExcludePatterns, MaxBytes: set.MaxSize, MaxTree: set.Bound(),
		Reports: f.Report, NoRedact: f.NoRedact, Template: f.template(a, cfg), Case: set.Case, NoRevert: f.NoRevert,
		OutputLimits: f.Over(cfg.Artifacts.Limits), IgnoredBudget: f.Budget, LeaveOut: f.LeaveOut, Claims: cfg.Claims,
		Guard:   life.GuardOptions{Off: f.AllowGit, Policy: guard.PolicyName(cmp.Or(f.Policy, cfg.Guard.Policy)), Allow: cfg.Guard.Allow, Deny: cfg.Guard.Deny},
		Watcher: state.WatcherOptions{Enabled: watcher.Enabled, Debounce: watcher.Debounce, Ignore: watcher.IgnorePatterns},
	}
	if f.From == "" { // a variable that was not set, say: it must not quietly mean something else
		return opt, superqode.Errorf(superqode.ErrUsage, "--from: expected working or a revision, not an empty string")
	}
	var err error
	if opt.Agent, err = f.agent(); err != nil {
		return opt, err
	}
	if len(f.Agent) == 1 {
		opt.Runner = f.Agent[0]
	}
	if f.Case != nil {
		if opt.Case = *f.Case; opt.Case == "" || strings.ContainsRune(opt.Case, 0) {
			return opt, superqode.Errorf(superqode.ErrUsage, "--case: expected an id, not an empty string")
		}
	}
	if opt.Outputs, err = f.outputs(cfg); err != nil {
		return opt, err
	}
	switch {
	case f.Preserve:
		opt.Keep = superqode.KeepAlways
	case opt.Keep == "" && !cfg.Workspace.PreserveOnError:
		opt.Keep = superqode.KeepNever
	}
	return opt, nil
}

// template is the folder that the session starts from, "" for none. That of the configuration is
// for sessions whose mode can have one and that name no other beginning.
func (f *openFlags) template(a *app.App, cfg *config.Config) string {
	dir, named := cfg.Workspace.Template, cmp.Or(f.mode(), cfg.Workspace.DefaultMode, superqode.ModeAuto)
	switch {
	case f.Template != "" || dir == "":
		return a.Abs(f.Template)
	case f.From != mode.FromWorking, named != superqode.ModeAuto && !mode.Of(named).Templates:
		a.Log.Info().Str("template", dir).Str("mode", string(named)).Str("from", f.From).Msg("workspace.template is left out")
		return ""
	}
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		dir = filepath.Join(a.Getenv("HOME"), rest)
	}
	return a.Abs(dir)
}

// outputs are the patterns of the configuration and of the flags.
func (f *openFlags) outputs(cfg *config.Config) ([]string, error) {
	if err := program.CheckOutputs(cfg.Artifacts.Outputs); err != nil {
		return nil, fmt.Errorf("artifacts.outputs: %w", err)
	}
	if err := program.CheckOutputs(f.Output); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return append(slices.Clip(cfg.Artifacts.Outputs), f.Output...), nil
}
