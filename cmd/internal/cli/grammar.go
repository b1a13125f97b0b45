package cli

import (
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
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/gc"
)

// artifactsCmd groups the commands on the artifact store.
type artifactsCmd struct {
	List   artifactcmd.List   `cmd:"" help:"List artifacts."`
	Show   artifactcmd.Show   `cmd:"" help:"Print an artifact."`
	Verify artifactcmd.Verify `cmd:"" help:"Compare every file with the manifest."`
	Add    artifactcmd.Add    `cmd:"" help:"Add a file."`
	Prune  artifactcmd.Prune  `cmd:"" help:"Remove the artifacts of old sessions."`
}

// claimCmd groups the commands on claims.
type claimCmd struct {
	Acquire agentcmd.ClaimAcquire `cmd:"" help:"Claim files or lines for an agent, all or none."`
	Release agentcmd.ClaimRelease `cmd:"" help:"Release claims."`
	List    agentcmd.ClaimList    `cmd:"" help:"List claims and waiting requests on this origin."`
	Wait    agentcmd.ClaimWait    `cmd:"" help:"Wait until nobody else has a claim, without claiming."`
	Check   agentcmd.ClaimCheck   `cmd:"" help:"Check an edit against the claims, for an agent's hook or a script."`
}

// configCmd groups the commands on superqode.yaml.
type configCmd struct {
	Show   configShowCmd   `cmd:"" help:"Print every key with its value and its source."`
	Init   configInitCmd   `cmd:"" help:"Create a commented superqode.yaml in the origin."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of superqode.yaml."`
	Path   configPathCmd   `cmd:"" help:"Print the files that are read, highest precedence first."`
}

// findingCmd groups the commands on findings.
type findingCmd struct {
	Add  artifactcmd.FindingAdd  `cmd:"" help:"Add a finding to a session."`
	List artifactcmd.FindingList `cmd:"" help:"List a session's findings."`

	Suppress   artifactcmd.FindingSuppress   `cmd:"" help:"Suppress a finding in this session and in future ones."`
	Unsuppress artifactcmd.FindingUnsuppress `cmd:"" help:"Stop suppressing a finding."`
}

// A command is one word of the first level. A hidden one is
// superqode's own.
type command struct {
	name   string
	help   string
	build  func() any // a pointer to the command's struct
	group  string     // the heading in help; "" is the first
	hidden bool
}

func of[T any]() any { return new(T) }

// commands is the first level of the grammar in the order in which help prints
// it.
func commands() []command {
	return []command{
		{name: "run", help: "Run a program in a new session.", build: of[runcmd.Run]},
		{name: "ls", help: "List sessions.", build: of[workspacecmd.List]},
		{name: "diff", help: "Print the last session's changes as a patch.", build: of[workspacecmd.Diff]},
		{name: "apply", help: "Apply the last session's changes to the origin, all or none.", build: of[workspacecmd.Apply]},
		{name: "undo", help: "Take the changes that apply brought out of the origin again.", build: of[workspacecmd.Undo]},
		{name: "open", help: "Open the last session's report in the browser.", build: of[artifactcmd.Open]},
		{name: "report", help: "Print a session's report.", build: of[artifactcmd.Report]},
		{name: "workspace", help: "Open, use, inspect and end sessions.", build: of[workspaceCmd]},
		{name: "doctor", help: "Check this machine and the state of superqode.", build: of[doctor.Cmd]},
		{name: "demo", help: "Run an unruly program in a throw-away repository, to see superqode at work.", build: of[demo.Cmd]},
		{name: "artifacts", help: "Work with the artifacts of sessions.", group: "Results:", build: of[artifactsCmd]},
		{name: "finding", help: "Work with the findings of sessions.", group: "Results:", build: of[findingCmd]},
		{name: "verify-fix", help: "Test a finding's fix in a new session.", group: "Results:", build: of[runcmd.VerifyFix]},
		{name: "guard", help: "Check git commands and guard repositories.", group: "Coding agents:", build: of[guardCmd]},
		{name: "hooks", help: "Connect coding agents through their hooks.", group: "Coding agents:", build: of[hooksCmd]},
		{name: "claim", help: "Claim files and lines so that agents do not collide.", group: "Coding agents:", build: of[claimCmd]},
		{name: "watch", help: "Print file changes as they happen.", group: "Coding agents:", build: of[workspacecmd.Watch]},
		{name: "track", help: "Record which lines an agent changed.", group: "Coding agents:", build: of[agentcmd.Track]},
		{name: "init", help: "Prepare this project: what sessions bring along, and what they install.", group: "Settings:", build: of[initCmd]},
		{name: "config", help: "Show and create the configuration.", group: "Settings:", build: of[configCmd]},
		{name: "trust", help: "Trust the commands in this origin's superqode.yaml.", group: "Settings:", build: of[runcmd.Trust]},
		{name: "completion", help: "Print shell completion code.", group: "Settings:", build: of[completion.Cmd]},
		{name: "version", help: "Print the version.", group: "Settings:", build: of[versionCmd]},
		{name: attach.DetachCommand, build: of[runcmd.Supervise], hidden: true},
		{name: gc.SweepCommand, build: of[workspacecmd.Sweep], hidden: true},
	}
}

// newParser builds the grammar. Reading the tags of every flag takes as long as
// the rest of a short command, so where the line names its command (word, and sub of
// a group) only that one is built whole and the others are names. Nothing is opened
// here: what a command needs is made when its Run asks for it.
func newParser(a *app.App, word, sub string) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("superqode"),
		kong.Description("Run a program in a session on your repository; " +
			"afterwards the repository is as it was, proven."),
		kong.Writers(a.Out, a.Err),
		kong.Exit(func(int) {}),
		kong.Help(helpPrinter(a)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(a),
		kong.BindSingletonProvider(a.Sessions),
		kong.BindSingletonProvider(a.Store),
	}
	options = append(options, app.Mappers()...)
	list := commands()
	known := slices.ContainsFunc(list, func(c command) bool { return c.name == word })
	for _, c := range list {
		target, tags := any(&struct{}{}), []string(nil)
		if c.name == word || !known {
			target = only(c.build(), sub)
		}
		if c.hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(c.name, c.help, "", target, tags...))
	}
	parser, err := kong.New(&a.Flags, options...)
	if err == nil {
		for i, c := range list {
			if c.group != "" {
				parser.Model.Children[i].Group = &kong.Group{Key: c.group, Title: c.group}
			}
		}
		describe(parser.Model.Node)
	}
	return parser, err
}

// only returns a group of commands of which the others than sub are names, or the
// group itself where it has no sub or is no group.
func only(group any, sub string) any {
	fields := reflect.VisibleFields(reflect.TypeOf(group).Elem())
	named := func(f reflect.StructField) bool { return strings.ToLower(f.Name) == sub }
	grouped := func(f reflect.StructField) bool { _, cmd := f.Tag.Lookup("cmd"); return cmd }
	if !slices.ContainsFunc(fields, named) || !grouped(fields[0]) {
		return group
	}
	for i := range fields {
		if !named(fields[i]) {
			fields[i].Type = reflect.TypeFor[struct{}]()
		}
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// commandWords returns the first word of a command line that is no global flag
// and no value of one, or "" if that is not known: at --, at a flag that is not
// global, and at -h, whose text shows every command. sub is the argument after it.
func commandWords(args []string) (word, sub string) {
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
				return "", ""
			}
			return arg, strings.Join(args[i+1:min(i+2, len(args))], "")
		}
	}
	return "", ""
}

// workspaceCmd groups the commands on sessions.
type workspaceCmd struct {
	Create      runcmd.Create            `cmd:"" help:"Open a session and print its id and workspace."`
	Exec        runcmd.Exec              `cmd:"" help:"Run a command in a session's workspace."`
	Shell       runcmd.Shell             `cmd:"" help:"Start your shell in a session's workspace."`
	Setup       runcmd.Setup             `cmd:"" help:"Set up a session's workspace as superqode.yaml describes."`
	Ps          runcmd.Ps                `cmd:"" help:"List the runs of sessions."`
	Logs        runcmd.Logs              `cmd:"" help:"Print the output of a run."`
	Send        runcmd.Send              `cmd:"" help:"Write to the stdin of a detached run."`
	Kill        runcmd.Kill              `cmd:"" help:"End a run and everything it started."`
	Collect     workspacecmd.Collect     `cmd:"" help:"Collect files of a session by pattern."`
	End         runcmd.End               `cmd:"" help:"End a session: collect its results, report, remove it."`
	List        workspacecmd.List        `cmd:"" help:"List sessions."`
	Info        workspacecmd.Info        `cmd:"" help:"Show a session in detail."`
	Path        workspacecmd.Path        `cmd:"" help:"Print the path of a session's workspace."`
	FS          workspacecmd.FS          `cmd:"" name:"fs" help:"Read and change files of a session's workspace, none outside."`
	Materialize workspacecmd.Materialize `cmd:"" help:"Write a session's workspace into a folder, for tools that must see it."`
	Conflicts   workspacecmd.Conflicts   `cmd:"" help:"Find changes in open workspaces that would conflict."`
	Blame       workspacecmd.Blame       `cmd:"" help:"Print which agent, if any, wrote each line of a file."`
	Diff        workspacecmd.Diff        `cmd:"" help:"Print a session's changes as a patch."`
	Changes     workspacecmd.Changes     `cmd:"" help:"List the paths that a session changed."`
	Apply       workspacecmd.Apply       `cmd:"" help:"Apply a session's changes to the origin, all or none."`
	Revert      workspacecmd.Revert      `cmd:"" help:"Revert a session's workspace to its base and verify it."`
	Verify      workspacecmd.Verify      `cmd:"" help:"Compare a session's workspace with its base."`
	Recover     workspacecmd.Recover     `cmd:"" help:"Finish or roll back what a crash interrupted."`
	Restore     workspacecmd.Restore     `cmd:"" help:"Restore files that a revert or a cleanup salvaged."`
	Cleanup     workspacecmd.Cleanup     `cmd:"" help:"Remove ended and abandoned sessions, and empty the trash."`
	Pin         workspacecmd.Pin         `cmd:"" help:"Protect a session from cleanup."`
	Unpin       workspacecmd.Unpin       `cmd:"" help:"Stop protecting a session from cleanup."`
}

// guardCmd groups the commands of the guard.
type guardCmd struct {
	Check  guardcmd.Check  `cmd:"" help:"Check a command line or a coding agent's hook payload."`
	Status guardcmd.Status `cmd:"" help:"Show which guard layers are active and whether they hold."`

	Install   guardcmd.Install   `cmd:"" help:"Guard this repository outside of sessions, with git hooks."`
	Uninstall guardcmd.Uninstall `cmd:"" help:"Undo guard install."`

	Allow guardcmd.Allow `cmd:"" help:"Permit one operation, once."`
}

// hooksCmd groups what goes into coding agents' own configurations.
type hooksCmd struct {
	Print guardcmd.HooksPrint `cmd:"" help:"Print the configuration that makes a coding agent ask superqode before it acts."`
}
