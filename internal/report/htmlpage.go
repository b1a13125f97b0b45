package report

import (
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// page is what the template shows. Everything in it that came from a session is
// either a plain string, which the template escapes, or went through writeText.
type page struct {
	artifacts.Report
	CSS template.CSS
	JS  template.JS
	CSP string

	Title     string
	Verdict   string
	Outcome   string
	Command   string
	Duration  string
	Facts     []fact
	Checks    []check
	Notes     []notes
	Files     []fileView
	Tree      []*treeNode
	FilesMore int
	Agents    []agentView
	Added     int
	Removed   int
	Patch     template.URL
	Findings  []findingView
	Times     []event
	Commands  []command
	LastWords string // the end of the output of a program that failed
	LastBy    string // the agent that it was, or ""
	Artifacts []artifactView
	Runs      []outputView
	Setup     []outputView
	BaseText  string
	FinalText string
}

type fact struct{ Name, Value string }

// check is one claim of the report with how it was checked. State is good, bad or
// none.
type check struct{ State, Claim, How string }

type notes struct {
	Title string
	List  []string
	More  int
}

type findingView struct {
	artifacts.Finding
	Anchor string // of the path's diff, or ""
	Sure   string // the confidence, or ""
}

type blockedView struct{ Operation, Line, Layer, At, Agent string }

type artifactView struct {
	ID, Type, Path, Size, SHA256 string
	Link                         template.URL
}

// outputView is one program's output, or one step of the setup.
type outputView struct {
	Title, State, Facts, Output string
	Bad                         bool
}

type agentView struct {
	Name, Command, State, Workspace string
	Changes                         int
	Bad                             bool
	Conflicts                       []string
	Patch, Log                      template.URL
}

// maxAgentCommands bounds how many agents have a command of their own.
const maxAgentCommands = 8

// maxRowsTable bounds each table of the page; the JSON report has every row.
const maxRowsTable = 500

func newPage(rep artifacts.Report, opt HTMLOptions) *page {
	if opt.Root == "" {
		opt.Root = ".."
	}
	p := &page{
		Report: rep, Title: "superqode report " + rep.SessionID.String(), Verdict: string(rep.Verdict), Command: text.Clip(text.QuoteLine(rep.Run.Command...), maxShownCommand),
		Duration: text.Took(rep.DurationSeconds),
	}
	p.Outcome = fmt.Sprintf("exit code %d", rep.Run.ExitCode)
	if rep.Run.TimedOut {
		p.Outcome += ", timed out"
	}
	if len(rep.Run.Command) == 0 {
		p.Command, p.Outcome = "no program ran", "not run"
	}
	p.BaseText, p.FinalText = digest(rep.Base.Digest), digest(rep.Final.Digest)
	for _, c := range rep.Changes {
		p.Added, p.Removed = p.Added+max(c.LinesAdded, 0), p.Removed+max(c.LinesRemoved, 0)
	}
	p.Facts = facts(rep)
	p.Checks = checks(rep)
	p.Notes = noteLists(rep)
	p.Commands = commandsOf(rep)
	p.LastWords, p.LastBy = lastWords(rep)
	p.Times = timeLine(rep)
	p.fillFiles(opt)
	p.fillFindings()
	p.fillRuns(opt)
	for _, a := range rep.Run.Artifacts[:min(len(rep.Run.Artifacts), maxRowsTable)] {
		p.Artifacts = append(p.Artifacts, artifactView{a.ID, string(a.Type), a.Path.String(), text.Size(a.Size), a.SHA256, link(opt.Root, a.Path.String())})
	}
	return p
}

// fillFiles makes the views of the changed paths from the report's changes, and
// from the patches what changed in them.
func (p *page) fillFiles(opt HTMLOptions) {
	parts, files := map[string][]filePatch{}, map[string]template.URL{}
	whole := slices.ContainsFunc(opt.Patches, func(x Patch) bool { return x.Agent == "" })
	for _, patch := range opt.Patches {
		if whole && patch.Agent != "" {
			continue
		}
		for _, part := range parsePatch(patch.Data) {
			parts[part.name] = append(parts[part.name], part)
			files[part.name] = link(opt.Root, patch.Path)
		}
		p.Patch = link(opt.Root, patch.Path)
	}
	d := &differ{
		code: newCoder(opt.Quick), mask: opt.Mask, rows: maxRows, open: maxOpenRows, files: maxOpenFiles,
		findings: map[string][]artifacts.Finding{},
	}
	for _, f := range p.Report.Findings {
		d.findings[f.File] = append(d.findings[f.File], f)
	}
	changes := slices.Clone(p.Changes)
	slices.SortStableFunc(changes, func(a, b superqode.Change) int { return compareTree(a.Path.String(), b.Path.String()) })
	by := agentsByPath(p.Report)
	for i, c := range changes {
		if i == maxFiles {
			p.FilesMore = len(changes) - maxFiles
			break
		}
		v := d.view(i+1, c, parts[c.Path.String()])
		v.Agents, v.Patch = by[v.Path], files[v.Path]
		p.Files = append(p.Files, v)
	}
	p.Tree = tree(p.Files)
}

// agentsByPath says which agents changed each path.
func agentsByPath(rep artifacts.Report) map[string][]string {
	by := map[string][]string{}
	add := func(c superqode.Change, agent superqode.AgentID) {
		if name := agent.String(); name != "" && !slices.Contains(by[c.Path.String()], name) {
			by[c.Path.String()] = append(by[c.Path.String()], name)
		}
	}
	for _, c := range rep.Changes {
		add(c, c.Agent)
	}
	for _, a := range rep.Run.Agents {
		for _, c := range a.Changes {
			add(c, a.Agent)
		}
	}
	return by
}

// AgentNames lists who changed something, for the filter.
func (p *page) AgentNames() []string {
	var names []string
	for _, f := range p.Files {
		for _, a := range f.Agents {
			if !slices.Contains(names, a) {
				names = append(names, a)
			}
		}
	}
	slices.Sort(names)
	return names
}

// BlockedRows are the rows of the table of refused operations.
func (p *page) BlockedRows() []blockedView {
	var out []blockedView
	for _, b := range p.Guard.Blocked[:min(len(p.Guard.Blocked), maxRowsTable)] {
		out = append(out, blockedView{b.Operation, text.QuoteLine(b.Command...), b.Layer, moment(b.At), b.Agent.String()})
	}
	return out
}

func (p *page) fillFindings() {
	anchors := map[string]string{}
	for _, f := range p.Files {
		anchors[f.Path] = f.ID
	}
	order := artifacts.Severities()
	list := slices.Clone(p.Report.Findings)
	slices.SortStableFunc(list, func(a, b artifacts.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	for _, f := range list[:min(len(list), maxRowsTable)] {
		v := findingView{Finding: f, Anchor: anchors[f.File]}
		if f.Confidence != nil {
			v.Sure = fmt.Sprintf("%.2f", *f.Confidence)
		}
		p.Findings = append(p.Findings, v)
	}
}

func facts(rep artifacts.Report) []fact {
	list := []fact{
		{"Session", rep.SessionID.String()},
		{"Mode", string(rep.Mode) + ", " + string(rep.Run.State)},
		{"Started", moment(rep.StartedAt)},
		{"Ended", moment(rep.EndedAt)},
		{"Origin", rep.Run.Origin},
	}
	if rep.Base.Head != "" {
		list = append(list, fact{"Commit", rep.Base.Head})
	}
	if len(rep.Metadata.RolesUsed) > 0 {
		list = append(list, fact{"Agents", strings.Join(rep.Metadata.RolesUsed, ", ")})
	}
	if rep.Run.Workspace.Preserved {
		list = append(list, fact{"Workspace kept", rep.Run.Workspace.Path})
	}
	if c := rep.Coverage; c.Before != nil || c.After != nil {
		list = append(list, fact{"Coverage", percent(c.Before) + " → " + percent(c.After)})
	}
	if rep.Confidence != nil {
		list = append(list, fact{"Confidence", fmt.Sprintf("%.2f, the mean of what the findings state", *rep.Confidence)})
	}
	return list
}

func percent(v *float64) string {
	if v == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.1f %%", *v)
}

func noteLists(rep artifacts.Report) []notes {
	var out []notes
	for _, n := range []notes{
		{Title: "Errors", List: rep.Run.Errors}, {Title: "Warnings", List: rep.Run.Warnings},
		{Title: "Not as before after the revert", List: rep.Revert.Differences}, {Title: "Differences in the origin", List: rep.OriginCheck.Differences},
	} {
		if len(n.List) > maxRowsTable {
			n.More, n.List = len(n.List)-maxRowsTable, n.List[:maxRowsTable]
		}
		if len(n.List) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// fillRuns shows what ran: setup, commands and agents, with their output.
func (p *page) fillRuns(opt HTMLOptions) {
	for _, s := range p.Run.Setup {
		v := outputView{Title: s.Name, State: strings.ReplaceAll(s.State, "_", " "), Output: s.Output, Bad: strings.HasSuffix(s.State, "failed")}
		v.Facts = join(s.Kind, text.Took(s.DurationSeconds), s.Reason)
		if s.Kind == "run" && s.ExitCode != 0 {
			v.Facts = join(fmt.Sprintf("exit code %d", s.ExitCode), v.Facts)
		}
		p.Setup = append(p.Setup, v)
	}
	for _, c := range p.Run.Commands {
		v := outputView{Title: text.QuoteLine(c.Command...), State: fmt.Sprintf("exit code %d", c.ExitCode), Output: c.Output, Bad: c.ExitCode != 0 || c.TimedOut}
		v.Facts = join(c.Agent.String(), text.Took(c.DurationSeconds), text.Size(c.OutputBytes)+" of output")
		if c.TimedOut {
			v.State = "timed out"
		}
		if c.Limit != "" {
			v.Facts = join(v.Facts, "ended by the limit on "+strings.ReplaceAll(c.Limit, "_", " "))
		}
		if c.Truncated {
			v.Facts = join(v.Facts, "the log was cut")
		}
		p.Runs = append(p.Runs, v)
	}
	for _, a := range p.Run.Agents {
		v := agentView{
			Name: a.Agent.String(), Command: a.Command, State: fmt.Sprintf("exit code %d", a.ExitCode), Changes: len(a.Changes), Bad: a.ExitCode != 0 || a.TimedOut || len(a.Conflicts) > 0,
			Conflicts: a.Conflicts,
		}
		if a.TimedOut {
			v.State = "timed out"
		}
		v.State = join(v.State, text.Took(a.DurationSeconds))
		if a.Workspace.Preserved {
			v.Workspace = a.Workspace.Path
		}
		if a.Patch != "" {
			v.Patch = link(opt.Root, path.Clean(a.Patch))
		}
		if a.Log != "" {
			v.Log = link(opt.Root, path.Clean(a.Log))
		}
		p.Agents = append(p.Agents, v)
	}
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
