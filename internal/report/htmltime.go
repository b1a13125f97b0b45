package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// event is one line of the time line.
type event struct {
	At    time.Time
	Clock string
	After string // since the session began
	Kind  string // open, setup, run, block, change or end
	Text  string
	Agent string
}

// maxEvents bounds the time line.
const maxEvents = 300

// timeLine puts in order what the report has times of.
func timeLine(rep artifacts.Report) []event {
	var list []event
	add := func(at artifacts.Time, kind, agent, format string, args ...any) {
		if !at.IsZero() {
			list = append(list, event{At: at.UTC(), Kind: kind, Agent: agent, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(rep.StartedAt, "open", "", "session opened in %s mode", rep.Mode)
	for _, s := range rep.Run.Setup {
		add(s.StartedAt, "setup", "", "setup: %s", s.Name)
	}
	for _, c := range rep.Run.Commands {
		add(c.StartedAt, "run", c.Agent.String(), "started %s", text.QuoteLine(c.Command...))
		add(after(c.StartedAt, c.DurationSeconds), "run", c.Agent.String(), "ended with exit code %d: %s", c.ExitCode, text.QuoteLine(c.Command...))
	}
	for _, a := range rep.Run.Agents {
		add(a.StartedAt, "run", a.Agent.String(), "agent started: %s", a.Command)
		add(after(a.StartedAt, a.DurationSeconds), "run", a.Agent.String(), "agent ended with exit code %d", a.ExitCode)
	}
	for _, b := range rep.Guard.Blocked {
		add(b.At, "block", b.Agent.String(), "refused by the %s: %s", b.Layer, text.QuoteLine(b.Command...))
	}
	for _, c := range rep.Changes {
		if !c.FirstSeen.IsZero() {
			add(artifacts.At(c.FirstSeen), "change", c.Agent.String(), "first seen as %s: %s", c.Type, c.Path)
		}
	}
	add(rep.EndedAt, "end", "", "session ended: %s", rep.Run.State)
	slices.SortStableFunc(list, func(a, b event) int { return a.At.Compare(b.At) })
	if len(list) > maxEvents {
		cut := event{At: list[maxEvents].At, Kind: "change", Text: fmt.Sprintf("%d more events, which the JSON report has", len(list)-maxEvents)}
		list = append(list[:maxEvents-1:maxEvents-1], cut, list[len(list)-1])
	}
	for i := range list {
		e := &list[i]
		e.Text = text.Clip(e.Text, 500)
		e.Clock = e.At.Format("15:04:05.000")
		if !rep.StartedAt.IsZero() {
			e.After = "+" + text.Took(max(0, e.At.Sub(rep.StartedAt.Time).Seconds()))
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
