package artifacts

import "fmt"

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
		r.Verdict, r.Explanation = VerdictFail, fmt.Sprintf("The command ended with exit code %d.", r.Run.ExitCode)
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
