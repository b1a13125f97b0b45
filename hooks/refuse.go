package hooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/installation"
)

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

// refuse reports a denial, unless a person has let this one through, and returns
// the exit code.
func (a *answer) refuse(s subject) int {
	s.late = a.late(s.verdict.Operation)
	if a.installed != nil {
		return a.installed.refuse(a, s)
	}
	if a.st == nil {
		_, _ = io.WriteString(a.Err, s.verdict.Block(nil)) // perhaps nobody listens
		fmt.Fprintf(a.Err, "superqode: the session's state is not there, so the strictest rules hold: %v\n", a.broken)
		return exitRefused
	}
	at := guard.Attempt{Operation: s.verdict.Operation, Command: s.verdict.Command, Layer: guard.LayerHooks,
		Dir: superqode.HostPath(a.Dir), Agent: a.st.Agent, Process: s.pid}
	if a.st.Consume(a.Env, at) {
		return 0
	}
	if a.reported(at) {
		return exitRefused
	}
	_, _ = io.WriteString(a.Err, s.block(a.st))
	if err := a.st.Report(a.Env, at); err != nil {
		fmt.Fprintf(a.Err, "superqode: this attempt could not be written down: %v\n", err)
	}
	return exitRefused
}

// late returns what git has done already when it asks about a denied command: hooks
// that ask about refs come after the files were written, or the remote was reached.
func (a *answer) late(op guard.Operation) string {
	if a.Name != installation.TransactionHook && a.Name != "prepare-commit-msg" && a.Name != "pre-commit" {
		return ""
	}
	if chain := a.commands(); len(chain) > 0 {
		if chain[0].name() == "receive-pack" {
			return "" // the other end of a push, which asks in time
		}
		if nearest := a.verdict(context.Background(), chain[0], false).Operation; nearest != "commit" {
			op = nearest // else a commit that cherry-pick or revert makes
		}
	}
	switch op {
	case "push":
		return "the remote has what was pushed: --no-verify goes past the hook that is asked before"
	case "reset.hard", "reset.merge", "reset.keep", "checkout.force", "checkout.merge", "checkout.switch",
		"checkout.reset-branch", "switch", "switch.force", "switch.merge", "switch.reset-branch", "cherry-pick",
		"revert":
		return "git had written the files and the index before it asked; the branches stay as they were"
	case "stash.pop", "stash.drop":
		return "git had taken the entry off the list before it asked; `git show refs/stash` still shows it"
	case "reset.commit":
		return "unless it was --soft, git had written the index before it asked; the branch stays as it was"
	}
	return ""
}

// block is what stands on stderr.
func (s subject) block(st *guard.SessionState) string {
	block := s.verdict.Block(st)
	if s.late == "" {
		return block
	}
	return strings.Replace(block, "superqode: refused:", "superqode: not prevented:", 1) +
		"  what happened: " + s.late + "\n"
}

// reported says whether this very attempt was refused already: git from 2.54 on
// runs the hook that the configuration names and the one in the folder, and each
// has to say no.
func (a *answer) reported(at guard.Attempt) bool {
	if at.Process == 0 || gitVersion(a.st).Before(versionConfigHooks) {
		return false
	}
	data, err := os.ReadFile(a.st.LogPath())
	if err != nil {
		return false
	}
	list, _ := guard.ParseAttempts(data)
	return slices.ContainsFunc(list[max(len(list)-8, 0):], func(b guard.Attempt) bool {
		return b.Process == at.Process && b.Operation == at.Operation && b.Layer == at.Layer && !b.Allowed &&
			time.Since(b.At) < time.Minute
	})
}

// refuse stops what a program does; a person goes on.
func (i *installedCall) refuse(a *answer, s subject) int {
	caller := 0
	if p, ok := a.caller(); ok {
		caller = p.PID
	}
	person, why := AtTerminal(caller, a.Env)
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
	b.WriteString(s.block(nil))
	switch {
	case person:
		b.WriteString("  who: the guard of this repository is strict, it stops people too\n")
	default:
		fmt.Fprintf(&b, "  who: %s, so it counts as a program; the user does it in a terminal\n", why)
	}
	fmt.Fprintf(&b, "  a person, in a terminal, can let one through: superqode guard allow --once %s\n",
		s.verdict.Operation)
	_, _ = io.WriteString(a.Err, b.String()) // perhaps nobody listens
	switch {
	case s.late == "":
		i.note(a, s)
	case s.verdict.Operation == "push":
		return 0 // else the remote-tracking branch would not say what is there
	}
	return exitRefused
}

// maxAttempts bounds the log of an installation, in bytes.
const maxAttempts = 1 << 20

// note writes the refused attempt down, for guard status. A log that cannot be
// written, or is full, changes nothing.
func (i *installedCall) note(a *answer, s subject) {
	path := filepath.Join(i.state, installation.AttemptsFile)
	if st, err := os.Lstat(path); err == nil && st.Size() > maxAttempts || i.in.Helper == "" {
		return
	}
	at := guard.Attempt{Operation: s.verdict.Operation, Command: s.verdict.Command, Layer: guard.LayerHooks,
		Dir: superqode.HostPath(a.Dir), Process: s.pid, At: time.Now().UTC()}
	if err := at.Append(path); err != nil {
		fmt.Fprintf(a.Err, "superqode: this attempt could not be written down: %v\n", err)
	}
}
