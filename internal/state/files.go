package state

import (
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/guard"
)

const GuardStateFile = guard.SessionStateFile

// IgnoredFile keeps the topmost paths of a git_snapshot session's base that git
// ignores, NUL after each: they are brought back, and are in no patch.
const IgnoredFile = "ignored"

const RepositorySnap = "git.snap"

// RunsFile holds two lines for each program that was run in a session: one when
// it began and one when it had ended, which says everything.
const RunsFile = "log/runs.jsonl"

// What the setup makes and changes belongs to the base: a path that is as the
// setup left it is no change of the session's. A path that the session's program
// changed after the setup did is compared with the origin again, so that the
// patch applies there.
//
// Two small snapshots beside the base hold the paths that the setup touched, as
// they were before it and as it left them. In the isolated modes base.snap itself
// becomes what the setup left, which is what a revert brings back; in place the
// base stays what the origin was, since that is what has to come back in the end.
//
// Ignored files that the setup made are in no snapshot: dependencies are many
// and big. A revert leaves them alone; `workspace setup` looks after them.
const (
	SetupBeforeFile  = "setup-before.snap"
	SetupAfterFile   = "setup-after.snap"
	SetupIgnoredFile = "setup-ignored"
)

// SetupFiles are the files above.
func SetupFiles() []string { return []string{SetupBeforeFile, SetupAfterFile, SetupIgnoredFile} }

// SetupStateFile is in the session's folder, where its program cannot write.
const SetupStateFile = "setup.json"

// SuppressionsCopy is the origin's SuppressionsFile as it was when the session was
// opened. The session goes by this copy, which is sealed while programs run: in
// the modes that work in the origin a program could write itself a clean bill.
const SuppressionsCopy = "suppressions.yaml"

// SessionFolders lists the folders of a session below its own: bin, exec, hooks
// and log are the supervisor's, tmp and artifacts the program's.
func SessionFolders() []string { return []string{"bin", "exec", "hooks", "log", "tmp", "artifacts"} }

// The folders that a session's programs see at /tmp and at XDG_RUNTIME_DIR where it has its
// own; made when the first of them is started.
const (
	PrivateTmp = "own-tmp"
	PrivateRun = "own-run"
)

// MakeFolders makes those of every session.
func MakeFolders(dir string) error {
	for _, name := range SessionFolders() {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// WorkspaceFile is the file in a session's folder that describes its workspace.
const WorkspaceFile = "workspace.json"

// FindingsFile holds a session's findings while it is open, one a line.
const FindingsFile = "findings.jsonl"
