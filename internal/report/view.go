package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// View is a report as people look at it: the facts, and in words what they come
// to. The terminal's summary, Markdown, a workflow step's summary and the HTML page
// are templates over it. Its strings are data of the session: each template makes
// them harmless where it shows them, and bounds its lists.
type View struct {
	artifacts.Report
	Title          string            // the session's name, or the command line
	Tone           artifacts.Verdict // the verdict; where it is pass and somebody must look all the same, conditional
	Said           string            // the verdict in words
	Conflicts      int
	Line           string // the program's command line, quoted; "" where none ran
	Outcome        string // how it ended
	Took           string
	Added, Removed int    // lines
	Patch          string // the session's patch, below qe-artifacts; "" where there is none
	Page           string // the report for people, likewise
	InPlace        bool   // the program worked in the origin itself
	Stays          bool   // what it changed is in the origin: it was applied, or left there
	Checks         []Check
	Notes          []Note
	Sorted         []artifacts.Finding // the findings, worst first
	LastWords      string              // the end of the output of the last program that failed
	LastBy         string              // the agent that it was, or ""
	Next           []Command
}

// Check is one claim of a report with how it was checked. State is good, bad or
// none: what was not checked is said to be so.
type Check struct{ State, Claim, How string }

// Note is a list of texts under a title.
type Note struct {
	Title string
	List  []string
}

// Command is a line to paste. On says who shows it: t the terminal, m Markdown, h
// the page, + the page below its other commands.
type Command struct{ About, Line, On string }

// Caller is how commands name superqode and the session.
type Caller struct {
	Self string // "superqode -C <origin>" where it is empty
	Name string // of the session, "" for none
	Dir  string // where the reader stands, "" where that is not known
}

// NewView makes the view of a report.
func NewView(rep artifacts.Report, by Caller) *View {
	v := &View{Report: rep, Took: text.Took(rep.DurationSeconds), Outcome: fmt.Sprintf("exit code %d", rep.Run.ExitCode)}
	v.InPlace = rep.Run.Workspace.Path != "" && rep.Run.Workspace.Path == rep.Run.Origin
	v.Stays = rep.Applied.Done() || rep.Revert.Method == "none"
	if len(rep.Run.Command) > 0 {
		v.Line = text.QuoteLine(rep.Run.Command...)
	} else {
		v.Outcome = "not run"
	}
	if rep.Run.TimedOut {
		v.Outcome += ", timed out"
	}
	for _, c := range rep.Changes {
		v.Added, v.Removed = v.Added+max(c.LinesAdded, 0), v.Removed+max(c.LinesRemoved, 0)
	}
	v.Patch, v.Page = KeyArtifacts(rep.SessionID, rep.Run.Artifacts)
	var agents []string
	for _, a := range rep.Run.Agents {
		agents = append(agents, a.Agent.String())
		v.Conflicts += len(a.Conflicts)
	}
	if v.Conflicts > 0 && rep.Run.ExitCode == 0 && !rep.Run.TimedOut {
		v.Outcome = text.Plural(v.Conflicts, "conflict") // the programs' 0 is not what the process ends with
	}
	v.Title = cmp.Or(by.Name, strings.Join(agents, ", "), v.Line, "no program ran")
	v.Tone, v.Said = v.inWords()
	v.Checks = v.checks()
	v.Notes = []Note{
		{"Errors", rep.Run.Errors}, {"Warnings", rep.Run.Warnings},
		{"Not as before after the revert", rep.Revert.Differences},
		{"Differences in the origin", rep.OriginCheck.Differences},
		{"Not covered by the check of the origin", rep.OriginCheck.NotCovered},
	}
	v.Notes = slices.DeleteFunc(v.Notes, func(n Note) bool { return len(n.List) == 0 })
	order := artifacts.Severities()
	v.Sorted = slices.Clone(rep.Findings)
	slices.SortStableFunc(v.Sorted, func(a, b artifacts.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	v.LastWords, v.LastBy = lastWords(rep)
	v.next(by)
	return v
}

// KeyArtifacts finds a session's patch and its report for people among its
// artifacts, paths below qe-artifacts; "" for one that is not there.
func KeyArtifacts(id superqode.SessionID, list []artifacts.Ref) (patch, page string) {
	for _, r := range list {
		switch path := r.Path.String(); {
		case path == artifacts.SessionPatch(id): // and not one that the program left
			patch = path
		case path == artifacts.ReportFile(id, "html"), path == artifacts.ReportFile(id, "md") && page == "":
			page = path
		}
	}
	return patch, page
}

// ShortID is the part of the session's id that people type.
func (v *View) ShortID() string {
	id := v.SessionID.String()
	return id[strings.LastIndexByte(id, '-')+1:]
}

// Uncollected reports whether nobody knows what the session changed.
func (v *View) Uncollected() bool { return v.Final.Digest.IsZero() }

// checks lists what the session claims. The check of the origin comes first.
func (v *View) checks() []Check {
	list := []Check{v.originCheck(), v.revertCheck(), v.guardCheck()}
	switch a := v.Applied; {
	case a.Done():
		list = append(list, Check{"good", "The changes are in your files", a.Text()})
	case a != nil:
		list = append(list, Check{"bad", "The changes are not in your files", a.Text()})
	}
	if v.Uncollected() {
		list = append(list, Check{"none", "The final state has no digest", "it was not taken"})
	} else {
		how := "SHA-256 over the path, kind, permission bits and content of every entry; a new file above 100 MiB is not read"
		list = append(list, Check{"good", "Base and final state have a digest each", how})
	}
	if f := v.VerifiedFixes; f != nil && f.Total > 0 {
		state := "good"
		if f.Verified < f.Total {
			state = "none"
		}
		claim := fmt.Sprintf("%d of %s verified", f.Verified, text.Plural(f.Total, "tried fix"))
		how := "each applied in a session of its own, the tests run before and after"
		list = append(list, Check{state, claim, how})
	}
	return list
}

func (v *View) originCheck() Check {
	c := v.OriginCheck
	others := "every other file of the repositories"
	if !v.InPlace && v.Guard.Kernel.Layer == "mounts" {
		others += " (of loose objects, those that changed since)"
	}
	how := "files, index, HEAD, refs, stash, configuration, hooks and " + others + " compared with how they were before the session"
	if c.Method == "kernel+stat" {
		how += "; mounts kept all of it from the session's programs"
	}
	if len(c.NotCovered) > 0 {
		how += "; not covered: " + text.Plural(len(c.NotCovered), "thing")
	}
	switch {
	case c.Unchanged && len(c.NotCovered) > 0:
		return Check{"good", "Your files are unchanged, as far as they were checked", how}
	case c.Unchanged && v.Applied.Done():
		return Check{"good", "Your files were unchanged before the apply", how}
	case c.Unchanged:
		return Check{"good", "Your files are unchanged", how}
	case len(c.Differences) > 0:
		how += ": " + text.Plural(len(c.Differences), "difference")
		return Check{"bad", "Your files are NOT as they were", how}
	}
	return Check{"none", "Whether your files are unchanged was not checked", ""}
}

func (v *View) revertCheck() Check {
	how := map[string]string{
		"stat": "every entry compared by its metadata, and by content where that differs",
		"full": "every byte read again",
	}[v.Revert.Method]
	switch {
	case v.Revert.Verified && v.InPlace:
		return Check{"good", "Your repository was brought back", how}
	case v.Revert.Verified:
		return Check{"good", "The workspace is gone", "looked for after it was removed"}
	case len(v.Revert.Differences) > 0:
		differ := text.Plural(len(v.Revert.Differences), "path") + " differ"
		return Check{"bad", "Not everything was brought back", differ}
	case v.Run.Workspace.Preserved && !v.InPlace:
		return Check{"none", "The workspace is kept", "it was not removed, so nothing was reverted"}
	case v.Revert.Method == "none":
		how = "the session worked on your files and left its changes there, as asked for"
		return Check{"none", "Nothing was brought back", how}
	}
	return Check{"none", "The revert was not checked", ""}
}

func (v *View) guardCheck() Check {
	active, not := Layers(v.Guard.Layers)
	how := "each layer was probed while the session began"
	if len(not) > 0 {
		how += "; not active: " + strings.Join(not, ", ")
	}
	switch len(active) {
	case 0:
		return Check{"none", "No guard layer was active", strings.Join(not, ", ")}
	case 1:
		return Check{"good", "The guard's " + active[0] + " layer was active", how}
	}
	return Check{"good", "The guard's layers " + strings.Join(active, ", ") + " were active", how}
}

// Layers names the guard's layers that were active, and the others with their
// states.
func Layers(l artifacts.Layers) (active, not []string) {
	for _, l := range []struct{ name, state string }{{"shim", l.Shim}, {"hooks", l.Hooks}, {"kernel", l.Kernel}} {
		switch l.state {
		case "active":
			active = append(active, l.name)
		case "":
			not = append(not, l.name+" not known")
		default:
			not = append(not, l.name+" "+l.state)
		}
	}
	return active, not
}

// maxAgentCommands bounds how many agents have a command of their own.
const maxAgentCommands = 8

// next lists the commands that apply, take back or look at what the session did.
func (v *View) next(by Caller) {
	origin, id := v.Run.Origin, v.ShortID()
	self := cmp.Or(by.Self, text.QuoteLine("superqode", "-C", origin))
	add := func(on, about string, args ...string) {
		v.Next = append(v.Next, Command{about, text.QuoteLine(args...), on})
	}
	own := func(on, about, group, command string, args ...string) {
		words := append([]string{group, command, "--session", id}, args...)
		v.Next = append(v.Next, Command{about, self + " " + text.QuoteLine(words...), on})
	}
	patch := path.Join(".superqode", "qe-artifacts", artifacts.SessionPatch(v.SessionID))
	if v.NotBroughtBack() {
		own("h", "Bring your repository back to how it was", "workspace", "revert")
	}
	if len(v.Changes) > 0 {
		own("tmh", "See the changes", "workspace", "diff")
		switch {
		case v.NotBroughtBack(): // they are in the files, and must go first
		case v.Stays:
			add("h", "Take the changes out of your files again", "git", "-C", origin, "apply", "-R", patch)
		default:
			about := "Bring the changes into your files: all of them or none, merged where your files moved on"
			own("tmh", about, "workspace", "apply")
			own("+", "Only look whether they would go in", "workspace", "apply", "--check")
			if v.Patch != "" { // a change of permissions that git does not know has none
				about = "The same by git alone, where your files are as they were"
				if by.Dir == origin {
					add("t", about, "git", "apply", patch)
				} else {
					add("tm+", about, "git", "-C", origin, "apply", patch)
				}
				add("+", "Take them out again afterwards", "git", "-C", origin, "apply", "-R", patch)
			}
		}
	}
	for _, a := range v.Run.Agents[:min(len(v.Run.Agents), maxAgentCommands)] {
		who := a.Agent.String()
		if len(a.Conflicts) > 0 {
			own("h", "See what "+who+" changed, which could not all be merged", "workspace", "diff", "--agent", who)
		}
		if len(a.Changes) > 0 && len(v.Run.Agents) > 1 && !v.Stays {
			own("+", "Bring in only what "+who+" changed", "workspace", "apply", "--agent", who)
		}
	}
	for _, s := range v.Revert.Salvages {
		line := self + " " + text.QuoteLine("workspace", "restore", s)
		v.Next = append(v.Next, Command{"Get what was overwritten or removed in your files, whoever had put it there", line, "tmh"})
	}
	if v.Summary.TotalFindings > 0 {
		own("t", "See the findings", "finding", "list")
	}
	if v.Commits != nil {
		own("t", "Bring the commits onto your branch", "workspace", "apply", "--commits")
	}
	if v.Run.Workspace.Preserved {
		if v.Run.Workspace.Inside == "" {
			add("tmh", "Go to the kept workspace", "cd", v.Run.Workspace.Path)
		} else {
			own("tmh", "Go to the kept workspace", "workspace", "shell")
		}
		own("tmh", "End the session and remove its workspace", "workspace", "end")
		own("+", "Bring the kept workspace back to its beginning", "workspace", "revert")
	}
	check := Command{"Check that the files this session left are as recorded", self + " artifacts verify", "m+"}
	v.Next = append(v.Next, check)
}

// NotBroughtBack reports whether the origin should have been brought back and was
// not.
func (v *View) NotBroughtBack() bool {
	return v.InPlace && !v.Revert.Verified && v.Revert.Method != "none"
}

// Commands returns the next commands that one of the letters of on shows.
func (v *View) Commands(on string) []Command {
	return slices.DeleteFunc(slices.Clone(v.Next), func(c Command) bool { return !strings.ContainsAny(c.On, on) })
}

// maxLastLines is how many lines of output stand beside a failure.
const maxLastLines = 8

// lastWords returns the end of what the last program that failed printed, and the
// agent that it was.
func lastWords(rep artifacts.Report) (words, agent string) {
	for _, c := range slices.Backward(rep.Run.Commands) {
		if c.ExitCode == 0 && !c.TimedOut {
			continue
		}
		lines := strings.Split(strings.TrimSpace(c.Output), "\n")
		lines = lines[max(0, len(lines)-maxLastLines):]
		for i, l := range lines {
			lines[i] = text.Clip(l, 300)
		}
		return strings.Join(lines, "\n"), c.Agent.String()
	}
	return "", ""
}

// Event is one line of the time line.
type Event struct {
	At    time.Time
	Clock string
	After string // since the session began
	Kind  string // open, setup, run, block, change or end
	Text  string
	Agent string
}

// maxEvents bounds the time line.
const maxEvents = 300

// Times puts in order what the report has times of.
func (v *View) Times() []Event {
	var list []Event
	add := func(at artifacts.Time, kind, agent, format string, args ...any) {
		if !at.IsZero() {
			list = append(list, Event{At: at.UTC(), Kind: kind, Agent: agent, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(v.StartedAt, "open", "", "session opened in %s mode", v.Mode)
	for _, s := range v.Run.Setup {
		add(s.StartedAt, "setup", "", "setup: %s", s.Name)
	}
	for _, c := range v.Run.Commands {
		line, ended := text.QuoteLine(c.Command...), after(c.StartedAt, c.DurationSeconds)
		add(c.StartedAt, "run", c.Agent.String(), "started %s", line)
		add(ended, "run", c.Agent.String(), "ended with exit code %d: %s", c.ExitCode, line)
	}
	for _, a := range v.Run.Agents {
		add(a.StartedAt, "run", a.Agent.String(), "agent started: %s", a.Command)
		add(after(a.StartedAt, a.DurationSeconds), "run", a.Agent.String(), "agent ended with exit code %d", a.ExitCode)
	}
	for _, b := range v.Guard.Blocked {
		add(b.At, "block", b.Agent.String(), "refused by the %s: %s", b.Layer, text.QuoteLine(b.Command...))
	}
	for _, c := range v.Changes {
		if !c.FirstSeen.IsZero() {
			add(artifacts.At(c.FirstSeen), "change", c.Agent.String(), "first seen as %s: %s", c.Type, c.Path)
		}
	}
	add(v.EndedAt, "end", "", "session ended: %s", v.Run.State)
	slices.SortStableFunc(list, func(a, b Event) int { return a.At.Compare(b.At) })
	if len(list) > maxEvents {
		more := fmt.Sprintf("%d more events, which the JSON report has", len(list)-maxEvents)
		cut := Event{At: list[maxEvents].At, Kind: "change", Text: more}
		list = append(list[:maxEvents-1:maxEvents-1], cut, list[len(list)-1])
	}
	for i := range list {
		e := &list[i]
		e.Text = text.Clip(e.Text, 500)
		e.Clock = e.At.Format("15:04:05.000")
		if !v.StartedAt.IsZero() {
			e.After = "+" + text.Took(max(0, e.At.Sub(v.StartedAt.Time).Seconds()))
		}
	}
	return list
}

func after(t artifacts.Time, seconds float64) artifacts.Time {
	if t.IsZero() || seconds <= 0 {
		return artifacts.Time{}
	}
	return artifacts.At(t.Add(time.Duration(seconds * float64(time.Second))))
}
