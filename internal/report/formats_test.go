package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/joshdk/go-junit"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

// plainReport is a report as it usually is.
func plainReport(t testing.TB) artifacts.Report {
	sure := 0.8
	at := artifacts.At(time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC))
	return artifacts.NewReport(artifacts.ReportInput{
		Result: artifacts.Result{
			SessionID: session(t), Mode: superqode.ModeWorktree, Origin: "/home/me/a b", State: superqode.StateDone, StartedAt: at, EndedAt: at,
			Revert: artifacts.Revert{Verified: true, Method: "stat"}, OriginCheck: artifacts.OriginCheck{Unchanged: true},
			Guard:   artifacts.Guard{Blocked: []artifacts.Blocked{{Operation: "commit", Command: []string{"git", "commit", "-m", "a [b]"}, Layer: "shim", At: at}}},
			Changes: []superqode.Change{{Path: relPath(t, "a.go"), Type: superqode.ChangeModified, LinesAdded: 3, LinesRemoved: 1}},
		},
		Command: []string{"go", "test"},
		Findings: []artifacts.Finding{
			{ID: "f1", Severity: artifacts.SeverityHigh, Priority: 1, Confidence: &sure, Title: "Off by one", Category: "bug", RuleID: "R1", File: "dir/a b#%c:d.go", Lines: &artifacts.LineRange{Start: 3, End: 5}, Tags: []string{"loop"}},
			{ID: "f2", Severity: artifacts.SeverityInfo, Priority: 3, Title: "By the way"},
			{ID: "f3", Severity: artifacts.SeverityCritical, Title: "Known", Suppressed: &artifacts.Suppressed{Reason: "an example", By: "superqode.suppressions.yaml"}},
		},
	})
}

// against checks a document with a JSON Schema.
func against(t testing.TB, schema, document []byte) {
	t.Helper()
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", s); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("the document does not fit the schema: %v", err)
	}
}

func reports(t testing.TB) map[string]artifacts.Report {
	nasty, _ := hostileReport(t)
	return map[string]artifacts.Report{
		"plain": plainReport(t), "hostile": nasty,
		"bare": artifacts.NewReport(artifacts.ReportInput{Result: artifacts.Result{SessionID: session(t), Mode: superqode.ModeSnapshot, State: superqode.StateDone}}),
	}
}

func sarifOf(t testing.TB, rep artifacts.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := SARIF(&b, rep); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSARIFFitsItsSchema(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, rep := range reports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			against(t, schema, sarifOf(t, rep))
		})
	}
}

// TestSARIFFitsCodeScanning holds the rules of code scanning's validator: GH1001 to GH1018 and
// GH2012 of the SARIF SDK, and what GitHub's page on SARIF lists as required.
func TestSARIFFitsCodeScanning(t *testing.T) {
	t.Parallel()
	type text struct{ Text, Markdown string }
	var doc struct {
		Runs []struct {
			Invocations []struct{ WorkingDirectory struct{ URI string } }
			Tool        struct {
				Driver struct {
					Name, Version, SemanticVersion, InformationURI string
					Rules                                          []struct {
						ID, Name, HelpURI                       string
						ShortDescription, FullDescription, Help text
						DefaultConfiguration                    struct{ Level string }
					}
				}
			}
			Results []struct {
				Level, Kind string
				Message     text
				Locations   []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	for name, rep := range reports(t) {
		rep.Metadata.Version = "v1.2.3"
		if err := json.Unmarshal(sarifOf(t, rep), &doc); err != nil {
			t.Fatal(err)
		}
		run := doc.Runs[0]
		if d := run.Tool.Driver; d.Name == "" || d.Version != "v1.2.3" || d.SemanticVersion != "1.2.3" || d.InformationURI == "" || d.Rules == nil {
			t.Errorf("%s: the driver is %+v", name, d)
		}
		for _, r := range run.Tool.Driver.Rules {
			if r.ID == "" || r.Name == "" || strings.ContainsAny(r.Name, " /-") || r.ShortDescription.Text == "" || r.FullDescription.Text == "" ||
				r.Help.Text == "" || r.Help.Markdown == "" || r.HelpURI == "" || r.DefaultConfiguration.Level == "" {
				t.Errorf("%s: a rule is %+v", name, r)
			}
		}
		for _, r := range run.Results {
			at := r.Locations[0].PhysicalLocation
			u, err := url.Parse(at.ArtifactLocation.URI)
			if err != nil || u.IsAbs() || strings.Trim(u.Path, "./") == "" || at.Region.StartLine < 1 {
				t.Errorf("%s: a result is at %+v, %v", name, at, err)
			}
			if r.Kind == "fail" && r.Level == "none" || !strings.ContainsAny(r.Message.Text[len(r.Message.Text)-1:], ".!?:") {
				t.Errorf("%s: a result is %+v", name, r)
			}
		}
		if run.Invocations[0].WorkingDirectory.URI == "" {
			t.Errorf("%s: the origin is not named", name)
		}
	}
}

// TestCoverage reads what coverage tools write.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want float64 // below 0: nothing
	}{
		{"mode: set\na.go:1.1,2.2 3 1\na.go:3.1,4.2 1 0\n", 75},
		{"TN:\nSF:a.c\nDA:1,1\nLF:4\nLH:1\nend_of_record\nSF:b.c\nLF:4\nLH:3\nend_of_record\n", 50},
		{`<?xml version="1.0"?><coverage line-rate="0.9" lines-covered="9" lines-valid="10"></coverage>`, 90},
		{"<html>", -1}, {"", -1}, {"\x00\xff", -1}, {`{"total":1}`, -1},
	} {
		var c covered
		c.read([]byte(tt.text))
		if got := c.percent(); (got == nil) != (tt.want < 0) || got != nil && *got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
}

func TestJSONFitsItsSchema(t *testing.T) {
	t.Parallel()
	schema, err := artifacts.Schema("qr")
	if err != nil {
		t.Fatal(err)
	}
	for name, rep := range reports(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range rep.Run.Setup { // superqode's own words, which no program writes
				rep.Run.Setup[i].Kind = "run"
			}
			for i := range rep.Run.Commands {
				rep.Run.Commands[i].Limit = "memory"
			}
			for i := range rep.Run.Artifacts {
				rep.Run.Artifacts[i].Type, rep.Run.Artifacts[i].SHA256 = artifacts.TypeLog, strings.Repeat("0", 64)
			}
			data, err := rep.JSON()
			if err != nil {
				t.Fatal(err)
			}
			against(t, schema, data)
		})
	}
}

func TestSARIF(t *testing.T) {
	t.Parallel()
	var doc struct {
		Runs []struct {
			Invocations []struct {
				ExitCode            int
				ExecutionSuccessful bool
			}
			Bases map[string]struct{ URI string } `json:"originalUriBaseIds"`
			Tool  struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID       string
				RuleIndex    int
				Level        string
				Message      struct{ Text string }
				Fingerprints map[string]string `json:"partialFingerprints"`
				Suppressions []struct{ Justification, Status string }
				Locations    []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI, URIBaseID string }
						Region           struct{ StartLine, EndLine int }
					}
				}
			}
		}
	}
	rep := plainReport(t)
	if err := json.Unmarshal(sarifOf(t, rep), &doc); err != nil {
		t.Fatal(err)
	}
	run := doc.Runs[0]
	if len(run.Results) != 4 || run.Invocations[0].ExitCode != 0 || !run.Invocations[0].ExecutionSuccessful || run.Bases[originRoot].URI != "file:///home/me/a%20b/" {
		t.Errorf("the run is %+v", run)
	}
	first := run.Results[0]
	at := first.Locations[0].PhysicalLocation
	if at.ArtifactLocation.URI != "dir/a%20b%23%25c%3Ad.go" || at.Region.StartLine != 3 || at.Region.EndLine != 5 || first.Level != "error" || first.RuleID != "R1" {
		t.Errorf("the finding is %+v", first)
	}
	if u, err := url.Parse(at.ArtifactLocation.URI); err != nil || u.Path != "dir/a b#%c:d.go" || u.IsAbs() {
		t.Errorf("the URI is read as %+v, %v", u, err)
	}
	if first.Fingerprints["superqode/v1"] != rep.Findings[0].Fingerprint() {
		t.Errorf("the fingerprint is %v", first.Fingerprints)
	}
	if s := run.Results[2].Suppressions; len(s) != 1 || s[0].Justification != "an example" || s[0].Status != "accepted" {
		t.Errorf("the suppression is %+v", s)
	}
	blocked := run.Results[3]
	if blocked.RuleID != blockedRule || !strings.Contains(blocked.Message.Text, `a \[b\]`) {
		t.Errorf("the blocked operation is %+v", blocked)
	}
	for _, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("rule %d is not %s", r.RuleIndex, r.RuleID)
		}
	}
}

func junitOf(t testing.TB, rep artifacts.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, rep); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	for name, rep := range reports(t) {
		data := junitOf(t, rep)
		suites, err := junit.Ingest(data)
		if err != nil || len(suites) != 1 {
			t.Fatalf("%s: %d suites, %v", name, len(suites), err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "\x1b") {
				t.Errorf("%s: a workflow would obey %q", name, line)
			}
		}
	}
	suites, err := junit.Ingest(junitOf(t, plainReport(t)))
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]junit.Status{}
	for _, c := range suites[0].Tests {
		states[c.Name] = c.Status
	}
	for name, want := range map[string]junit.Status{
		"command: go test": junit.StatusPassed, "revert verified": junit.StatusPassed, "origin unchanged": junit.StatusPassed,
		"f1: Off by one": junit.StatusSkipped, "f2: By the way": junit.StatusSkipped, "f3: Known": junit.StatusSkipped,
	} {
		if states[name] != want {
			t.Errorf("%s is %q, want %q", name, states[name], want)
		}
	}
	_, top, _ := strings.Cut(string(junitOf(t, plainReport(t))), "<testsuites")
	if top, _, _ = strings.Cut(top, ">"); strings.Contains(top, "skipped") {
		t.Errorf("Jenkins' schema does not know %q", top)
	}
	if n := suites[0].Totals; n.Tests != 6 || n.Failed != 0 || n.Skipped != 3 {
		t.Errorf("the totals are %+v", n)
	}
}

func summaryOf(t testing.TB, rep artifacts.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := StepSummary(&b, rep); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMarkdownThroughAParser renders what we write as GitHub would, raw HTML let
// through, and looks at the elements: nothing but those that we write may be there,
// and no link at all.
func TestMarkdownThroughAParser(t *testing.T) {
	t.Parallel()
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(rawHTML()))
	for name, rep := range reports(t) {
		for form, text := range map[string]string{"report": markdownOf(t, rep), "summary": summaryOf(t, rep)} {
			var b bytes.Buffer
			if err := md.Convert([]byte(text), &b); err != nil {
				t.Fatal(err)
			}
			doc, err := html.Parse(&b)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range elements(doc, "") {
				switch e.Data {
				case "html", "head", "body", "h1", "h2", "h3", "p", "ul", "li", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "details", "summary", "br":
				default:
					t.Errorf("%s %s: element %s in\n%s", name, form, e.Data, text)
				}
				for _, a := range e.Attr {
					if a.Key != "class" && a.Key != "align" && a.Key != "style" || a.Key == "style" && !strings.HasPrefix(a.Val, "text-align:") {
						t.Errorf("%s %s: attribute %s=%q of %s", name, form, a.Key, a.Val, e.Data)
					}
				}
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(strings.TrimSpace(line), "::") {
					t.Errorf("%s %s: a workflow would obey %q", name, form, line)
				}
			}
			for _, r := range text {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Errorf("%s %s holds %U", name, form, r)
				}
			}
		}
	}
}

func TestHTMLHoldsNoWorkflowCommands(t *testing.T) {
	t.Parallel()
	nasty, opt := hostileReport(t)
	page, _ := render(t, nasty, opt)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "::") {
			t.Errorf("a workflow would obey %q", line)
		}
	}
}

func TestStepSummary(t *testing.T) {
	t.Parallel()
	text := summaryOf(t, plainReport(t))
	for _, want := range []string{"## :warning: `go test`\n\n**Needs a look: 1 high finding**", "1 high, 1 info, 1 suppressed", "`a.go`", "<details><summary>1 refused operation</summary>", "history is the user", "| Origin | unchanged |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
	rep := plainReport(t)
	for i := range 3000 {
		rep.Run.Warnings = append(rep.Run.Warnings, fmt.Sprint(i, strings.Repeat("x", 900)))
		rep.Findings = append(rep.Findings, artifacts.Finding{Severity: artifacts.SeverityLow, Title: strings.Repeat("y", 5000), File: "z"})
	}
	if n := len(summaryOf(t, rep)); n > 1<<20 {
		t.Errorf("the summary has %d bytes; GitHub shows none of more than 1 MiB", n)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFormatsTellErrors(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, artifacts.Report) error{"sarif": SARIF, "junit": JUnit, "summary": StepSummary} {
		if err := write(fullDisk{}, plainReport(t)); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rawHTML lets HTML through as it stands.
func rawHTML() renderer.Option { return gmhtml.WithUnsafe() }
