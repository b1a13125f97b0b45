package report

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
	// originRoot is the name that stands for the origin's top folder: every path in
	// the file is relative to it.
	originRoot = "SRCROOT"
	homePage   = "https://github.com/seed-2d964004/superqode"
	// blockedRule is the rule of operations that the guard refused.
	blockedRule = "superqode/blocked-operation"
	// maxResults is how many results of one run GitHub takes.
	maxResults = 25_000
)

// SARIF writes the report's findings, suppressed ones too, and the refused
// operations as SARIF 2.1.0. Paths are relative to the origin and escaped as URIs
// want it.
func SARIF(w io.Writer, rep artifacts.Report) error {
	doc := sarif.NewReport()
	doc.Schema = sarifSchema
	version := cmp.Or(rep.Metadata.Version, "devel")
	driver := sarif.NewToolComponent().WithName("superqode").WithInformationURI(homePage).WithVersion(version)
	if number := strings.TrimPrefix(version, "v"); strings.Count(number, ".") >= 2 {
		driver.WithSemanticVersion(number)
	}
	driver.Rules = []*sarif.ReportingDescriptor{}
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).WithColumnKind("unicodeCodePoints")
	run.Results = []*sarif.Result{}
	root := sarif.NewArtifactLocation().WithURI(folderURI(rep.Run.Origin))
	run.WithOriginalUriBaseIds(map[string]sarif.ArtifactLocation{originRoot: *root})
	run.AddInvocation(invocation(rep))
	run.WithAutomationDetails(sarif.NewRunAutomationDetails().WithID("superqode/" + rep.SessionID.String()))
	rules, report := map[string]int{}, below(FormatMD.path(rep.SessionID))
	for _, f := range rep.AllFindings()[:min(len(rep.AllFindings()), maxResults)] {
		run.AddResult(findingResult(f, rules, driver, report))
	}
	for _, b := range rep.Guard.Blocked[:min(len(rep.Guard.Blocked), max(maxResults-len(run.Results), 0))] {
		run.AddResult(blockedResult(b, rules, driver, below(artifacts.SessionLog(rep.SessionID, "guard"))))
	}
	doc.AddRun(run)
	if err := doc.PrettyWrite(w); err != nil {
		return fmt.Errorf("render report as SARIF: %w", err)
	}
	return nil
}

func invocation(rep artifacts.Report) *sarif.Invocation {
	fine := rep.Run.ExitCode == 0 && len(rep.Run.Errors) == 0
	inv := sarif.NewInvocation().WithExecutionSuccessful(fine).WithExitCode(rep.Run.ExitCode)
	inv.WithWorkingDirectory(sarif.NewArtifactLocation().WithURI(folderURI(rep.Run.Origin)))
	if len(rep.Run.Command) > 0 {
		inv.WithCommandLine(plain(text.QuoteLine(rep.Run.Command...)))
	}
	if !rep.StartedAt.IsZero() {
		inv.WithStartTimeUtc(plainTime(rep.StartedAt))
	}
	if !rep.EndedAt.IsZero() {
		inv.WithEndTimeUtc(plainTime(rep.EndedAt))
	}
	for _, e := range rep.Run.Errors {
		said := sarif.NewNotification().WithLevel("error").WithMessage(sarif.NewTextMessage(plain(e)))
		inv.AddToolExecutionNotification(said)
	}
	return inv
}

// below is the place of an artifact in the origin.
func below(artifact string) string { return ".superqode/qe-artifacts/" + artifact }

// sarifRule returns the index of a rule, entering it first where it is new.
func sarifRule(rules map[string]int, driver *sarif.ToolComponent, id, short, help, level string) int {
	if i, ok := rules[id]; ok {
		return i
	}
	rules[id] = len(rules)
	text := func(s string) *sarif.MultiformatMessageString {
		return sarif.NewMultiformatMessageString().WithText(s).WithMarkdown(s)
	}
	bag := sarif.NewPropertyBag()
	severity := map[string]string{"error": "error", "warning": "warning"}
	bag.Add("problem.severity", cmp.Or(severity[level], "recommendation"))
	rule := sarif.NewReportingDescriptor().WithID(id).WithName(ruleName(id)).WithProperties(bag)
	rule.WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(level))
	rule.WithShortDescription(sarif.NewMultiformatMessageString().WithText(sentence(short)))
	rule.WithFullDescription(sarif.NewMultiformatMessageString().WithText(help))
	driver.AddRule(rule.WithHelp(text(help)).WithHelpURI(homePage + "/blob/main/docs/formats.md#findings"))
	return rules[id]
}

// ruleName is a rule's id as one word.
func ruleName(id string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(id, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		first, size := utf8.DecodeRuneInString(word)
		b.WriteRune(unicode.ToUpper(first))
		b.WriteString(word[size:])
	}
	return cmp.Or(b.String(), "Finding")
}

// sentence ends a text with a full stop, unless it ends with a mark of its own.
func sentence(s string) string {
	s = strings.TrimRight(s, " \n")
	if s != "" && strings.ContainsAny(s[len(s)-1:], ".!?:") {
		return s
	}
	return s + "."
}

func findingResult(f artifacts.Finding, rules map[string]int, driver *sarif.ToolComponent, report string) *sarif.Result {
	id := cmp.Or(plain(f.RuleID), plain(f.Category), "superqode/finding")
	help := "A program in a superqode session, or a file that it left, reported it; the report of the session has the evidence."
	rule := sarifRule(rules, driver, id, cmp.Or(plain(f.Category), "Finding of a session's program"), help, level(f.Severity))
	res := sarif.NewRuleResult(id).WithRuleIndex(rule).WithLevel(level(f.Severity)).WithKind("fail")
	message := sentence(plain(f.Title))
	if d := plainLines(f.Description); strings.TrimSpace(d) != "" {
		message += "\n\n" + sentence(d)
	}
	res.WithMessage(sarif.NewTextMessage(plainMessage(message)))
	res.WithPartialFingerprints(map[string]string{"superqode/v1": f.Fingerprint()})
	res.AddLocation(sarif.NewLocationWithPhysicalLocation(place(cmp.Or(f.File, report), f.Lines)))
	if f.Suppressed != nil {
		by := sarif.NewSuppression().WithKind("external").WithStatus("accepted")
		res.AddSuppression(by.WithJustification(plain(f.Suppressed.Reason)))
	}
	res.WithProperties(properties(f))
	return res
}

// place is where a result is. GitHub refuses a result without a file and a line: what
// is about no file stands in the file that tells of it, and what is about a whole file at
// its beginning.
func place(name string, lines *artifacts.LineRange) *sarif.PhysicalLocation {
	if lines == nil {
		lines = &artifacts.LineRange{Start: 1, End: 1}
	}
	file := sarif.NewArtifactLocation().WithURI(fileURI(name)).WithURIBaseID(originRoot)
	region := sarif.NewRegion().WithStartLine(lines.Start).WithEndLine(lines.End)
	return sarif.NewPhysicalLocation().WithArtifactLocation(file).WithRegion(region)
}

func properties(f artifacts.Finding) *sarif.PropertyBag {
	bag := sarif.NewPropertyBag()
	bag.Add("id", plain(f.ID))
	bag.Add("severity", string(f.Severity))
	bag.Add("priority", f.Priority)
	if f.Confidence != nil {
		bag.Add("confidence_score", *f.Confidence)
	}
	for key, text := range map[string]string{
		"category": f.Category, "found_by": f.FoundBy, "patch_id": f.PatchID, "source": f.Source,
	} {
		if text != "" {
			bag.Add(key, plain(text))
		}
	}
	for key, text := range map[string]string{"evidence": f.Evidence, "suggested_fix": f.SuggestedFix} {
		if strings.TrimSpace(text) != "" {
			bag.Add(key, plainLines(text))
		}
	}
	for _, t := range f.Tags {
		bag.AddTag(plain(t))
	}
	return bag
}

func blockedResult(b artifacts.Blocked, rules map[string]int, driver *sarif.ToolComponent, log string) *sarif.Result {
	help := "The guard of a superqode session refused a git command. It did nothing; the log of the guard names each one."
	rule := sarifRule(rules, driver, blockedRule, "Operation that the guard refused", help, "note")
	res := sarif.NewRuleResult(blockedRule).WithRuleIndex(rule)
	command := plain(text.QuoteLine(b.Command...))
	text := fmt.Sprintf("The guard (%s) refused %s: %s", plain(b.Layer), plain(b.Operation), command)
	res.WithLevel("note").WithKind("fail").WithMessage(sarif.NewTextMessage(plainMessage(sentence(text))))
	res.AddLocation(sarif.NewLocationWithPhysicalLocation(place(log, nil)))
	bag := sarif.NewPropertyBag()
	bag.Add("layer", plain(b.Layer))
	bag.Add("at", plainTime(b.At))
	if !b.Agent.IsZero() {
		bag.Add("agent_id", b.Agent.String())
	}
	return res.WithProperties(bag)
}

// level maps a severity to SARIF's levels; none is for what is no problem at all.
func level(s artifacts.Severity) string {
	switch s {
	case artifacts.SeverityCritical, artifacts.SeverityHigh:
		return "error"
	case artifacts.SeverityMedium:
		return "warning"
	}
	return "note"
}

// plainMessage keeps brackets and braces from being read as links and as places
// for arguments, as SARIF section 3.11 has them.
func plainMessage(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "{", "{{", "}", "}}").Replace(s)
}

// fileURI writes a path of raw bytes as a relative URI.
func fileURI(name string) string {
	return strings.ReplaceAll(escapePath(name), ":", "%3A") // a colon would end a scheme
}

// escapePath percent-encodes all but what can only be a path.
func escapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// folderURI writes an absolute folder as a file URI.
func folderURI(dir string) string {
	text := filepath.ToSlash(dir)
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	return "file://" + escapePath(strings.TrimSuffix(text, "/")) + "/"
}
