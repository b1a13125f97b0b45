package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode/cmd/internal/agentcmd"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/artifactcmd"
	"github.com/seed-2d964004/superqode/cmd/internal/completion"
	"github.com/seed-2d964004/superqode/cmd/internal/demo"
	"github.com/seed-2d964004/superqode/cmd/internal/doctor"
	"github.com/seed-2d964004/superqode/cmd/internal/guardcmd"
	"github.com/seed-2d964004/superqode/cmd/internal/runcmd"
	"github.com/seed-2d964004/superqode/cmd/internal/workspacecmd"
	"github.com/seed-2d964004/superqode/session"
)

// artifactsCmd groups the commands on the artifact store.
type artifactsCmd struct {
	List   artifactcmd.List   `cmd:"" help:"List artifacts."`
	Show   artifactcmd.Show   `cmd:"" help:"Print an artifact's content."`
	Verify artifactcmd.Verify `cmd:"" help:"Compare every file with the manifest."`
	Add    artifactcmd.Add    `cmd:"" help:"Add a file."`
	Prune  artifactcmd.Prune  `cmd:"" help:"Take away the artifacts of old sessions."`
}

// claimCmd groups the commands on claims.
type claimCmd struct {
	Acquire agentcmd.ClaimAcquire `cmd:"" help:"Claim files, or lines of them, for an agent: all that are named, or none."`
	Release agentcmd.ClaimRelease `cmd:"" help:"Let claims go."`
	List    agentcmd.ClaimList    `cmd:"" help:"List the claims on this origin, and who waits for some."`
	Wait    agentcmd.ClaimWait    `cmd:"" help:"Wait until nobody else has a claim on what is named; claims nothing."`
	Check   agentcmd.ClaimCheck   `cmd:"" help:"Decide an edit by the claims, for a coding agent's hook or a script."`
}

// configCmd groups the commands on superqode.yaml.
type configCmd struct {
	Show   configShowCmd   `cmd:"" help:"Print every key with its value and where that comes from."`
	Init   configInitCmd   `cmd:"" help:"Write a commented superqode.yaml into the origin."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of superqode.yaml."`
	Path   configPathCmd   `cmd:"" help:"Print the files that are read, strongest first."`
}

// findingCmd groups the commands on findings.
type findingCmd struct {
	Add  artifactcmd.FindingAdd  `cmd:"" help:"Add a finding to the running session, or to --session."`
	List artifactcmd.FindingList `cmd:"" help:"List a session's findings."`

	Suppress   artifactcmd.FindingSuppress   `cmd:"" help:"Let a finding count no more, in this session and in those to come."`
	Unsuppress artifactcmd.FindingUnsuppress `cmd:"" help:"Let a suppressed finding count again."`
}

// A command is one word of the first level. A hidden one is
// superqode's own.
type command struct {
	name   string
	help   string
	build  func() any // a pointer to the command's struct
	hidden bool
}

// commands is the first level of the grammar in the order in which help prints
// it.
func commands() []command {
	return []command{
		{name: "run", help: "Run a program in a session of its own: open, run, collect, report, remove.", build: func() any { return &runcmd.Run{} }},
		{name: "workspace", help: "Open, use, look at and end sessions.", build: func() any { return &workspaceCmd{} }},
		{name: "artifacts", help: "What sessions left behind.", build: func() any { return &artifactsCmd{} }},
		{name: "finding", help: "Findings of a session.", build: func() any { return &findingCmd{} }},
		{name: "verify-fix", help: "Try the fix of a finding in a fresh session: tests before, tests after.", build: func() any { return &runcmd.VerifyFix{} }},
		{name: "report", help: "Print a session's report.", build: func() any { return &artifactcmd.Report{} }},
		{name: "config", help: "The configuration and where each value comes from.", build: func() any { return &configCmd{} }},
		{name: "trust", help: "Let the commands of this origin's superqode.yaml run.", build: func() any { return &runcmd.Trust{} }},
		{name: "guard", help: "Decide on git commands, alone or for a coding agent's hook.", build: func() any { return &guardCmd{} }},
		{name: "claim", help: "Leases of agents on files and ranges of lines.", build: func() any { return &claimCmd{} }},
		{name: "watch", help: "Tell of changes as they happen.", build: func() any { return &workspacecmd.Watch{} }},
		{name: "hooks", help: "What goes into coding agents' own configurations.", build: func() any { return &hooksCmd{} }},
		{name: "doctor", help: "Check git, the file system, the kernel and what earlier sessions left; each with its remedy.", build: func() any { return &doctor.Cmd{} }},
		{name: "demo", help: "See it work: an unruly program in a throw-away repository, in a few seconds.", build: func() any { return &demo.Cmd{} }},
		{name: "completion", help: "Print the completion code for a shell.", build: func() any { return &completion.Cmd{} }},
		{name: "track", help: "Tell the session which lines an agent has changed, by hand or from an agent's hook.", build: func() any { return &agentcmd.Track{} }},
		{name: "version", help: "Print the version.", build: func() any { return &versionCmd{} }},
		{name: session.DetachCommand, build: func() any { return &runcmd.Supervise{} }, hidden: true},
		{name: session.SweepCommand, build: func() any { return &workspacecmd.Sweep{} }, hidden: true},
	}
}

// newParser builds the grammar. Reading the tags of every flag takes as long as
// the rest of a short command, so where the line names its command (word) only
// that one is built whole and the others are names. Nothing is opened here: what
// a command needs is made when its Run asks for it.
func newParser(a *app.App, word string) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("superqode"),
		kong.Description("Run a program in a session on your repository; afterwards the repository is as it was, proven."),
		kong.Writers(a.Out, a.Err),
		kong.Exit(func(int) {}),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(a),
		kong.BindSingletonProvider(a.Sessions),
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeString)),
	}
	list := commands()
	known := slices.ContainsFunc(list, func(c command) bool { return c.name == word })
	for _, c := range list {
		target, tags := any(&struct{}{}), []string(nil)
		if c.name == word || !known {
			target = c.build()
		}
		if c.hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(c.name, c.help, "", target, tags...))
	}
	return kong.New(&a.Flags, options...)
}

// decodeString takes a value as the bytes that it is. kong's own mapper sends it
// through JSON, where each byte that is not UTF-8 becomes U+FFFD: a program's
// argument, or a folder's name, would be another one.
func decodeString(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	s, ok := t.Value.(string)
	if !ok {
		return fmt.Errorf("expected a string but got %q", t)
	}
	target.SetString(s)
	return nil
}

// commandWord returns the first word of a command line that is no global flag
// and no value of one, or "" where that can not be told: at --, at a flag that
// is not global, and at -h, whose text shows every command.
func commandWord(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; arg {
		case "-C", "--repo", "--home", "--config", "--color":
			i++
		case "--json", "-q", "--quiet", "-v", "-vv", "--verbose", "--no-input":
		default:
			name, _, value := strings.Cut(arg, "=")
			if value && (name == "--repo" || name == "--home" || name == "--config" || name == "--color") {
				continue
			}
			if strings.HasPrefix(arg, "-") {
				return ""
			}
			return arg
		}
	}
	return ""
}

// workspaceCmd groups the commands on sessions.
type workspaceCmd struct {
	Create    runcmd.Create          `cmd:"" help:"Open a session and leave it active; prints its id and its workspace."`
	Exec      runcmd.Exec            `cmd:"" help:"Run a command in an active session's workspace."`
	Setup     runcmd.Setup           `cmd:"" help:"Bring a session's workspace into the state that superqode.yaml asks for; says what it does and why."`
	Ps        runcmd.Ps              `cmd:"" help:"List the programs that run, and ran, in sessions."`
	Logs      runcmd.Logs            `cmd:"" help:"Print the output of a program that runs, or ran, in a session."`
	Kill      runcmd.Kill            `cmd:"" help:"End a program that runs in a session, with all that it started."`
	Collect   workspacecmd.Collect   `cmd:"" help:"Select files of a session by pattern, and keep them."`
	End       runcmd.End             `cmd:"" help:"Collect, report and remove a session."`
	List      workspacecmd.List      `cmd:"" help:"List the sessions of this origin."`
	Info      workspacecmd.Info      `cmd:"" help:"Show one session whole."`
	Path      workspacecmd.Path      `cmd:"" help:"Print a session's workspace path."`
	Conflicts workspacecmd.Conflicts `cmd:"" help:"Tell which open workspaces changed the same places."`
	Blame     workspacecmd.Blame     `cmd:"" help:"Print who wrote each line of a file: the base, or which agent."`
	Diff      workspacecmd.Diff      `cmd:"" help:"Print what a session changed as a patch."`
	Changes   workspacecmd.Changes   `cmd:"" help:"List what a session changed."`
	Apply     workspacecmd.Apply     `cmd:"" help:"Bring a session's changes into the origin: all of them or none."`
	Revert    workspacecmd.Revert    `cmd:"" help:"Bring a session's workspace, in git_snapshot mode the origin, back to how it was; proven."`
	Verify    workspacecmd.Verify    `cmd:"" help:"Compare a session's workspace, in git_snapshot mode the origin, with how it was."`
	Recover   workspacecmd.Recover   `cmd:"" help:"Finish, or roll back, what a crash left."`
	Restore   workspacecmd.Restore   `cmd:"" help:"Get back what a revert or a cleanup had salvaged."`
	Cleanup   workspacecmd.Cleanup   `cmd:"" help:"Remove ended and forgotten sessions, their records and the trash."`
	Pin       workspacecmd.Pin       `cmd:"" help:"Keep cleanup away from a session."`
	Unpin     workspacecmd.Unpin     `cmd:"" help:"Let cleanup at a pinned session again."`
}

// guardCmd groups the commands of the guard.
type guardCmd struct {
	Check  guardcmd.Check  `cmd:"" help:"Decide one command line, or a coding agent's hook payload."`
	Status guardcmd.Status `cmd:"" help:"Show what guards here, and whether it holds; --operations: what the guard decides on."`

	Install   guardcmd.Install   `cmd:"" help:"Refuse commits, pushes and what else moves refs to programs in this repository, without a session."`
	Uninstall guardcmd.Uninstall `cmd:"" help:"Take out what guard install put in."`

	Allow guardcmd.Allow `cmd:"" help:"Let one operation through, once: of a session's program, or in a repository with guard install."`
}

// hooksCmd groups what goes into coding agents' own configurations.
type hooksCmd struct {
	Print guardcmd.HooksPrint `cmd:"" help:"Print the configuration that makes a coding agent ask before it runs a command or edits a file."`
}
