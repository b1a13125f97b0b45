package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode/internal/findings"
)

// details has what the help of a command says below its synopsis.
var details = map[string]string{
	"artifacts add": "Inside a session, the file is copied to $SUPERQODE_ARTIFACT_DIR and becomes an artifact when the session ends. Elsewhere it is " +
		"added at once: to the session given by --session, or to none.",
	"artifacts prune": "Artifacts of open, preserved and pinned sessions are kept, as are artifacts added outside of a session or saved under a name. " +
		"With both limits, a session must exceed both to be pruned.",
	"claim acquire": "Exit code 4: another agent holds a claim, or waiting would end in a deadlock. Inside a session, the claim ends with the run of the " +
		"program. To name a file that looks like a range, append a colon: 'a:1-2:'.",
	"claim check": "Exit code 0: allowed. 3: denied (2 where a hook protocol requires it). With `claims: enforced` in the configuration, an agent may only " +
		"edit what it has claimed.",
	"claim wait": "Exit code 4: still claimed after the time given. Another agent may claim first; claim acquire --wait queues instead.",
	"completion": "For the current shell: source <(superqode completion bash). Permanently: add that line to ~/.bashrc or ~/.zshrc, or `superqode " +
		"completion fish | source` to ~/.config/fish/config.fish.",
	"demo": "Works in a new folder under TMPDIR with its own HOME, needs only git and sh, and does not touch your files. It first removes what an " +
		"interrupted demo left. Exit code 6: something did not go as promised.",
	"finding add": "With -, each line of stdin is a JSON object with the fields of superqode-qr-v1. Invalid lines are reported with the field at fault and " +
		"skipped, and the exit code is 80. Findings can also be left as files: JSON in $SUPERQODE_ARTIFACT_DIR/findings, SARIF 2.1.0 and JUnit XML anywhere " +
		"in $SUPERQODE_ARTIFACT_DIR, patches as fixes/<finding-id>.patch.",
	"finding suppress": "Writes an entry to " + findings.SuppressionsFile + " in the origin's top folder, next to superqode.yaml. Commit that file to share " +
		"it. Suppressed findings are listed separately and not counted. Suppressing a finding again replaces its reason and date.",
	"finding unsuppress": "Removes the entry from " + findings.SuppressionsFile + ", leaves everything else there as it is, comments included, and rewrites the " +
		"session's report.",
	"guard allow": "Permits the operation to a session's program or, where guard install was run, to whoever tries it next in the repository.",
	"guard check": "Exit code 0: allowed. 3: denied (2 where a hook protocol requires it).",
	"guard install": "Programs may no longer commit, push or otherwise move a branch, a tag or the stash; people at a terminal may. Existing hooks (husky, " +
		"lefthook, pre-commit, your own) keep running. guard uninstall restores every byte.",
	"guard status": "Exit code 1: guard install was run here, but its hooks do not fire.",
	"report": "In a GitHub workflow: superqode report --format summary >> \"$GITHUB_STEP_SUMMARY\". The values of secrets are masked in every format. " +
		"--no-redact shows them as long as the session's own folder exists.",
	"run": "The exit code is the program's own. 124: timed out. 125: superqode failed. 126, 127: the program could not be executed, or was not found. 6: " +
		"the program succeeded, but a check afterwards failed.",
	"track": "In a workspace shared by several agents, workspace blame, changes and revert --agent rely on what the agents report. Call this after each " +
		"edit, preferably from the agent's own hook: PostToolUse of Claude Code and Codex, AfterTool of Gemini CLI, afterFileEdit of Cursor, postToolUse of " +
		"Copilot. Payloads that concern no file, or that arrive outside of a session, are ignored.",
	"trust": "Commands in setup: and agents: of a superqode.yaml that came with a repository only run once they are trusted. Trust covers their text and the " +
		"contents of the files in the origin that they name; when either changes, they must be trusted again. A session's program cannot do that.",
	"verify-fix": "Applies the fix in a new session with the same base as the finding's session, and runs the tests before and after, with their output on " +
		"stderr. The fix is verified if the tests pass afterwards, and an improvement if they failed before. The result is added to the report of the " +
		"finding's session. Exit code 0: verified. 1: not verified.",
	"watch": "Ends when interrupted or when the session ends. Paths are relative to the root of the repository or workspace.",
	"workspace apply": "Merges the changes with the current state of the origin, as git does, without touching its index, HEAD or refs. Either all changes " +
		"are applied or none: exit code 4 means a conflict. workspace restore brings back what was overwritten or deleted.",
	"workspace conflicts": "Merges the changes in all open workspaces of this origin with one another on their base, as git would, including those of running " +
		"agents. Exit code 4: some would conflict.",
	"workspace revert": "In git_snapshot mode the workspace is the origin itself.",
	"workspace setup": "Applies the inputs, files and commands of superqode.yaml and of the command line that opened the session, and skips what is already " +
		"in place. Exit code 125: a required entry failed.",
	"workspace verify": "In git_snapshot mode the workspace is the origin itself.",
}

// describe adds the details to a node of the grammar and those below it.
func describe(n *kong.Node, path string) {
	n.Detail = details[path]
	for _, child := range n.Children {
		describe(child, strings.TrimSpace(path+" "+child.Name))
	}
}
