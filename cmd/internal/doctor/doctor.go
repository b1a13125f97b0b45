// Package doctor is the command that checks git, the file system, the kernel and what earlier sessions left.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// Cmd checks what superqode needs and what it would like to have.
type Cmd struct {
	Fix bool `help:"Repair what can be repaired."`
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
func (c *Cmd) Run(ctx context.Context, a *app.App) error {
	checks := []check{checkPlatform(a)}
	checks = append(checks, checkGit(ctx, a)...)
	home, err := session.HomeDir(a.Flags.Home, a.Env)
	if err != nil {
		checks = append(checks, check{"home", checkFail, err.Error(), superqode.Hint(err)})
	} else {
		checks = append(checks, checkHome(home)...)
		checks = append(checks, checkFileSystem(existingParent(home), a.Flags.Repo)...)
	}
	checks = append(checks, checkConfinement(ctx, a)...)
	checks = append(checks, checkProcesses(), checkLimits())
	checks = append(checks, checkTerminal(a))
	if err == nil {
		checks = append(checks, checkState(ctx, a, c.Fix)...)
		checks = append(checks, checkSessions(ctx, a)...)
	}
	return printChecks(a, checks)
}

func printChecks(a *app.App, checks []check) error {
	failed := false
	for _, c := range checks {
		failed = failed || c.Status == checkFail
	}
	if a.Flags.JSON {
		if err := a.PrintJSON(doctorJSON{1, !failed, checks}); err != nil {
			return err
		}
	} else {
		color := map[string]string{checkOK: term.Green, checkNote: term.Cyan, checkWarn: term.Yellow, checkFail: term.Red, checkDone: term.Green}
		for _, c := range checks {
			fmt.Fprintf(a.Out, "%s %-12s %s\n", a.PaintOut(fmt.Sprintf("%-4s", c.Status), color[c.Status]), c.Name, text.Printable(c.Detail))
			if c.Remedy != "" {
				fmt.Fprintf(a.Out, "     %-12s → %s\n", "", text.Printable(c.Remedy))
			}
		}
	}
	if failed {
		return app.StatusError(app.ExitFailure)
	}
	return nil
}

func checkPlatform(a *app.App) check {
	c := check{"platform", checkOK, fmt.Sprintf("superqode %s, %s/%s", a.BuildVersion(), runtime.GOOS, runtime.GOARCH), ""}
	if runtime.GOOS != "linux" {
		c.Status = checkNote
		c.Detail += ": no kernel layer (Landlock), no cgroups, and a process that leaves its session group is found by its environment only"
		c.Remedy = "for these, use Linux, for example in a container"
	}
	return c
}

func checkGit(ctx context.Context, a *app.App) []check {
	g, err := git.Find(ctx, a.Env)
	if err != nil {
		return []check{{"git", checkFail, err.Error(), superqode.Hint(err)}}
	}
	checks := []check{{"git", checkOK, fmt.Sprintf("%s, version %s (needed: %s)", g.Bin, g.Version, git.MinVersion), ""}}
	repo, err := g.Discover(ctx, a.Flags.Repo)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return append(checks, check{"origin", checkNote, a.Flags.Repo + " is not in a git repository: worktree mode cannot be used here", "git init, or superqode -C DIR … with a repository"})
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
		return append(checks, check{"origin", checkNote, repo.TopLevel + " has no commit yet: worktree mode cannot be used here", "git commit, or superqode run --snapshot -- CMD"})
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

func checkTerminal(a *app.App) check {
	if !a.OutTTY {
		return check{"terminal", checkNote, "stdout is not a terminal: no colours, tables are not cut", ""}
	}
	color := "no colours"
	if a.OutColor {
		color = "colours"
	}
	return check{"terminal", checkOK, fmt.Sprintf("TERM=%s, %d columns, %s", a.Getenv("TERM"), a.TerminalWidth(), color), ""}
}

// checkSessions names what earlier sessions left behind.
func checkSessions(ctx context.Context, a *app.App) []check {
	m, err := a.Sessions()
	if err != nil {
		return []check{{"sessions", checkFail, err.Error(), superqode.Hint(err)}}
	}
	sessions, broken, err := registry.List(ctx, m.Host, a.Flags.Repo, true)
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
