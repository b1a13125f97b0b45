package report

import (
	"bytes"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/redact"
)

const testSecret = "sup3r-s3cret-value"

func TestMaskedReport(t *testing.T) {
	t.Parallel()
	path, err := superqode.ParseRelPath("dir/" + testSecret)
	if err != nil {
		t.Fatal(err)
	}
	rep := artifacts.NewReport(artifacts.ReportInput{
		Result:   artifacts.Result{Mode: superqode.ModeWorktree, State: superqode.StateDone, Changes: []superqode.Change{{Path: path, Type: superqode.ChangeCreated}}},
		Command:  []string{"curl", testSecret},
		Findings: []artifacts.Finding{{ID: "f1", Severity: artifacts.SeverityLow, Title: "t " + testSecret, Tags: []string{testSecret}}},
		Warnings: []string{testSecret}, Fixes: &artifacts.FixesReport{Fixes: []artifacts.Fix{{Evidence: testSecret}}},
		Commands: []artifacts.CommandRun{{Command: []string{testSecret}, Output: testSecret}},
	})
	before, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	masked := Masked(rep, redact.New(nil, testSecret))
	data, err := masked.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte(testSecret)); n != 1 { // the path, without which the change could not be found
		t.Errorf("%d are left:\n%s", n, data)
	}
	if masked.Findings[0].Fingerprint() != rep.Findings[0].Fingerprint() {
		t.Error("the fingerprint is another one")
	}
	if after, err := rep.JSON(); err != nil || !bytes.Equal(before, after) {
		t.Error("the report itself was changed")
	}
	back, err := artifacts.ParseReport(data)
	if err != nil || back.Findings[0].Fingerprint() != rep.Findings[0].Fingerprint() {
		t.Errorf("read back it has another fingerprint: %v", err)
	}
}
