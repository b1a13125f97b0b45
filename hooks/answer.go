package hooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
)

// Call is one start of a session's helper under the name of a hook.
type Call struct {
	Exe  string   // the helper's own path, see guard.StateOf
	Name string   // what it was called as: "pre-commit", "fsmonitor", RemoteHelper
	Args []string // without the name
	Env  []string
	Dir  string // the working directory; "" when it can not be told
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
}

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
	transactionHook = "reference-transaction"
	pushToCheckout  = "push-to-checkout"
	exitRefused     = 3
	exitFailed      = 126
)

// gitHooks are the names of git's hooks (githooks(5) of 2.55). push-to-checkout is
// not among them: where that hook exists git no longer updates the work tree
// itself.
func gitHooks() []string {
	return []string{
		"applypatch-msg", "commit-msg", "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist",
		"post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
		"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
		"proc-receive", transactionHook, "sendemail-validate", "update",
	}
}

// Serves reports whether Answer knows a name; under any other name the helper is
// git itself.
func Serves(name string) bool {
	switch name {
	case RemoteHelper, fsmonitorName, configHookName, receiveName:
		return true
	}
	return name == pushToCheckout || slices.Contains(gitHooks(), name)
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
			a.policy = p // a list that can not be read leaves the default, which denies more
		}
	}
	if a.Name == RemoteHelper {
		return a.remote(ctx)
	}
	a.repo = guard.FindRepository(a.Dir, a.Env, "", "")
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
// where the user has no such hook (see alone): git tells of each transaction twice
// or three times.
func (c Call) aside() bool {
	if c.Name != transactionHook || len(c.Args) == 0 || c.Args[0] == "prepared" || filepath.Base(c.Exe) != transactionHook {
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
	case transactionHook:
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
	if len(chain) == 0 { // who called can not be told: what this hook is for decides
		if a.policy.Decide(usual) == guard.Deny {
			return a.refuse(subject{verdict: guard.Refusal(usual, []string{"git", string(usual)})}), nil
		}
		return 0, nil
	}
	if s := a.judge(ctx, chain); s.verdict.Denied() {
		return a.refuse(s), nil
	}
	return 0, nil
}

// guarded reports whether this repository is the session's to protect.
func (a *answer) guarded() bool {
	if a.st == nil {
		return true
	}
	if a.st.Off {
		return false
	}
	if a.repo.GitDir == "" {
		return true // git runs hooks in repositories only: it is one that was not understood
	}
	return a.st.Guards(a.repo.CommonDir, a.repo.WorkTree)
}

// refuse tells of a denial, unless a person has let this one through, and returns
// the exit code.
func (a *answer) refuse(s subject) int {
	if a.installed != nil {
		return a.installed.refuse(a, s)
	}
	if a.st == nil {
		_, _ = io.WriteString(a.Err, s.verdict.Block(nil)) // perhaps nobody listens
		fmt.Fprintf(a.Err, "superqode: the session's state is not there, so the strictest rules hold: %v\n", a.broken)
		return exitRefused
	}
	at := guard.Attempt{Operation: s.verdict.Operation, Command: s.verdict.Command, Layer: guard.LayerHooks, Dir: superqode.HostPath(a.Dir), Agent: a.st.Agent, Process: s.pid}
	if a.st.Consume(a.Env, at) {
		return 0
	}
	if a.told(at) {
		return exitRefused
	}
	_, _ = io.WriteString(a.Err, s.verdict.Block(a.st))
	if err := a.st.Report(a.Env, at); err != nil {
		fmt.Fprintf(a.Err, "superqode: this attempt could not be written down: %v\n", err)
	}
	return exitRefused
}

// told reports whether this very attempt was refused already: git from 2.54 on
// runs the hook that the configuration names and the one in the folder, and each
// has to say no.
func (a *answer) told(at guard.Attempt) bool {
	if at.Process == 0 || gitVersion(a.st).Before(versionConfigHooks) {
		return false
	}
	data, err := os.ReadFile(a.st.LogPath())
	if err != nil {
		return false
	}
	list, _ := guard.ParseAttempts(data)
	return slices.ContainsFunc(list[max(len(list)-8, 0):], func(b guard.Attempt) bool {
		return b.Process == at.Process && b.Operation == at.Operation && b.Layer == at.Layer && !b.Allowed && time.Since(b.At) < time.Minute
	})
}
