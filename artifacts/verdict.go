package artifacts

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is what a report says in one word.
type Verdict string

// The verdicts, worst first. Blocked means that the session could not be judged.
const (
	VerdictBlocked     Verdict = "blocked"
	VerdictFail        Verdict = "fail"
	VerdictConditional Verdict = "conditional"
	VerdictPass        Verdict = "pass"
)

// UnmarshalText accepts the verdicts' names only.
func (v *Verdict) UnmarshalText(b []byte) error {
	switch t := Verdict(b); t {
	case VerdictBlocked, VerdictFail, VerdictConditional, VerdictPass:
		*v = t
		return nil
	}
	return fmt.Errorf("%q is not a verdict", b)
}

// maxMedium is how many medium findings a pass may have.
const maxMedium = 3

// judge sets the verdict, by the first rule that holds, and what follows from it:
//
//	any error                          blocked
//	any critical finding               fail
//	the program failed                 fail
//	any high, or over three medium     conditional
//	no program ran                     blocked
//	otherwise                          pass
//
// The confidence is the mean of what the findings state; where none states any it
// is unknown.
func (r *Report) judge() {
	s := r.Summary.BySeverity
	switch {
	case len(r.Run.Errors) > 0:
		r.Verdict, r.Explanation = VerdictBlocked, fmt.Sprintf("The session could not be judged: %s.", r.Run.Errors[0])
	case s.Critical > 0:
		r.Verdict, r.Explanation = VerdictFail, "Findings: "+s.Text()+"."
	case r.Run.ExitCode != 0:
		r.Verdict, r.Explanation = VerdictFail, r.whatFailed()
	case s.High > 0 || s.Medium > maxMedium:
		r.Verdict, r.Explanation = VerdictConditional, "Findings: "+s.Text()+"."
	case len(r.Run.Command) == 0:
		r.Verdict, r.Explanation = VerdictBlocked, "The session could not be judged: no program ran in it."
	case len(r.Findings) == 0:
		r.Verdict, r.Explanation = VerdictPass, "The command succeeded and nothing was found; what it did not look at was not checked."
	default:
		r.Verdict, r.Explanation = VerdictPass, "The command succeeded; nothing bad enough to stop at was found: "+s.Text()+"."
	}
	r.Correctness = "incorrect"
	if r.Verdict == VerdictPass {
		r.Correctness = "correct"
	}
	r.Confidence = nil
	sum, n := 0.0, 0
	for _, f := range r.Findings {
		if f.Confidence != nil {
			sum += *f.Confidence
			n++
		}
	}
	if n > 0 {
		r.Confidence = new(sum / float64(n))
	}
}

// whatFailed says in one sentence which program failed.
func (r *Report) whatFailed() string {
	var bad, conflicts []string
	for _, a := range r.Run.Agents {
		conflicts = append(conflicts, a.Conflicts...)
		switch {
		case a.TimedOut:
			bad = append(bad, a.Agent.String()+" ran out of time")
		case a.ExitCode != 0:
			bad = append(bad, fmt.Sprintf("%s ended with exit code %d", a.Agent, a.ExitCode))
		}
	}
	switch {
	case len(bad)+len(conflicts) == 0:
		return fmt.Sprintf("The command ended with exit code %d.", r.Run.ExitCode)
	case len(conflicts) > 0:
		slices.Sort(conflicts)
		conflicts = slices.Compact(conflicts)
		bad = append(bad, counted(len(conflicts), "path")+" could not be merged: "+strings.Join(conflicts[:min(len(conflicts), 3)], ", "))
		if len(conflicts) > 3 {
			bad[len(bad)-1] += ", …"
		}
	}
	return fmt.Sprintf("Of %s %s.", counted(len(r.Run.Agents), "agent"), strings.Join(bad, "; "))
}
