package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/text"
)

func length(list any) int { return reflect.ValueOf(list).Len() }

// words are the functions that every template has. bound is how many rows of a list
// it shows. None of them makes a string harmless.
func words(bound int) map[string]any {
	return map[string]any{
		"first": func(list any) any { return reflect.ValueOf(list).Slice(0, min(length(list), bound)).Interface() },
		"over":  func(list any) int { return max(0, length(list)-bound) },
		"quote": func(args []string) string { return text.QuoteLine(args...) },
		"took":  text.Took, "clip": text.Clip, "size": text.Size, "moment": moment, "digest": digest,
		"percent": percent, "join": join, "names": strings.Join,
		"score":  func(v *float64) string { return fmt.Sprintf("%.2f", *v) },
		"plural": func(n any, noun string) string { return text.Plural(int(reflect.ValueOf(n).Int()), noun) },
		"mode":   modeChange, "lines": lineCount, "held": held, "counts": findingCounts, "changed": ChangeSize,
		"why": whyRefused, "place": where,
		"spaced": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	}
}

// inWords says the verdict as a person would. Secrets in the patch and conflicts are
// no part of the verdict, and somebody must look at them.
func (v *View) inWords() (artifacts.Verdict, string) {
	s := v.Summary.BySeverity
	list := []string{}
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			list = append(list, one)
		case n > 1:
			list = append(list, fmt.Sprintf(many, n))
		}
	}
	if v.Verdict == artifacts.VerdictFail && v.Run.ExitCode != 0 && len(v.Run.Agents) == 0 {
		list = append(list, v.Outcome)
	}
	for _, a := range v.Run.Agents {
		if a.TimedOut || a.ExitCode != 0 {
			list = append(list, fmt.Sprintf("exit code %d of %s", a.ExitCode, a.Agent))
		}
	}
	add(s.Critical, "1 critical finding", "%d critical findings")
	add(s.High, "1 high finding", "%d high findings")
	if v.Verdict != artifacts.VerdictPass {
		add(s.Medium, "1 medium finding", "%d medium findings")
	}
	add(v.Conflicts, "1 conflict", "%d conflicts")
	secrets := 0
	for _, w := range v.Run.Warnings {
		if strings.HasPrefix(w, redact.PatchHolds) {
			secrets++
		}
	}
	add(secrets, "a secret in the patch", "%d secrets in the patch")
	all := strings.Join(list, ", ")
	switch {
	case v.Verdict == artifacts.VerdictFail:
		return v.Verdict, "Failed: " + all
	case v.Verdict == artifacts.VerdictBlocked:
		return v.Verdict, v.Explanation
	case all == "":
		return v.Verdict, strings.TrimSuffix(v.Explanation, ".")
	}
	return artifacts.VerdictConditional, "Needs a look: " + all
}

// where is where a finding is, as a person writes it.
func where(f artifacts.Finding) string {
	if f.Lines == nil || f.Lines.Start != f.Lines.End {
		return f.Location()
	}
	return fmt.Sprintf("%s:%d", f.File, f.Lines.Start)
}

// whyRefused is why the guard's policy denies an operation.
func whyRefused(op string) string {
	if info, ok := guard.Operation(op).Info(); ok && info.Default == guard.Deny {
		return info.Why
	}
	return "the configuration denies it"
}

func moment(t artifacts.Time) string {
	if t.IsZero() {
		return "not known"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func digest(d superqode.Digest) string {
	if d.IsZero() {
		return "not taken"
	}
	return d.String()
}

func percent(v *float64) string {
	if v == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.1f %%", *v)
}

// join is the parts that are not empty, in one line.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// modeChange is how a path's mode changed, "" where it did not.
func modeChange(c superqode.Change) string {
	if o, n := superqode.FormatMode(c.OldMode), superqode.FormatMode(c.NewMode); o != n && o != "" && n != "" {
		return o + " → " + n
	}
	return ""
}

// lineCount is a number of lines of a change, "" where they were not counted.
func lineCount(c superqode.Change, n int) string {
	switch {
	case c.Binary:
		return "bin"
	case n < 0:
		return ""
	}
	return fmt.Sprint(n)
}

// ChangeSize says how much of a path changed.
func ChangeSize(c superqode.Change) string {
	switch {
	case c.Binary:
		return "(binary)"
	case c.Type == superqode.ChangeMode:
		return fmt.Sprintf("%s → %s", superqode.FormatMode(c.OldMode), superqode.FormatMode(c.NewMode))
	case c.LinesAdded < 0 || c.LinesRemoved < 0:
		return ""
	}
	return fmt.Sprintf("+%d -%d", c.LinesAdded, c.LinesRemoved)
}

// held says in Markdown how a check ended. A check that neither held nor found
// anything was not made.
func held(good string, ok bool, differences []string) string {
	switch {
	case len(differences) > 0:
		return fmt.Sprintf("**NOT %s**: %s", good, text.Plural(len(differences), "difference"))
	case ok:
		return good
	}
	return "not checked"
}

func findingCounts(s artifacts.Summary) string {
	suppressed := ""
	if s.Suppressed > 0 {
		suppressed = fmt.Sprintf("%d suppressed", s.Suppressed)
	}
	return cmp.Or(join(s.BySeverity.Text(), suppressed), "none")
}
