// Package hooks puts the guard into git's hooks.
//
// A session has a folder with one link for each of git's hooks, all leading to
// the session's helper binary, and an environment (Env) that makes git use them:
// no file of the user's is changed and nothing needs to be restored. The
// configuration applies only where the guarded repository is worked on
// (includeIf "gitdir:…"), so that repositories which a test suite makes run at
// full speed with hooks of their own.
//
// Git calls the helper, the helper calls Answer:
//
//   - reference-transaction, prepare-commit-msg, pre-push and pre-rebase find
//     the git command that is under way in the process table, ask package guard,
//     and refuse it by their exit code. A reference transaction of an allowed
//     command is looked at once more: no branch, tag or stash of the user's may
//     move in it.
//   - fsmonitor is a veto. Git asks its file system monitor before it touches
//     the work tree; for a denied command the answer is the end of the process.
//     For every other one the answer is "look at everything"; in an overlay it is
//     what the folder with what was written could know of, see MonitorToken.
//   - git-remote-superqode-blocked stands behind every address that is pushed to
//     and refuses, except for dry runs and for repositories that the session
//     made itself.
//   - The user's own hook of the same name runs afterwards, with the same
//     arguments, input, environment and exit code.
//
// docs/guard.md lists what this layer stops. A command that sets core.hooksPath
// and core.fsmonitor itself passes it, and so does one that empties its
// environment; the kernel layer holds there.
package hooks
