package hooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/installation"
)

// subject is what was decided on: a verdict and the process that it is about.
type subject struct {
	verdict guard.Verdict
	pid     int
	// commands are the processes that must not go on, the nearest first; none
	// when the command is allowed.
	commands []command
	late     string // what git had done before it asked, see answer.late; "" for nothing
}

// judge decides on the git commands that led to this call. The nearest one
// counts, unless it is a step that git itself takes in an allowed command; and
// whatever a denied command has git do is denied with it.
func (a *answer) judge(ctx context.Context, chain []command) subject {
	above := subject{verdict: guard.Verdict{Decision: guard.Allow, Certainty: guard.Certain}}
	for i, c := range slices.Backward(chain) {
		own := a.verdict(ctx, c, i > 0)
		switch {
		case above.verdict.Denied():
			// the command above decides
		case own.Denied() && i+1 < len(chain) && a.isStep(chain[i+1], c):
			// what git does in an allowed command is part of that
		default:
			above = subject{verdict: own, pid: c.PID, commands: chain[:i+1]}
		}
	}
	if !above.verdict.Denied() {
		above.commands = nil
	}
	return above
}

// verdict asks package guard about one command. outer is a command that waits for
// another one: where its name is no command of git's it stands for an alias or a
// program, and what that does is judged by itself.
func (a *answer) verdict(ctx context.Context, c command, outer bool) guard.Verdict {
	in := guard.Context{Dir: a.startDir(), Env: a.Env, Policy: a.policy}
	if outer {
		if !guard.IsGitCommand(c.name()) {
			return guard.Verdict{Decision: guard.Allow, Certainty: guard.Unknown}
		}
		in.Dir = a.Dir
	}
	switch {
	case a.st != nil:
		// every repository that leads here is guarded
		in.Find = func() guard.Resolver { r, _ := a.st.Resolver(a.Env); return r }
	case a.installed != nil:
		in.Find = func() guard.Resolver {
			if bin := a.gitBin(); bin != "" {
				return guard.NewGitResolver(bin, a.Env)
			}
			return nil
		}
	}
	v := shelltext.CheckArgs(ctx, c.argv, in)
	if v.Operation == "branch.force" && v.Denied() && c.name() == "worktree" {
		// "worktree add -B new" reads so from the moment on that it has made the
		// branch; the transaction shows whether it moves one.
		v = guard.Verdict{Decision: guard.Allow, Operation: "worktree.add", Certainty: guard.Certain,
			Command: v.Command}
	}
	return v
}

// gitBin is git's path: the session's, else the one in PATH; "" when there is none.
func (a *answer) gitBin() string {
	if a.st != nil {
		return string(a.st.Git.Bin)
	}
	if g, err := git.Locate(a.Env, git.Top(a.Dir)); err == nil {
		return g.Bin
	}
	return ""
}

// A step is a command that git runs by itself while it carries out another one.
type step struct {
	parent string // command, or command and its first word
	child  string
	form   func(a *answer, args []string) bool // nil: every form
}

// steps are the denied commands that git runs by itself in commands that are allowed
// by default, by the sources of git 2.28 to 2.55. What a denied command consists of,
// where the user allows it, knows guard.IsStep.
var steps = []step{
	{"worktree add", "reset", (*answer).freshReset},
	{"worktree add", "update-ref", func(_ *answer, args []string) bool { return len(args) == 2 && args[0] == "HEAD" }},
	{"worktree add", "symbolic-ref", func(_ *answer, args []string) bool {
		return len(args) == 2 && args[0] == "HEAD"
	}},
	{"worktree add", "branch", nil},
	{"submodule update", "checkout", (*answer).submoduleCheckout},
	{"submodule--helper update", "checkout", (*answer).submoduleCheckout},
	{"submodule--helper run-update-procedure", "checkout", (*answer).submoduleCheckout},
	{"submodule--helper update-clone", "checkout", (*answer).submoduleCheckout},
	{"submodule add", "checkout", (*answer).submoduleCheckout},
	{"submodule--helper add", "checkout", (*answer).submoduleCheckout},
}

// isStep reports whether child is something that git does by itself in parent.
// What a parent that is allowed by default does must have the exact form, since
// such a parent may be made to run something else, by a hook that turns into it.
func (a *answer) isStep(parent, child command) bool {
	pname, pargs := guard.SplitCommand(parent.argv)
	cname, cargs := guard.SplitCommand(child.argv)
	sub := pname
	if i := slices.IndexFunc(pargs, func(w string) bool { return !strings.HasPrefix(w, "-") }); i >= 0 {
		sub += " " + pargs[i]
	}
	for _, s := range steps {
		if s.parent == sub && s.child == cname && (s.form == nil || s.form(a, cargs)) {
			return true
		}
	}
	// Of a parent that only the configuration allows every step is the user's wish.
	return guard.IsStep(pname, cname) &&
		shelltext.CheckArgs(context.Background(), parent.argv, guard.Context{}).Denied()
}

// freshReset is how a new worktree is filled: a hard reset where there was
// nothing.
func (a *answer) freshReset(args []string) bool {
	for _, w := range args {
		if w != "--hard" && w != "--no-recurse-submodules" && w != "-q" && w != "--quiet" {
			return false
		}
	}
	dir := a.repo.GitDir
	if filepath.Base(filepath.Dir(dir)) != "worktrees" || a.st != nil && filepath.Base(dir) == a.st.ID.String() {
		return false
	}
	if a.Name == installation.TransactionHook {
		return true // the tree is written, and the refs are looked at by themselves
	}
	_, err := os.Lstat(filepath.Join(dir, "index"))
	return errors.Is(err, os.ErrNotExist)
}

// submoduleCheckout is how a submodule gets its commit. It is forced only where
// the submodule was cloned a moment ago.
func (a *answer) submoduleCheckout(args []string) bool {
	if a.st == nil || slices.Contains(a.st.GitDirs, superqode.HostPath(a.repo.CommonDir)) {
		return false
	}
	for _, w := range args {
		if w != "-q" && w != "-f" && w != "--quiet" && !isObjectID(w) {
			return false
		}
	}
	return true
}

func isObjectID(w string) bool {
	return (len(w) == 40 || len(w) == 64) && strings.Trim(w, "0123456789abcdef") == ""
}
