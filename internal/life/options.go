package life

import (
	"os"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/outputs"
	"github.com/seed-2d964004/superqode/internal/prepare"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/state"
)

// OpenOptions says what session to open. The zero value of every field but Dir
// is a usable default.
type OpenOptions struct {
	Dir      string            // any folder inside the origin
	Mode     superqode.Mode    // "" and ModeAuto: overlay if Overlay says so, worktree in a git repository, snapshot elsewhere
	Overlay  bool              // ModeAuto may choose overlay mode: there can be one, and nobody goes to the workspace from outside
	From     string            // FromWorking (or "") or a revision
	Include  []string          // gitignore patterns of ignored files to bring along
	Name     string            // a name for people
	Agent    superqode.AgentID // who works in the session
	Runner   string            // its name, if that is not Agent
	Case     string            // SUPERQODE_CASE_ID
	Keep     superqode.Keep    // "" is KeepFailure
	Exclude  []string          // snapshot mode: what is left out of the copy
	MaxBytes int64             // a bigger copy, of the origin or of a template, is refused; 0: no limit
	MaxTree  int64             // worktree mode: the same of the worktree
	Template string            // directory mode: a folder to start from; "": empty
	Owned    bool              // the opening process also runs and ends it (run): when it dies the session is dead
	NoRevert bool              // in place: leave the changes in the end; isolated: Run applies them to the origin

	IgnoredBudget int64    // git_snapshot: bytes of ignored files that are kept copies of; overlay: that come along; 0: the default
	LeaveOut      []string // git_snapshot: patterns of ignored paths that are not protected; overlay: that stay behind

	Setup    prepare.Options // what Run and Create bring about before the program runs
	Reports  []string        // report formats beside json, md and html: sarif, junit, summary
	NoRedact bool            // leave secrets in logs and reports
	Trial    bool            // verify-fix opens it

	Guard   GuardOptions
	Claims  string               // enforced: agents change only what they claimed; else claims are advice
	Watcher state.WatcherOptions // how changes are watched while a program runs
	program.KernelOptions

	Outputs      []string       // patterns of files that become artifacts at the end
	OutputLimits outputs.Limits // of these files
	Defaults     state.Defaults // for the programs that are run in the session
}

// DefaultCollectTimeout is how long the end of a session collects what it left.
const DefaultCollectTimeout = 2 * time.Minute

// EndOptions says how to end a session.
type EndOptions struct {
	Keep   superqode.Keep // "" is what the session was opened with
	Failed bool           // the program failed, for KeepFailure
	Locked bool           // remove the worktree even when it is locked (git worktree lock)
	EndApply
	CollectTimeout time.Duration // 0: what the session was opened with, or DefaultCollectTimeout

	// Signals are those that come while the session ends. The first of those that end
	// a program shows what is being done. The second stops collecting, or where that
	// is over the end itself, which recovery then goes on with. nil: there are none.
	Signals <-chan os.Signal

	unset error // why the workspace could not be set up, and no program ran
}

// EndApply says whether an isolated session's changes are brought into the origin
// when it ends. Whatever keeps them back preserves the session.
type EndApply struct {
	Apply      bool
	NotApplied string // with Apply: why nothing is applied after all; "" for nothing against it
}

// GuardOptions says how a session is guarded. The zero value is the default policy with
// all layers that this machine has.
type GuardOptions struct {
	Off    bool             // --allow-git-operations: nothing is denied
	Policy guard.PolicyName // "" is guard.QE
	Allow  []string         // guard.allow and guard.deny of the configuration
	Deny   []string
}
