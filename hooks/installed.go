package hooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/installation"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// InstalledCommand is the word after which a hook that guard install wrote calls
// the helper: InstalledCommand NAME STATE-FOLDER NEXT-HOOK [ARG…].
const InstalledCommand = installation.Command

// chainVariable holds the hooks that are under way, as "NAME:PID;" of the git that
// runs them: a hook manager that took our file for the user's own, and calls it,
// must not call in a circle.
const chainVariable = "SUPERQODE_HOOK_CHAIN"

// installedCall is one call of a hook that guard install wrote.
type installedCall struct {
	state string // the folder of the installation's state
	hook  string // the user's hook, which may not be there
	in    *installation.Record
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
	c.Env = append(slices.DeleteFunc(slices.Clone(c.Env),
		func(kv string) bool { return kv == installation.Processors || strings.HasPrefix(kv, chainVariable+"=") }),
		chainVariable+"="+chain+under)
	a := &answer{Call: c, installed: i, repo: guard.FindRepository(c.Dir, c.Env, "", "")}
	if inSession(c.Env, a.repo) {
		return a.userHook(ctx, nil)
	}
	var err error
	if i.in, err = installation.Load(i.state); err == nil {
		a.policy, err = guard.NewPolicy(i.in.Allow, i.in.Deny)
	}
	if err != nil {
		i.in = &installation.Record{}
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
