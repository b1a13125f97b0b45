package demo

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/text"
)

// demoScript does what nobody wants a program to do. Each line that it prints is
// an exit code and what was tried.
const demoScript = `# An unruly program. What it does is real; it is superqode that it does not get far.
git=$1
try() { "$@" >&2 </dev/null; printf '%s %s\n' "$?" "$*"; }
edit() { echo '// mine' >> cart.go; }
fill() { echo 'all mine' > README.md; echo 'new' > mine.txt; }
try edit
try fill
try git commit -am 'mine now'
try "$git" commit --no-verify -am 'mine now'
try git reset --hard
try git clean -fdx
try git stash
try git push --force
try rm cart.go notes.txt
try rm -rf .git
`

// A demoStep is one thing that the script tried. Outcome is refused, where nothing
// happened, or undone, where it happened and is gone.
type demoStep struct {
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Outcome  string `json:"outcome"`
	By       string `json:"by"` // the guard's layer that refused, or what undid it
}

// demoSteps reads what the script told, and finds what refused.
func demoSteps(out string, res *artifacts.Result) []demoStep {
	undone := "the work tree was thrown away"
	if mode.Of(res.Mode).InPlace {
		undone = "brought back from the first snapshot"
	}
	names := map[string]string{"edit": "edit cart.go", "fill": "overwrite README.md, add mine.txt"}
	steps := []demoStep{}
	for line := range strings.Lines(out) {
		code, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(code)
		if err != nil {
			continue
		}
		if full, ok := names[what]; ok {
			what = full
		}
		s := demoStep{Command: what, ExitCode: n, Outcome: "undone", By: undone}
		if layer := refusedBy(what, res.Guard.Blocked); n != 0 && layer != "" {
			s.Outcome, s.By = "refused", "the guard: "+layer
		} else if n != 0 {
			s.Outcome, s.By = "refused", "the kernel: "+kernelWord(res.Guard.Layers.Kernel)
		}
		steps = append(steps, s)
	}
	return steps
}

func kernelWord(state string) string {
	if state == "active" {
		return "read-only"
	}
	return state
}

// refusedBy returns the layer that refused a git command, or "".
func refusedBy(what string, blocked []artifacts.Blocked) string {
	i := slices.IndexFunc(blocked, func(b artifacts.Blocked) bool {
		return strings.HasSuffix(what, strings.Join(b.Command[min(1, len(b.Command)):], " "))
	})
	if i < 0 {
		return ""
	}
	return blocked[i].Layer
}

// check notes what is not as promised.
func (d *demo) check(act *demoAct, res *artifacts.Result) {
	if len(act.Steps) != strings.Count(demoScript, "\ntry ") {
		d.problem("in %s mode the script reported %d steps", act.Mode, len(act.Steps))
	}
	for _, s := range act.Steps {
		if strings.Contains(s.Command, "git ") && !strings.HasPrefix(s.Command, "rm ") && s.Outcome != "refused" {
			d.problem("in %s mode %q was not refused", act.Mode, s.Command)
		}
	}
	if !act.Unchanged {
		d.problem("in %s mode the repository was changed", act.Mode)
	}
	if !res.Revert.Verified {
		d.problem("in %s mode the revert was not verified", act.Mode)
	}
	if !res.OriginCheck.Unchanged {
		d.problem("in %s mode: %s", act.Mode, strings.Join(res.OriginCheck.Differences, "; "))
	}
}

func (d *demo) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// say prints for people; with --json and -q there is none of it.
func (d *demo) say(format string, args ...any) {
	if !d.a.Flags.JSON && !d.a.Flags.Quiet {
		fmt.Fprintf(d.a.Out, format, args...)
	}
}

// show prints one act.
func (d *demo) show(act *demoAct, res *artifacts.Result) {
	for _, s := range act.Steps {
		color := term.Green
		if s.Outcome == "undone" {
			color = term.Cyan
		}
		outcome := d.a.PaintOut(fmt.Sprintf("%-7s", s.Outcome), color)
		d.say("  %s  %s %s\n", outcome, term.CutRight(text.Printable(s.Command), 34), s.By)
	}
	verdict := d.a.PaintOut("the same", term.Green)
	if !act.Unchanged {
		verdict = d.a.PaintOut("NOT the same", term.Red)
	}
	d.say("  before   %s\n  after    %s  %s\n", short(act.Before), short(act.After), verdict)
	d.say("  kept     %s in a patch: %s\n", report.CountChanges(res), text.QuotePath(relTo(d.dir, act.Patch)))
	d.say("  report   %s\n", text.QuotePath(act.Report))
}

// curtain says how it ended and what can be looked at.
func (d *demo) curtain(out demoJSON) {
	switch {
	case !out.OK:
		return
	case out.Kept:
		d.say("\n%s The folder is left to look at:\n", d.a.PaintOut("Everything as promised.", term.Green))
		d.say("  superqode -C %s --home %s workspace diff --session %s\n",
			text.Quote(d.repo), text.Quote(d.home()), app.ShortID(out.Acts[0].SessionID))
		d.say("  rm -rf %s\n", text.Quote(d.dir))
	default:
		d.say("\n%s The folder is removed again; superqode demo --keep leaves it, with the reports.\n",
			d.a.PaintOut("Everything as promised.", term.Green))
	}
}

func relTo(dir, path string) string { return strings.TrimPrefix(path, dir+"/") }

func short(digest superqode.Digest) string {
	s := digest.String()
	return s[:min(len(s), 27)]
}

func sumOf(s string) superqode.Digest { return superqode.NewDigest(sha256.Sum256([]byte(s))) }
