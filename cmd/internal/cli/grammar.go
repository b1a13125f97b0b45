package cli

import (
	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
)

// grammar is the whole command line: the global flags and one field a command.
type grammar struct {
	*Globals

	Run        runCmd        `cmd:"" help:"Run a program in a session of its own: open, run, collect, report, remove."`
	Workspace  workspaceCmd  `cmd:"" help:"Open, use, look at and end sessions."`
	Artifacts  artifactsCmd  `cmd:"" help:"What sessions left behind."`
	Finding    findingCmd    `cmd:"" help:"Findings of a session."`
	Report     reportCmd     `cmd:"" help:"Print a session's report."`
	Config     configCmd     `cmd:"" help:"The configuration and where each value comes from."`
	Doctor     doctorCmd     `cmd:"" help:"Check git, the file system, the kernel and what earlier sessions left; each with its remedy."`
	Completion completionCmd `cmd:"" help:"Print the completion code for a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	SweepTrash sweepCmd `cmd:"" hidden:""`

	Guard unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Claim unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Watch unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Trust unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Demo  unbuiltCmd `cmd:"" hidden:"" passthrough:""`
}

// workspaceCmd groups the commands on sessions.
type workspaceCmd struct {
	Create  workspaceCreateCmd  `cmd:"" help:"Open a session and leave it active; prints its id and its workspace."`
	Exec    workspaceExecCmd    `cmd:"" help:"Run a command in an active session's workspace."`
	End     workspaceEndCmd     `cmd:"" help:"Collect, report and remove a session."`
	List    workspaceListCmd    `cmd:"" help:"List the sessions of this origin."`
	Info    workspaceInfoCmd    `cmd:"" help:"Show one session whole."`
	Path    workspacePathCmd    `cmd:"" help:"Print a session's workspace path."`
	Diff    workspaceDiffCmd    `cmd:"" help:"Print what a session changed as a patch."`
	Changes workspaceChangesCmd `cmd:"" help:"List what a session changed."`
	Recover workspaceRecoverCmd `cmd:"" help:"Finish, or roll back, what a crash left."`

	Apply   unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Revert  unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Verify  unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Cleanup unbuiltCmd `cmd:"" hidden:"" passthrough:""`
	Restore unbuiltCmd `cmd:"" hidden:"" passthrough:""`
}

// unbuiltCmd stands for a command that the documents name and that this version
// does not have: it is refused by name instead of being unknown.
type unbuiltCmd struct {
	Rest []string `arg:"" optional:""`
}

// Run refuses.
func (*unbuiltCmd) Run(kctx *kong.Context) error {
	return superqode.WithHint(
		superqode.Errorf(superqode.ErrUsage, "%s is not built yet in this version", kctx.Selected().Path()[1:]),
		"superqode --help")
}
