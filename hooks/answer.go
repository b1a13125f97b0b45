package hooks

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/installation"
)

// Call is one start of a session's helper under the name of a hook.
type Call struct {
	Exe  string   // the helper's own path, see guard.StateOf
	Name string   // what it was called as: "pre-commit", "fsmonitor", RemoteHelper
	Args []string // without the name
	Env  []string
	Dir  string // the working directory; "" if it is not known
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
}

// HelperFile is the name of the helper binary in a session's folder of hooks. The
// links next to it lead to it, so that it is called by their names.
const HelperFile = "helper"

// Names of the helper that are no hooks of git's.
const (
	// RemoteHelper is the program that git looks for in PATH and in its own folder
	// when it pushes to an address that starts with superqode-blocked://.
	RemoteHelper = "git-remote-superqode-blocked"

	fsmonitorName  = "fsmonitor"
	configHookName = "guard"        // what a hook from the configuration calls (git 2.54)
	receiveName    = "receive-pack" // remote.NAME.receivepack
)

const (
	exitRefused = 3
	exitFailed  = 126
)

// Serves reports whether Answer knows a name; under any other name the helper is
// git itself.
func Serves(name string) bool {
	switch name {
	case RemoteHelper, fsmonitorName, configHookName, receiveName:
		return true
	}
	return name == installation.PushToCheckout || slices.Contains(installation.GitHooks(), name)
}

// answer is one call under way.
type answer struct {
	Call
	st     *guard.SessionState // nil when it could not be read
	broken error
	policy guard.Policy
	repo   guard.Found

	installed *installedCall // of guard install, outside of sessions; then st is nil
}

// Answer answers one call and returns the exit code. Where the user has a hook of
// that name, this process becomes it whenever it can.
//
// Without a readable session state the default policy holds for what git is
// about to do in any repository that led here.
func Answer(ctx context.Context, c Call) int {
	if c.aside() {
		return 0
	}
	a := &answer{Call: c}
	a.st, a.broken = guard.StateOf(c.Exe)
	if a.st != nil {
		if p, err := a.st.Policy(); err == nil {
			a.policy = p // a list that cannot be read leaves the default, which denies more
		}
	}
	if a.Name == RemoteHelper {
		return a.remote(ctx)
	}
	a.repo = guard.FindRepository(a.Dir, a.Env, "", "")
	if a.st != nil && !a.st.Own(a.repo, true) { // git has named it
		a.policy = a.policy.Elsewhere()
	}
	switch a.Name {
	case fsmonitorName:
		return a.fsmonitor(ctx)
	case receiveName:
		return a.receive(ctx)
	case configHookName:
		if len(a.Args) == 0 {
			return 0
		}
		a.Name, a.Args = a.Args[0], a.Args[1:]
		code, _ := a.decide(ctx)
		return code
	}
	code, input := a.decide(ctx)
	if code != 0 {
		return code
	}
	return a.userHook(ctx, input)
}

// aside reports a state of a reference transaction in which nothing is decided,
// where the user has no such hook (see alone): git calls the hook for each transaction twice
// or three times.
func (c Call) aside() bool {
	if c.Name != installation.TransactionHook || len(c.Args) == 0 || c.Args[0] == "prepared" ||
		filepath.Base(c.Exe) != installation.TransactionHook {
		return false
	}
	st, err := os.Lstat(c.Exe)
	return err == nil && st.Mode().IsRegular()
}

// decide asks the guard where a hook can prevent something. It returns 0 when
// git may go on, and what it read from the input, nil when it read nothing.
func (a *answer) decide(ctx context.Context) (code int, input []byte) {
	var usual guard.Operation
	switch a.Name {
	case installation.TransactionHook:
		// "preparing" (git 2.54) comes before the values are known to be right,
		// "committed" and "aborted" are too late.
		if len(a.Args) == 0 || a.Args[0] != "prepared" || !a.guarded() {
			return 0, nil
		}
		return a.transaction(ctx)
	case "prepare-commit-msg":
		usual = "commit"
	case "pre-commit", "applypatch-msg": // for guard install, which has no other way to come first
		if a.installed == nil {
			return 0, nil
		}
		usual = map[string]guard.Operation{"pre-commit": "commit", "applypatch-msg": "am"}[a.Name]
	case "pre-push":
		usual = "push"
	case "pre-rebase":
		usual = "rebase"
	default:
		return 0, nil
	}
	if !a.guarded() {
		return 0, nil
	}
	chain := a.commands()
	if len(chain) == 0 { // the caller is not known: the purpose of this hook decides
		if a.policy.Decide(usual) == guard.Deny {
			return a.refuse(subject{verdict: a.policy.Refusal(usual, []string{"git", string(usual)})}), nil
		}
		return 0, nil
	}
	if s := a.judge(ctx, chain); s.verdict.Denied() {
		return a.refuse(s), nil
	}
	return 0, nil
}
