// Package doctor is the command that checks git, the file system, the kernel and what earlier sessions left.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Cmd checks what superqode needs and what it would like to have.
type Cmd struct {
	Fix bool `help:"Repair what can be repaired."`
	Yes bool `short:"y" help:"With --fix: do not ask before anything is written outside of superqode's own folder."`
}

// The results of one check. A missing ability that has a substitute is a note,
// not a warning.
const (
	ok   = "ok"
	note = "note"
	warn = "warn"
	fail = "fail"
	done = "done" // with --fix: repaired
)

// check is one line of doctor's answer.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

// failed is a check that an error ended.
func failed(name, status string, err error) check {
	return check{name, status, err.Error(), superqode.Hint(err)}
}

// all lists the checks in the order in which they are printed.
func (c *Cmd) all() []func(context.Context, *app.App) []check {
	return []func(context.Context, *app.App) []check{
		platform, gitAndOrigin, homeFolder, confinement, c.overlays, processes, limits, terminal, c.leftovers, sessions,
	}
}

// Run prints every check; a failed one makes the exit code 1.
func (c *Cmd) Run(ctx context.Context, a *app.App) error {
	var checks []check
	for _, each := range c.all() {
		checks = append(checks, each(ctx, a)...)
	}
	bad := slices.ContainsFunc(checks, func(c check) bool { return c.Status == fail })
	if a.Flags.JSON {
		if err := a.PrintFields("ok", !bad, "checks", checks); err != nil {
			return err
		}
	} else {
		color := map[string]string{ok: term.Green, note: term.Cyan, warn: term.Yellow, fail: term.Red, done: term.Green}
		for _, c := range checks {
			status := a.PaintOut(fmt.Sprintf("%-4s", c.Status), color[c.Status])
			fmt.Fprintf(a.Out, "%s %-12s %s\n", status, c.Name, text.Printable(c.Detail))
			if c.Remedy != "" {
				fmt.Fprintf(a.Out, "     %-12s → %s\n", "", text.Printable(c.Remedy))
			}
		}
	}
	if bad {
		return app.StatusError(app.ExitFailure)
	}
	return nil
}

func platform(_ context.Context, a *app.App) []check {
	c := check{"platform", ok, fmt.Sprintf("superqode %s, %s/%s", a.BuildVersion(), runtime.GOOS, runtime.GOARCH), ""}
	if runtime.GOOS != "linux" {
		c.Status = note
		c.Detail += ": no kernel layer (Landlock) and no cgroups; " +
			"a process that leaves its session group is found by its environment only"
		c.Remedy = "to have these, use Linux, for example in a container"
	}
	return []check{c}
}

func gitAndOrigin(ctx context.Context, a *app.App) []check {
	g, err := git.Find(ctx, a.Env, a.Avoid()...)
	if err != nil {
		return []check{failed("git", fail, err)}
	}
	found := fmt.Sprintf("%s, version %s (required: %s)", g.Bin, g.Version, git.MinVersion)
	return []check{{"git", ok, found, ""}, origin(ctx, a, g)}
}

func origin(ctx context.Context, a *app.App, g *git.Git) check {
	repo, err := g.Discover(ctx, a.Flags.Repo)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return check{
			"origin", note, a.Flags.Repo + " is not in a git repository: worktree mode is not available here",
			"git init, or superqode -C DIR … with a repository",
		}
	case err != nil:
		return failed("origin", fail, err)
	case repo.Bare:
		bare := repo.GitDir + " is a bare repository without a work tree"
		return check{"origin", note, bare, "git clone it, and work in the clone"}
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return failed("origin", fail, err)
	}
	if head == "" {
		return check{
			"origin", note, repo.TopLevel + " has no commit yet: worktree mode is not available here",
			"git commit, or superqode run --snapshot -- CMD",
		}
	}
	return check{"origin", ok, fmt.Sprintf("%s at %.12s (%s)", repo.TopLevel, head, repo.ObjectFormat), ""}
}

// homeFolder checks that the folder of all sessions is there, ours and writable.
func homeFolder(_ context.Context, a *app.App) []check {
	home, err := life.HomeDir(a.Flags.Home, a.Env)
	if err != nil {
		return []check{failed("home", fail, err)}
	}
	c := check{"home", ok, home, ""}
	st, err := os.Stat(home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.Detail += " (will be created when needed)"
	case err != nil:
		c = check{"home", fail, err.Error(), "superqode --home DIR …"}
	case !st.IsDir():
		c = check{"home", fail, home + " is not a directory", "superqode --home DIR …"}
	case st.Mode().Perm()&0o022 != 0:
		open := fmt.Sprintf("%s is writable by others (%v)", home, st.Mode().Perm())
		c = check{"home", warn, open, "chmod go-w " + text.Quote(home)}
	}
	return append([]check{c}, fileSystem(app.ExistingParent(home), a.Flags.Repo)...)
}

// confinement tries the guard's kernel layer on a program in a scratch folder, for
// a workspace of its own and for a session in place.
func confinement(ctx context.Context, a *app.App) []check {
	helper := ""
	if m, err := a.Sessions(); err == nil {
		helper, _ = layers.MachineOf(m.Host).Helper() // a session does without it, too
	}
	apart, inPlace, err := kernel.Probe(ctx, a.TempDir(), helper)
	if err != nil {
		return []check{{"kernel layer", note, fmt.Sprintf("not tried: %v", err), ""}}
	}
	does := "a session's program cannot write to the origin"
	if apart.Network != "" {
		does += "; --no-network is " + apart.Network
	}
	checks := []check{kernelCheck("kernel layer", does, apart)}
	if !apart.Applied {
		return checks
	}
	does = "with git_snapshot and shared, .git is read-only for the program"
	checks = append(checks, kernelCheck("in place", does, inPlace))
	if apart.By == kernel.Landlock && hasBubblewrap(a) {
		checks = append(checks, check{
			"bubblewrap", note, "cannot start under the kernel layer, which denies mounts: " +
				"a program that brings its own sandbox fails in a session",
			"superqode run --enforce off -- CMD, for a program that needs its own sandbox",
		})
	}
	return checks
}

func kernelCheck(name, does string, l kernel.Layer) check {
	if l.Active() {
		return check{name, ok, fmt.Sprintf("%s, tried (%s)", does, strings.Join(append([]string{l.By}, l.Missing...), "; ")), ""}
	}
	remedy := ""
	if !l.Applied {
		remedy = "Linux 6.2 or newer with landlock in the lsm= list"
	}
	return check{name, note, strings.TrimPrefix(l.State, "unavailable: "), remedy}
}

// hasBubblewrap looks in the caller's PATH.
func hasBubblewrap(a *app.App) bool {
	return slices.ContainsFunc(filepath.SplitList(a.Getenv("PATH")), func(dir string) bool {
		st, err := os.Stat(filepath.Join(dir, "bwrap"))
		return err == nil && filepath.IsAbs(dir) && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	})
}

// limits finds out how each limit on a program would be enforced here.
func limits(context.Context, *app.App) []check {
	c := check{Name: "limits", Status: ok}
	var held []string
	for _, one := range []struct {
		name string
		runner.Limits
	}{
		{"memory", runner.Limits{Memory: 1 << 30}}, {"pids", runner.Limits{Pids: 100}},
		{"cpu_time", runner.Limits{CPUTime: 1e9}}, {"disk", runner.Limits{Disk: 1 << 30, DiskFolders: []string{"/"}}},
	} {
		list, err := runner.CheckLimits(one.Limits)
		if err != nil {
			c.Status = note
			c.Remedy = "give superqode a writable cgroup, for example: systemd-run --user --scope superqode …"
			held = append(held, one.name+" not available")
			continue
		}
		held = append(held, one.name+" by "+list[0].By)
	}
	c.Detail = strings.Join(held, ", ")
	return []check{c}
}

func terminal(_ context.Context, a *app.App) []check {
	if !a.OutTTY {
		return []check{{"terminal", note, "stdout is not a terminal: no colours, and tables are not cut", ""}}
	}
	color := "no colours"
	if a.OutColor {
		color = "colours"
	}
	detail := fmt.Sprintf("TERM=%s, %d columns, %s", a.Getenv("TERM"), a.TerminalWidth(), color)
	return []check{{"terminal", ok, detail, ""}}
}

// leftovers names what earlier commands left in the home and, with --fix, repairs
// it. Without a home, which homeFolder reports, there are none.
func (c *Cmd) leftovers(ctx context.Context, a *app.App) []check {
	m, err := a.Sessions()
	if err != nil {
		return nil
	}
	found, err := m.Collector().Fix(ctx, !c.Fix)
	var checks []check
	for _, f := range found {
		one := check{"state", warn, f.What, "superqode doctor --fix"}
		switch {
		case f.Err != nil:
			one.Status, one.Detail, one.Remedy = fail, fmt.Sprintf("%s: %v", f.What, f.Err), superqode.Hint(f.Err)
		case c.Fix:
			one.Status, one.Detail, one.Remedy = done, f.What+": "+f.Done, ""
		}
		checks = append(checks, one)
	}
	if err != nil {
		return append(checks, failed("state", fail, err))
	}
	if len(found) == 0 {
		checks = append(checks, check{"state", ok, "nothing was left behind", ""})
	}
	return checks
}

// sessions counts the sessions of this origin, and names the broken ones.
func sessions(ctx context.Context, a *app.App) []check {
	m, err := a.Sessions()
	if err != nil {
		return nil
	}
	list, broken, err := m.List(ctx, a.Flags.Repo, true)
	if err != nil {
		return []check{failed("sessions", warn, err)}
	}
	var checks []check
	dead := 0
	for _, s := range list {
		if s.Dead {
			dead++
		}
	}
	for _, b := range broken {
		detail := fmt.Sprintf("session %s: %v", b.ID, b.Err)
		checks = append(checks, check{"sessions", warn, detail, superqode.Hint(b.Err)})
	}
	if _, err := m.Gone(a.Flags.Repo); err != nil {
		checks = append(checks, failed("sessions", warn, err))
	}
	counts := fmt.Sprintf("%d known, %d died, %d broken", len(list)+len(broken), dead, len(broken))
	return append(checks, check{"sessions", ok, counts, ""})
}
