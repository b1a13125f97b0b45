package report

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// command is a line to paste. More means that it is not the first thing to do.
type command struct {
	About, Line string
	More        bool
}

// commandsOf gives the commands that apply, take back or look at what the session
// did, with its ids filled in.
func commandsOf(rep artifacts.Report) []command {
	var list []command
	add := func(about string, args ...string) {
		list = append(list, command{about, text.QuoteLine(args...), false})
	}
	more := func(about string, args ...string) { list = append(list, command{about, text.QuoteLine(args...), true}) }
	id, origin := rep.SessionID.String(), rep.Run.Origin
	sq := func(args ...string) []string { return append([]string{"superqode", "-C", origin}, args...) }
	patch := filepath.Join(origin, ".superqode", "qe-artifacts", filepath.FromSlash(artifacts.SessionPatch(rep.SessionID)))
	stays := rep.Applied.Done() || rep.Revert.Method == "none"
	if rep.Mode == superqode.ModeGitSnapshot && !rep.Revert.Verified && rep.Revert.Method != "none" {
		add("Bring your repository back to how it was", sq("workspace", "revert", "--session", id)...)
	}
	if len(rep.Changes) > 0 {
		add("See the changes", sq("workspace", "diff", "--session", id)...)
		if stays {
			add("Take the changes out of your files again", "git", "-C", origin, "apply", "-R", patch)
		} else {
			add("Bring the changes into your files: all of them or none, merged where your files moved on", sq("workspace", "apply", "--session", id)...)
			more("Only look whether they would go in", sq("workspace", "apply", "--check", "--session", id)...)
			more("The same by git alone, where your files are as they were", "git", "-C", origin, "apply", patch)
			more("Take them out again afterwards", "git", "-C", origin, "apply", "-R", patch)
		}
	}
	for _, a := range rep.Run.Agents[:min(len(rep.Run.Agents), maxAgentCommands)] {
		if len(a.Conflicts) > 0 {
			add("See what "+a.Agent.String()+" changed, which could not all be merged", sq("workspace", "diff", "--session", id, "--agent", a.Agent.String())...)
		}
		if len(a.Changes) > 0 && len(rep.Run.Agents) > 1 && !stays {
			more("Bring in only what "+a.Agent.String()+" changed", sq("workspace", "apply", "--session", id, "--agent", a.Agent.String())...)
		}
	}
	if rep.Run.Workspace.Preserved {
		add("Go to the kept workspace", "cd", rep.Run.Workspace.Path)
		add("End the session and remove its workspace", sq("workspace", "end", "--session", id)...)
		more("Bring the kept workspace back to its beginning", sq("workspace", "revert", "--session", id)...)
	}
	more("Check that the files this session left are as recorded", sq("artifacts", "verify")...)
	return list
}

// MoreCommands counts the commands that are folded.
func (p *page) MoreCommands() (n int) {
	for _, c := range p.Commands {
		if c.More {
			n++
		}
	}
	return n
}

// maxShownCommand is how much of the command stands at the top, in bytes; the
// output's title has more.
const maxShownCommand = 600

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
