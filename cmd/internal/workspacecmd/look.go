// Package workspacecmd has the commands that look at sessions, bring their changes into the origin or
// take them back, and clean up.
package workspacecmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/radar"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// guardInfoJSON is the guard of a session in workspace info.
type guardInfoJSON struct {
	Layers artifacts.Layers `json:"layers"`
	Off    bool             `json:"allow_git_operations"`
}

// guardLine tells in one line what guards a session.
func guardLine(r state.Record) string {
	if r.Guard.Off {
		return "off (--allow-git-operations)"
	}
	l := r.Layers()
	line := fmt.Sprintf("shim %s; hooks %s; kernel %s", l.Shim, l.Hooks, l.Kernel)
	if r.Guard.Policy != "" {
		line += "; policy " + r.Guard.Policy
	}
	return text.Printable(line)
}

// List lists sessions.
type List struct {
	All       bool `short:"a" help:"List the sessions of every origin."`
	Conflicts bool `help:"Search every open workspace for changes that would conflict, not only where that is cheap."`
}

type listedJSON struct {
	SessionID superqode.SessionID `json:"session_id"`
	Name      string              `json:"name"`
	Mode      superqode.Mode      `json:"mode"`
	State     superqode.State     `json:"state"`
	Alive     bool                `json:"alive"`
	Dead      bool                `json:"dead"`
	Pinned    bool                `json:"pinned"`
	CreatedAt time.Time           `json:"created_at"`
	Changes   *int                `json:"changes"` // null while nobody counted
	AgentID   superqode.AgentID   `json:"agent_id"`
	Agents    []superqode.AgentID `json:"agents"` // of a session of several
	Origin    state.HostPath      `json:"origin"`
	Workspace app.WorkspaceJSON   `json:"workspace"`
	// Conflicts are changes that could not be merged with another open session's
	// or, of a session of several agents, with another agent's; only in a list.
	Conflicts []radar.Conflict `json:"conflicts,omitempty"`
}

type brokenJSON struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Error     string `json:"error"`
}

// Run prints a table, newest first. Sessions whose files are broken are named on
// stderr and do not hide the others.
func (c *List) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	sessions, broken, err := registry.List(ctx, m.Host, a.Flags.Repo, c.All)
	if err != nil {
		return err
	}
	for _, b := range broken {
		a.Warn(fmt.Sprintf("session %s: %v", b.ID, b.Err))
	}
	conflicts, err := c.conflicts(ctx, a, sessions)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return printList(a, sessions, broken, conflicts)
	}
	rows := app.Rows(sessions, func(s state.Listed) []string {
		exit := "-"
		if s.ExitCode != nil {
			exit = strconv.Itoa(*s.ExitCode)
		}
		return []string{
			a.SessionName(s.ID, s.Name), stateWord(s), exit, lineCount(s.ChangeCount, false), text.Age(time.Since(s.CreatedAt)),
			string(s.Mode), text.Printable(strings.Join(s.Command, " ")),
		}
	})
	header := []string{"SESSION", "STATE", "EXIT", "CHANGES", "AGE", "MODE", "COMMAND"}
	if err := a.Table(header, rows); err != nil || len(conflicts) == 0 {
		return err
	}
	return errors.Join(a.Line(""), printConflicts(a, conflicts))
}

// conflicts asks the radar; of every origin only where that was asked for.
func (c *List) conflicts(ctx context.Context, a *app.App, sessions []state.Listed) ([]radar.Conflict, error) {
	if !c.All {
		list, _, err := radar.Listed(ctx, a.Manager.Host, a.Flags.Repo, sessions, c.Conflicts)
		return list, err
	}
	var all []radar.Conflict
	byOrigin := map[state.HostPath][]state.Listed{}
	for _, s := range sessions {
		byOrigin[s.Origin] = append(byOrigin[s.Origin], s)
	}
	for origin, of := range byOrigin {
		if !c.Conflicts || len(of) < 2 {
			continue
		}
		list, _, err := radar.Listed(ctx, a.Manager.Host, string(origin), of, true)
		if err != nil {
			a.Warn(fmt.Sprintf("%s cannot be searched for conflicts: %v", origin, err))
			continue
		}
		all = append(all, list...)
	}
	return all, nil
}

func printList(a *app.App, sessions []state.Listed, broken []state.Broken, conflicts []radar.Conflict) error {
	var list []listedJSON
	for _, s := range sessions {
		j := toJSON(s)
		j.Conflicts = radar.ConflictsOf(conflicts, s.ID)
		list = append(list, j)
	}
	var bad []brokenJSON
	for _, b := range broken {
		bad = append(bad, brokenJSON{b.ID, b.Dir, b.Err.Error()})
	}
	return a.PrintFields("sessions", list, "broken", bad, "conflicts", conflicts)
}

func toJSON(s state.Listed) listedJSON {
	j := listedJSON{
		SessionID: s.ID, Name: s.Name, Mode: s.Mode, State: s.State, Alive: s.Alive, Dead: s.Dead, Pinned: s.Pinned,
		CreatedAt: s.CreatedAt, AgentID: s.Agent, Agents: []superqode.AgentID{}, Origin: s.Origin,
		Workspace: app.WorkspaceOf(&s.Record),
	}
	for _, g := range s.Agents {
		j.Agents = append(j.Agents, g.Agent)
	}
	if s.ChangeCount >= 0 {
		j.Changes = &s.ChangeCount
	}
	return j
}

// stateWord adds what the state does not tell: that the process died, and that
// cleanup spares the session.
func stateWord(s state.Listed) string {
	word := string(s.State)
	if s.Dead {
		word = "died"
	}
	if s.Pinned {
		word += ", pinned"
	}
	return word
}

// Info shows one session.
type Info struct{ app.LastFlag }

type infoJSON struct {
	SchemaVersion int `json:"schema_version"`
	listedJSON
	Base     any      `json:"base"`
	Guard    any      `json:"guard"`
	Setup    any      `json:"setup"`
	Command  []string `json:"command"`
	ExitCode *int     `json:"exit_code"`
	Warnings []string `json:"warnings"`
}

// Run counts the changes as they are now.
func (c *Info) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if l.State == superqode.StateActive || l.State == superqode.StatePreserved {
		var err error
		if l.ChangeCount, err = countNow(ctx, a.Manager, l); err != nil {
			a.Warn(fmt.Sprintf("the changes cannot be counted: %v", err))
		}
	}
	steps, err := program.SetupSteps(l.Dir)
	if err != nil {
		a.Warn(fmt.Sprintf("what came of the setup cannot be read: %v", err))
	}
	if a.Flags.JSON {
		return a.PrintJSON(infoJSON{
			1, toJSON(*l), l.Base, guardInfoJSON{l.Layers(), l.Guard.Off}, app.SetupJSON(steps),
			l.Command, l.ExitCode, l.Warnings,
		})
	}
	w := bufio.NewWriter(a.Out)
	line := func(key, value string) { fmt.Fprintf(w, "%-11s%s\n", key+":", value) }
	line("Session", l.ID.String())
	if l.Name != "" {
		line("Name", text.Printable(l.Name))
	}
	line("Workspace", text.QuotePath(string(l.Workspace)))
	if l.Inside() != l.Workspace {
		line("Seen at", text.QuotePath(string(l.Inside())))
	}
	line("Mode", string(l.Mode))
	line("Created", fmt.Sprintf("%s (%s ago)", l.CreatedAt.Format(time.RFC3339), text.Age(time.Since(l.CreatedAt))))
	line("Changes", lineCount(l.ChangeCount, false))
	line("Status", stateWord(*l))
	line("Guard", guardLine(l.Record))
	line("Base", fmt.Sprintf("%s, commit %s", l.Base.Digest, cmp.Or(l.Base.Head, "-")))
	line("Origin", text.QuotePath(string(l.Origin)))
	for _, st := range steps {
		line("Setup", fmt.Sprintf("%s: %s %s", app.ActionWord(st.State), st.Kind, text.Printable(st.Name)))
	}
	for _, warning := range l.Warnings {
		line("Warning", text.Printable(warning))
	}
	return w.Flush()
}

// countNow compares the workspace with the base.
func countNow(ctx context.Context, m *life.Manager, l *state.Listed) (int, error) {
	s, err := m.Attach(ctx, string(l.Origin), l.ID.String())
	if err != nil {
		return -1, err
	}
	defer s.Close()
	changes, err := s.Changes(ctx)
	if err != nil {
		return -1, err
	}
	return len(changes), nil
}

// Changes lists changes.
type Changes struct {
	app.LastFlag
	Agent superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"Limit to this agent's changes."`
}

// Run prints one row, or with --json one object a line, for each change.
func (c *Changes) Run(ctx context.Context, a *app.App, s *life.Session) error {
	find := s.Changes
	if agent := c.Agent; !agent.IsZero() {
		find = func(ctx context.Context) ([]superqode.Change, error) { return s.AgentChanges(ctx, agent) }
	}
	changes, err := find(ctx)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		w := bufio.NewWriter(a.Out)
		for _, c := range changes {
			if err := term.WriteJSON(w, c); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	if len(changes) == 0 {
		a.Note("no changes")
		return nil
	}
	rows := app.Rows(changes, func(c superqode.Change) []string {
		seen := "-"
		if !c.FirstSeen.IsZero() {
			seen = c.FirstSeen.Local().Format("15:04:05")
		}
		path := text.QuotePath(c.Path.String())
		if !c.OldPath.IsZero() {
			path = text.QuotePath(c.OldPath.String()) + " → " + path
		}
		added, removed := lineCount(c.LinesAdded, c.Binary), lineCount(c.LinesRemoved, c.Binary)
		who := cmp.Or(agentNames(c.Agents), c.Agent.String(), "-")
		return []string{string(c.Type), added, removed, who, seen, path}
	})
	return a.Table([]string{"TYPE", "ADDED", "REMOVED", "AGENT", "SEEN", "PATH"}, rows)
}

func agentNames(list []superqode.AgentID) string {
	names := make([]string, len(list))
	for i, id := range list {
		names[i] = id.String()
	}
	return strings.Join(names, ",")
}

// lineCount prints a number as git's numstat does; below zero it is not known.
func lineCount(n int, binary bool) string {
	if binary || n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// Diff prints a session's patch.
type Diff struct {
	app.LastFlag
	Stat  bool              `help:"Print a diffstat instead of the patch."`
	Hunks bool              `help:"Number the hunks for workspace apply --hunk (always on a terminal)."`
	Agent superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"Limit to this agent's changes."`
	Paths []string          `arg:"" optional:"" name:"path" sep:"none" help:"Limit to these files and folders; no patterns."`
}

// Run prints the patch as git would: exact bytes into a file or a pipe, made
// safe and coloured on a terminal.
func (c *Diff) Run(ctx context.Context, a *app.App, s *life.Session) error {
	rec := s.Record()
	paths, err := rec.Pathspecs(a.Flags.Repo, c.Paths)
	if err != nil {
		return err
	}
	opt := attach.DiffOptions{Stat: c.Stat, Agent: c.Agent, Paths: paths}
	diff := s.Diff
	if (c.Hunks || a.OutTTY) && !c.Stat {
		diff = s.DiffNumbered
	}
	out := &term.PipeWriter{W: a.Out}
	if !a.OutTTY && !a.OutColor {
		return out.Cause(diff(ctx, out, opt))
	}
	w := bufio.NewWriter(out)
	p := &term.PatchWriter{W: w, Color: a.OutColor && !c.Stat}
	err = diff(ctx, p, opt)
	return out.Cause(errors.Join(err, p.Close(), w.Flush()))
}

// Path prints where a session works.
type Path struct{ app.SessionFlag }

// Run prints one line.
func (c *Path) Run(ctx context.Context, a *app.App, l *state.Listed) error {
	if l.State == superqode.StateDone {
		return superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", l.ID)
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", l.ID, "workspace", app.WorkspaceOf(&l.Record))
	}
	return a.Line("%s", a.Path(string(l.Workspace)))
}

// Pin keeps cleanup away from a session.
type Pin struct{ app.SessionFlag }

// Run prints nothing but a note.
func (c *Pin) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	return pin(ctx, a, m, c.Ref(a), true)
}

// Unpin lets cleanup at it again.
type Unpin struct{ app.SessionFlag }

// Run prints nothing but a note.
func (c *Unpin) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	return pin(ctx, a, m, c.Ref(a), false)
}

func pin(ctx context.Context, a *app.App, m *life.Manager, ref string, pinned bool) error {
	id, err := registry.Pin(ctx, m.Host, a.Flags.Repo, ref, pinned)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", id, "pinned", pinned)
	}
	if pinned {
		a.Note("%s is pinned: cleanup will not remove it", id)
	} else {
		a.Note("%s is no longer pinned", id)
	}
	return nil
}
