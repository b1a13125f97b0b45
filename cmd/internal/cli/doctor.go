package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// doctorCmd checks what superqode needs and what it would like to have.
type doctorCmd struct {
	Fix bool `help:"Put right what can be put right."`
}

// The results of one check. A missing ability that has a substitute is a note,
// not a warning.
const (
	checkOK   = "ok"
	checkNote = "note"
	checkWarn = "warn"
	checkFail = "fail"
	checkDone = "done" // with --fix: put right
)

// check is one line of doctor's answer.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

type doctorJSON struct {
	SchemaVersion int     `json:"schema_version"`
	OK            bool    `json:"ok"`
	Checks        []check `json:"checks"`
}

// Run prints every check; a failed one makes the exit code 1.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	checks := []check{a.checkPlatform()}
	checks = append(checks, a.checkGit(ctx)...)
	home, err := session.HomeDir(a.flags.Home, a.Env)
	if err != nil {
		checks = append(checks, check{"home", checkFail, err.Error(), superqode.Hint(err)})
	} else {
		checks = append(checks, checkHome(home)...)
		checks = append(checks, checkFileSystem(existingParent(home), a.flags.Repo)...)
	}
	checks = append(checks, a.checkConfinement(ctx)...)
	checks = append(checks, checkProcesses(), checkLimits())
	checks = append(checks, a.checkTerminal())
	if err == nil {
		checks = append(checks, a.checkState(ctx, c.Fix)...)
		checks = append(checks, a.checkSessions(ctx)...)
	}
	return a.printChecks(checks)
}

func (a *app) printChecks(checks []check) error {
	failed := false
	for _, c := range checks {
		failed = failed || c.Status == checkFail
	}
	if a.flags.JSON {
		if err := a.printJSON(doctorJSON{1, !failed, checks}); err != nil {
			return err
		}
	} else {
		color := map[string]string{checkOK: green, checkNote: cyan, checkWarn: yellow, checkFail: red, checkDone: green}
		for _, c := range checks {
			fmt.Fprintf(a.Out, "%s %-12s %s\n", a.paintOut(fmt.Sprintf("%-4s", c.Status), color[c.Status]), c.Name, text.Printable(c.Detail))
			if c.Remedy != "" {
				fmt.Fprintf(a.Out, "     %-12s → %s\n", "", text.Printable(c.Remedy))
			}
		}
	}
	if failed {
		return statusError(exitFailure)
	}
	return nil
}

func (a *app) checkPlatform() check {
	c := check{"platform", checkOK, fmt.Sprintf("superqode %s, %s/%s", a.version(), runtime.GOOS, runtime.GOARCH), ""}
	if runtime.GOOS != "linux" {
		c.Status = checkNote
		c.Detail += ": no kernel layer (Landlock), no cgroups, and a process that leaves its session group is found by its environment only"
		c.Remedy = "for these, use Linux, for example in a container"
	}
	return c
}

func (a *app) checkGit(ctx context.Context) []check {
	g, err := git.Find(ctx, a.Env)
	if err != nil {
		return []check{{"git", checkFail, err.Error(), superqode.Hint(err)}}
	}
	checks := []check{{"git", checkOK, fmt.Sprintf("%s, version %s (needed: %s)", g.Bin, g.Version, git.MinVersion), ""}}
	repo, err := g.Discover(ctx, a.flags.Repo)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return append(checks, check{"origin", checkNote, a.flags.Repo + " is not in a git repository: worktree mode can not be used here", "git init, or superqode -C DIR … with a repository"})
	case err != nil:
		return append(checks, check{"origin", checkFail, err.Error(), superqode.Hint(err)})
	case repo.Bare:
		return append(checks, check{"origin", checkNote, repo.GitDir + " is a bare repository: there is no work tree to work on", "git clone it, and work in the clone"})
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return append(checks, check{"origin", checkFail, err.Error(), superqode.Hint(err)})
	}
	if head == "" {
		return append(checks, check{"origin", checkNote, repo.TopLevel + " has no commit yet: worktree mode can not be used here", "git commit, or superqode run --snapshot -- CMD"})
	}
	return append(checks, check{"origin", checkOK, fmt.Sprintf("%s at %.12s (%s)", repo.TopLevel, head, repo.ObjectFormat), ""})
}

// checkHome asks whether the folder of all sessions is there, ours and writable.
func checkHome(home string) []check {
	st, err := os.Stat(home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []check{{"home", checkOK, home + " (is made when it is needed)", ""}}
	case err != nil:
		return []check{{"home", checkFail, err.Error(), "superqode --home DIR …"}}
	case !st.IsDir():
		return []check{{"home", checkFail, home + " is not a directory", "superqode --home DIR …"}}
	case st.Mode().Perm()&0o022 != 0:
		return []check{{"home", checkWarn, fmt.Sprintf("%s can be written by others (%v)", home, st.Mode().Perm()), "chmod go-w " + home}}
	}
	return []check{{"home", checkOK, home, ""}}
}

// existingParent returns path or the nearest folder above it that exists.
func existingParent(path string) string {
	for path != filepath.Dir(path) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

func (a *app) checkTerminal() check {
	if !a.outTTY {
		return check{"terminal", checkNote, "stdout is not a terminal: no colours, tables are not cut", ""}
	}
	color := "no colours"
	if a.outColor {
		color = "colours"
	}
	return check{"terminal", checkOK, fmt.Sprintf("TERM=%s, %d columns, %s", a.getenv("TERM"), a.terminalWidth(), color), ""}
}

// checkSessions names what earlier sessions left behind.
func (a *app) checkSessions(ctx context.Context) []check {
	m, err := a.sessions()
	if err != nil {
		return []check{{"sessions", checkFail, err.Error(), superqode.Hint(err)}}
	}
	sessions, broken, err := m.List(ctx, a.flags.Repo, true)
	if err != nil {
		return []check{{"sessions", checkWarn, err.Error(), superqode.Hint(err)}}
	}
	checks := []check{}
	dead := 0
	for _, s := range sessions {
		if s.Dead {
			dead++
		}
	}
	for _, b := range broken {
		checks = append(checks, check{"sessions", checkWarn, fmt.Sprintf("session %s: %v", b.ID, b.Err), "look at " + b.Dir + " and move it away"})
	}
	return append(checks, check{"sessions", checkOK, fmt.Sprintf("%d known, %d died, %d broken", len(sessions)+len(broken), dead, len(broken)), ""})
}
