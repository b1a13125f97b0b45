package hooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// InstalledCommand is the word after which a hook that guard install wrote calls
// the helper: InstalledCommand NAME STATE-FOLDER NEXT-HOOK [ARG…].
const InstalledCommand = "installed-hook"

// chainVariable holds the hooks that are under way, as "NAME:PID;" of the git that
// runs them: a hook manager that took our file for the user's own, and calls it,
// must not call in a circle.
const chainVariable = "SUPERQODE_HOOK_CHAIN"

// installedCall is one call of a hook that guard install wrote.
type installedCall struct {
	state string // the folder of the installation's state
	hook  string // the user's hook, which may not be there
	in    *Installation
	found string // git's path, once it was looked up
}

// AnswerInstalled answers a hook that guard install wrote into the user's own
// repository. c.Args are the words after InstalledCommand.
//
// Inside of a session the session's own hooks have decided. Outside, what the
// policy denies is refused to programs; a person at a terminal, and what a person
// let through once, goes on. Without a readable state the default policy holds.
func AnswerInstalled(ctx context.Context, c Call) int {
	if len(c.Args) < 3 {
		fmt.Fprintf(c.Err, "superqode: %s is called by the hooks of guard install only\n", InstalledCommand)
		return exitFailed
	}
	i := &installedCall{state: c.Args[1], hook: c.Args[2]}
	c.Name, c.Args = c.Args[0], c.Args[3:]
	under := c.Name + ":" + strconv.Itoa(gitAbove()) + ";"
	chain := superqode.Getenv(c.Env, chainVariable)
	if strings.Contains(chain, under) {
		return 0
	}
	c.Env = append(slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return kv == processors || strings.HasPrefix(kv, chainVariable+"=") }), chainVariable+"="+chain+under)
	a := &answer{Call: c, installed: i, repo: guard.FindRepository(c.Dir, c.Env, "", "")}
	if inSession(c.Env, a.repo) {
		return a.userHook(ctx, nil)
	}
	var err error
	if i.in, err = loadInstallation(i.state); err == nil {
		a.policy, err = guard.NewPolicy(i.in.Allow, i.in.Deny)
	}
	if err != nil {
		i.in = &Installation{}
	}
	code, input := a.decide(ctx)
	if code != 0 {
		return code
	}
	return a.userHook(ctx, input)
}

// gitAbove is the git that this call comes from: hook managers call one another
// through shells.
func gitAbove() int {
	pid := os.Getppid()
	for range maxCommands {
		p, ok := proctable.Read(pid)
		if !ok || strings.HasPrefix(filepath.Base(p.Exe), "git") {
			break
		}
		pid = p.Parent
	}
	return pid
}

// next is the user's hook of this name, "" when git would run none.
func (i *installedCall) next(a *answer) string {
	if i.hook == "" || unix.Access(inside(a.Dir, i.hook), unix.X_OK) != nil {
		return ""
	}
	if st, err := os.Stat(inside(a.Dir, i.hook)); err != nil || st.IsDir() {
		return ""
	}
	return i.hook
}

func (i *installedCall) git(env []string) string {
	if i.found == "" {
		if g, err := git.Locate(env); err == nil {
			i.found = g.Bin
		}
	}
	return i.found
}

func (i *installedCall) resolver(env []string) guard.Resolver {
	bin := i.git(env)
	if bin == "" {
		return nil
	}
	return &guard.GitResolver{Git: git.At(bin, env), SearchPath: superqode.Getenv(env, "PATH")}
}

// refuse stops what a program does; a person goes on.
func (i *installedCall) refuse(a *answer, s subject) int {
	caller := 0
	if p, ok := a.caller(); ok {
		caller = p.PID
	}
	person, why := isPerson(caller, a.Env)
	switch {
	case person && !i.in.Strict:
		return 0
	case i.letThrough(a, s):
		return 0
	}
	if s.verdict.Operation == "commit" { // the table's advice is for sessions
		s.verdict.Suggestion = "leave the changes in the files for the user to commit; `git diff` shows them"
	}
	var b strings.Builder
	b.WriteString(s.verdict.Block(nil))
	switch {
	case person:
		b.WriteString("  who: the guard of this repository is strict, it stops people too\n")
	default:
		fmt.Fprintf(&b, "  who: %s, so it counts as a program; the user does it in a terminal\n", why)
	}
	fmt.Fprintf(&b, "  a person, in a terminal, can let one through: superqode guard allow --once %s\n", s.verdict.Operation)
	_, _ = io.WriteString(a.Err, b.String()) // perhaps nobody listens
	i.note(a, s)
	return exitRefused
}

// maxAttempts bounds the log of an installation, in bytes.
const maxAttempts = 1 << 20

// note writes the refused attempt down, for guard status. A log that can not be
// written, or is full, changes nothing.
func (i *installedCall) note(a *answer, s subject) {
	path := filepath.Join(i.state, attemptsFile)
	if st, err := os.Lstat(path); err == nil && st.Size() > maxAttempts || i.in.Helper == "" {
		return
	}
	at := guard.Attempt{Operation: s.verdict.Operation, Command: s.verdict.Command, Layer: guard.LayerHooks, Dir: superqode.HostPath(a.Dir), Process: s.pid, At: time.Now().UTC()}
	if err := at.Append(path); err != nil {
		fmt.Fprintf(a.Err, "superqode: this attempt could not be written down: %v\n", err)
	}
}
