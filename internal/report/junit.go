package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// The elements of a JUnit report, as Jenkins, GitLab and GitHub's actions read
// them. Jenkins' schema (xunit-plugin, junit-10.xsd) has "skipped" for a suite, and
// not for all of them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		File    string       `xml:"file,attr,omitempty"`
		Line    int          `xml:"line,attr,omitempty"`
		Time    string       `xml:"time,attr"`
		Failure *junitResult `xml:"failure,omitempty"`
		Error   *junitResult `xml:"error,omitempty"`
		Skipped *junitResult `xml:"skipped,omitempty"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as one test suite with a test case for each check: the
// command's exit code, the revert, the origin, what was applied and merged, every step of
// the setup, and every finding. A test fails where the session's exit code is not 0 for
// it; a finding, or an origin that somebody worked in, is skipped with its text.
func JUnit(w io.Writer, rep artifacts.Report) error {
	suite := junitSuite{
		Name: "superqode " + rep.SessionID.String(), Time: seconds(rep.DurationSeconds), Properties: junitProperties(rep),
	}
	if !rep.StartedAt.IsZero() {
		suite.Timestamp = rep.StartedAt.UTC().Format("2006-01-02T15:04:05")
	}
	suite.Cases = append(suite.Cases, commandCase(rep),
		checked("revert verified", rep.Revert.Verified, rep.Revert.Differences),
		originCase(rep))
	suite.Cases = append(suite.Cases, mergeCases(rep)...)
	suite.Cases = append(suite.Cases, setupCases(rep)...)
	for _, f := range rep.AllFindings() {
		suite.Cases = append(suite.Cases, findingCase(f))
	}
	for _, e := range rep.Run.Errors {
		c := sessionCase("superqode's own work")
		c.Error = &junitResult{Message: plain(e), Type: "error"}
		suite.Cases = append(suite.Cases, c)
	}
	for _, c := range suite.Cases {
		suite.Tests++
		suite.Failures += counted(c.Failure)
		suite.Errors += counted(c.Error)
		suite.Skipped += counted(c.Skipped)
	}
	all := junitSuites{
		Name: "superqode", Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Time: suite.Time,
		Suites: []junitSuite{suite},
	}
	data, err := xml.MarshalIndent(all, "", " ")
	if err != nil {
		return fmt.Errorf("render report as JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, data)
	return err
}

func counted(r *junitResult) int {
	if r == nil {
		return 0
	}
	return 1
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", max(s, 0)) }

func junitProperties(rep artifacts.Report) []junitProperty {
	list := []junitProperty{
		{"session_id", rep.SessionID.String()}, {"mode", string(rep.Mode)}, {"verdict", string(rep.Verdict)},
		{"changes", fmt.Sprint(len(rep.Changes))}, {"blocked_operations", fmt.Sprint(len(rep.Guard.Blocked))},
		{"base_digest", digest(rep.Base.Digest)}, {"final_digest", digest(rep.Final.Digest)},
	}
	for _, b := range rep.Guard.Blocked[:min(len(rep.Guard.Blocked), maxListed)] {
		list = append(list, junitProperty{"blocked." + plain(b.Operation), plain(text.QuoteLine(b.Command...))})
	}
	return list
}

// maxListed bounds lists of things that are no checks.
const maxListed = 200

// commandCase is the check that the program ended well.
func commandCase(rep artifacts.Report) junitCase {
	c := sessionCase("command: " + plain(text.QuoteLine(rep.Run.Command...)))
	c.Time = seconds(rep.DurationSeconds)
	switch {
	case len(rep.Run.Command) == 0:
		c.Name, c.Skipped = "command", &junitResult{Message: "no program ran in the session"}
	case rep.Run.TimedOut:
		c.Failure = &junitResult{Message: "the command ran out of time", Type: "timeout", Text: lastOutput(rep)}
	case rep.Run.ExitCode != 0:
		ended := fmt.Sprintf("the command ended with exit code %d", rep.Run.ExitCode)
		c.Failure = &junitResult{Message: ended, Type: "exit-code", Text: lastOutput(rep)}
	}
	return c
}

func lastOutput(rep artifacts.Report) string {
	if n := len(rep.Run.Commands); n > 0 {
		return plainLines(rep.Run.Commands[n-1].Output)
	}
	return ""
}

// sessionCase is a test case about the session itself, which takes no time.
func sessionCase(name string) junitCase {
	return junitCase{Name: name, Class: "superqode.session", Time: "0"}
}

// checked makes a test case of a check that held, did not, or was not made.
func checked(name string, held bool, differences []string) junitCase {
	c := sessionCase(name)
	switch {
	case len(differences) > 0:
		var lines []string
		for _, d := range differences[:min(len(differences), maxListed)] {
			lines = append(lines, plain(d))
		}
		message := text.Plural(len(differences), "difference")
		c.Failure = &junitResult{Message: message, Type: "difference", Text: strings.Join(lines, "\n")}
	case !held:
		c.Skipped = &junitResult{Message: "not checked"}
	}
	return c
}

// originCase is the check of the origin. That somebody else worked there is no failure.
func originCase(rep artifacts.Report) junitCase {
	c := checked("origin unchanged", rep.OriginCheck.Unchanged, rep.OriginCheck.Differences)
	c.Failure, c.Skipped = nil, cmp.Or(c.Failure, c.Skipped)
	return c
}

// mergeCases are what was to be merged: several agents' changes, and the session's into
// the origin.
func mergeCases(rep artifacts.Report) (list []junitCase) {
	var lines []string
	for _, a := range rep.Run.Agents {
		for _, p := range a.Conflicts {
			lines = append(lines, plain(a.Agent.String()+": "+p))
		}
	}
	if len(rep.Run.Agents) > 0 {
		list = append(list, checked("agents merged", true, lines))
	}
	if rep.Applied != nil {
		lines = nil
		for _, c := range rep.Applied.Conflicts {
			lines = append(lines, plain(c.Message))
		}
		list = append(list, checked("changes applied", rep.Applied.Done(), lines))
	}
	return list
}

func setupCases(rep artifacts.Report) (list []junitCase) {
	for _, s := range rep.Run.Setup {
		c := junitCase{Name: "setup: " + plain(s.Name), Class: "superqode.setup", Time: seconds(s.DurationSeconds)}
		switch s.State {
		case "failed":
			c.Failure = &junitResult{Message: plain(s.Reason), Type: "setup", Text: plainLines(s.Output)}
		case "skipped", "optional_failed":
			c.Skipped = &junitResult{Message: plain(s.Reason)}
		}
		list = append(list, c)
	}
	return list
}

// findingCase is a finding as a test that was skipped.
func findingCase(f artifacts.Finding) junitCase {
	c := junitCase{
		Name: plain(f.ID) + ": " + plain(f.Title), Class: "superqode.finding." + cmp.Or(plain(f.Category), "finding"),
		Time: "0", File: plain(f.File),
	}
	if f.Lines != nil {
		c.Line = f.Lines.Start
	}
	var parts []string
	for _, p := range []struct{ title, text string }{
		{"", plain(f.Location())}, {"", plainLines(f.Description)}, {"Evidence:\n", plainLines(f.Evidence)},
		{"Suggested fix:\n", plainLines(f.SuggestedFix)}, {"", "Fingerprint: " + f.Fingerprint()},
	} {
		if strings.TrimSpace(p.text) != "" {
			parts = append(parts, p.title+p.text)
		}
	}
	severity := string(f.Severity)
	res := &junitResult{Message: severity + ": " + plain(f.Title), Type: severity, Text: strings.Join(parts, "\n\n")}
	if f.Suppressed != nil {
		res.Message = "suppressed: " + plain(f.Suppressed.Reason)
	}
	c.Skipped = res // no finding makes the exit code anything but 0
	return c
}
