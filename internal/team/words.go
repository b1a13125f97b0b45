package team

import (
	"fmt"
	"os"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
)

// AgentCommand is one agent of a session of several.
type AgentCommand struct {
	Agent   superqode.AgentID
	Command string // for sh -c
}

// CheckAgents refuses a list of agents that can be no session: none, two of one
// name, one without a command. The error wraps superqode.ErrUsage.
func CheckAgents(list []AgentCommand) error {
	seen := map[string]bool{}
	for _, a := range list {
		name := a.Agent.String()
		switch {
		case a.Agent.IsZero():
			return superqode.Errorf(superqode.ErrUsage, "an agent without a name")
		case a.Command == "":
			err := superqode.Errorf(superqode.ErrUsage, "agent %s has no command", name)
			return superqode.WithHint(err, "superqode run --agent '%s=SHELL COMMAND'", name)
		case seen[name]:
			return superqode.Errorf(superqode.ErrUsage, "agent %s is given twice", name)
		}
		seen[name] = true
	}
	if len(list) == 0 {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "no agent to run"),
			"superqode run --agent 'alice=SHELL COMMAND' --agent 'bob=SHELL COMMAND'")
	}
	return nil
}

// Check refuses agents that cannot work like this in a session of a mode, see CheckAgents.
// Claims are enforced where one agent's changes are told from another's: in a workspace
// that they share nobody could.
func (opt AgentsOptions) Check(m superqode.Mode, claims string) error {
	if err := CheckAgents(opt.Agents); err != nil {
		return err
	}
	var err error
	switch {
	case mode.Of(m).InPlace && !opt.Shared && len(opt.Agents) > 1:
		err = superqode.Errorf(superqode.ErrUsage, "in %s mode the workspace is the origin itself: several agents can only share it", m)
		return superqode.WithHint(err, "add --shared-workspace, or use --worktree")
	case opt.Shared && coordinator.Mode(claims) == coordinator.Enforced:
		err = superqode.Errorf(superqode.ErrUsage, "claims: enforced needs a workspace for each agent; in a shared one nothing would hold an agent to its claims")
		return superqode.WithHint(err, "leave out --shared-workspace, or SUPERQODE_CLAIMS=advisory superqode run …")
	}
	return nil
}

// Ends reports whether a signal asks a program to end.
func Ends(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// NotApplied says why the changes of a program that ended like this are not
// applied, "" when they are: half a job is nobody's wish.
func NotApplied(res runner.Result, err error) string {
	switch {
	case err != nil:
		return "the program did not run"
	case res.TimedOut:
		return "the program timed out"
	case res.ExitCode != 0:
		return fmt.Sprintf("the program failed (exit code %d)", res.ExitCode)
	}
	return ""
}

// NotAppliedOf is why a session that was opened with NoRevert applies nothing when
// it ends, "" for nothing against it.
func NotAppliedOf(r *state.Record) string {
	switch {
	case r.Runs == 0:
		return ""
	case r.ExitCode == nil:
		return "how the last program ended is not known"
	}
	return NotApplied(runner.Result{ExitCode: *r.ExitCode, TimedOut: r.TimedOut}, nil)
}
