package report

import (
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
	run.WithOriginalUriBaseIds(map[string]sarif.ArtifactLocation{originRoot: *sarif.NewArtifactLocation().WithURI(folderURI(rep.Run.Origin))})
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
	inv := sarif.NewInvocation().WithExecutionSuccessful(rep.Run.ExitCode == 0 && len(rep.Run.Errors) == 0).WithExitCode(rep.Run.ExitCode)
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
		inv.AddToolExecutionNotification(sarif.NewNotification().WithLevel("error").WithMessage(sarif.NewTextMessage(plain(e))))
	}
	return inv
}

// sarifRule returns the index of a rule, entering it first where it is new.
func sarifRule(rules map[string]int, driver *sarif.ToolComponent, id, text string) int {
	if i, ok := rules[id]; ok {
		return i
	}
	rules[id] = len(rules)
	driver.AddRule(sarif.NewReportingDescriptor().WithID(id).WithShortDescription(sarif.NewMultiformatMessageString().WithText(text)))
	return rules[id]
}

func findingResult(f artifacts.Finding, rules map[string]int, driver *sarif.ToolComponent) *sarif.Result {
	id, text := plain(f.RuleID), plain(f.Category)
	if id == "" {
		id = text
	}
	if id == "" {
		id = "superqode/finding"
	}
	if text == "" {
		text = "Finding of a session's program"
	}
	res := sarif.NewRuleResult(id).WithRuleIndex(sarifRule(rules, driver, id, text)).WithLevel(level(f.Severity)).WithKind("fail")
	message := plain(f.Title)
	if d := plainLines(f.Description); strings.TrimSpace(d) != "" {
		message += "\n\n" + d
	}
	res.WithMessage(sarif.NewTextMessage(plainMessage(message)))
	res.WithPartialFingerprints(map[string]string{"superqode/v1": f.Fingerprint()})
	res.AddLocation(sarif.NewLocationWithPhysicalLocation(place(f)))
	if f.Suppressed != nil {
		res.AddSuppression(sarif.NewSuppression().WithKind("external").WithStatus("accepted").WithJustification(plain(f.Suppressed.Reason)))
	}
	res.WithProperties(properties(f))
	return res
}

// place is where a finding is. GitHub refuses a result without a place: one that
// is about no file is put at the top of the origin.
func place(f artifacts.Finding) *sarif.PhysicalLocation {
	uri := fileURI(f.File)
	if uri == "" {
		uri = "."
	}
	at := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewArtifactLocation().WithURI(uri).WithURIBaseID(originRoot))
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
	for key, text := range map[string]string{"category": f.Category, "found_by": f.FoundBy, "patch_id": f.PatchID, "source": f.Source} {
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
	res := sarif.NewRuleResult(blockedRule).WithRuleIndex(sarifRule(rules, driver, blockedRule, "Operation that the guard refused"))
	text := fmt.Sprintf("The guard (%s) refused %s: %s", plain(b.Layer), plain(b.Operation), plain(text.QuoteLine(b.Command...)))
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
	if name == "" {
		return ""
	}
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(p), ":", "%3A") // a colon would end a scheme
	}
	return strings.Join(parts, "/")
}

// folderURI writes an absolute folder as a file URI.
func folderURI(dir string) string {
	text := filepath.ToSlash(dir)
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	parts := strings.Split(strings.TrimSuffix(text, "/"), "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "file://" + strings.Join(parts, "/") + "/"
}
