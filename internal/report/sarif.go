package report

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
	// originRoot is the name that stands for the origin's top folder: every path in
	// the file is relative to it.
	originRoot = "ORIGIN"
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
	driver := sarif.NewToolComponent().WithName("superqode").WithInformationURI("https://github.com/seed-2d964004/superqode")
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).WithColumnKind("unicodeCodePoints")
	run.Results = []*sarif.Result{}
	root := sarif.NewArtifactLocation().WithURI(folderURI(rep.Run.Origin))
	run.WithOriginalUriBaseIds(map[string]sarif.ArtifactLocation{originRoot: *root})
	run.AddInvocation(invocation(rep))
	run.WithAutomationDetails(sarif.NewRunAutomationDetails().WithID("superqode/" + rep.SessionID.String()))
	rules := map[string]int{}
	for _, f := range rep.AllFindings()[:min(len(rep.AllFindings()), maxResults)] {
		run.AddResult(findingResult(f, rules, driver))
	}
	for _, b := range rep.Guard.Blocked[:min(len(rep.Guard.Blocked), max(maxResults-len(run.Results), 0))] {
		run.AddResult(blockedResult(b, rules, driver))
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

// sarifRule returns the index of a rule, entering it first where it is new.
func sarifRule(rules map[string]int, driver *sarif.ToolComponent, id, text string) int {
	if i, ok := rules[id]; ok {
		return i
	}
	rules[id] = len(rules)
	description := sarif.NewMultiformatMessageString().WithText(text)
	driver.AddRule(sarif.NewReportingDescriptor().WithID(id).WithShortDescription(description))
	return rules[id]
}

func findingResult(f artifacts.Finding, rules map[string]int, driver *sarif.ToolComponent) *sarif.Result {
	id := cmp.Or(plain(f.RuleID), plain(f.Category), "superqode/finding")
	rule := sarifRule(rules, driver, id, cmp.Or(plain(f.Category), "Finding of a session's program"))
	res := sarif.NewRuleResult(id).WithRuleIndex(rule).WithLevel(level(f.Severity)).WithKind("fail")
	message := plain(f.Title)
	if d := plainLines(f.Description); strings.TrimSpace(d) != "" {
		message += "\n\n" + d
	}
	res.WithMessage(sarif.NewTextMessage(plainMessage(message)))
	res.WithPartialFingerprints(map[string]string{"superqode/v1": f.Fingerprint()})
	res.AddLocation(sarif.NewLocationWithPhysicalLocation(place(f)))
	if f.Suppressed != nil {
		by := sarif.NewSuppression().WithKind("external").WithStatus("accepted")
		res.AddSuppression(by.WithJustification(plain(f.Suppressed.Reason)))
	}
	res.WithProperties(properties(f))
	return res
}

// place is where a finding is. GitHub refuses a result without a place: one that
// is about no file is put at the top of the origin.
func place(f artifacts.Finding) *sarif.PhysicalLocation {
	file := sarif.NewArtifactLocation().WithURI(cmp.Or(fileURI(f.File), ".")).WithURIBaseID(originRoot)
	at := sarif.NewPhysicalLocation().WithArtifactLocation(file)
	if f.Lines != nil {
		at.WithRegion(sarif.NewRegion().WithStartLine(f.Lines.Start).WithEndLine(f.Lines.End))
	}
	return at
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

func blockedResult(b artifacts.Blocked, rules map[string]int, driver *sarif.ToolComponent) *sarif.Result {
	rule := sarifRule(rules, driver, blockedRule, "Operation that the guard refused")
	res := sarif.NewRuleResult(blockedRule).WithRuleIndex(rule)
	command := plain(text.QuoteLine(b.Command...))
	text := fmt.Sprintf("The guard (%s) refused %s: %s", plain(b.Layer), plain(b.Operation), command)
	res.WithLevel("note").WithKind("fail").WithMessage(sarif.NewTextMessage(plainMessage(text)))
	res.AddLocation(sarif.NewLocationWithPhysicalLocation(place(artifacts.Finding{})))
	bag := sarif.NewPropertyBag()
	bag.Add("layer", plain(b.Layer))
	bag.Add("at", plainTime(b.At))
	if !b.Agent.IsZero() {
		bag.Add("agent_id", b.Agent.String())
	}
	return res.WithProperties(bag)
}

// level maps a severity to the four levels of SARIF.
func level(s artifacts.Severity) string {
	switch s {
	case artifacts.SeverityCritical, artifacts.SeverityHigh:
		return "error"
	case artifacts.SeverityMedium:
		return "warning"
	case artifacts.SeverityLow:
		return "note"
	}
	return "none"
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
