package session

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/redact"
)

const testSecret = "sup3r-s3cret-value"

func TestSecretsInPatch(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-old " + testSecret + "\n+new " + testSecret + "\n+plain\n three\n" +
		"@@ -10 +11 @@ " + testSecret + "\n-x\n+y " + testSecret + "\n" +
		"diff --git \"a/o\\303\\244\" \"b/o\\303\\244\"\n--- /dev/null\n+++ \"b/o\\303\\244\"\n@@ -0,0 +1,2 @@\n+--- a/not/a/header\n+k=" + testSecret + "\n\\ No newline at end of file\n"
	got, err := secretsInPatch(context.Background(), strings.NewReader(patch), redact.New([]string{"MY_TOKEN=" + testSecret}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.txt:2 of before (MY_TOKEN)", "a.txt:2 (MY_TOKEN)", "a.txt:11 (MY_TOKEN)", `o\303\244:2 (MY_TOKEN)`}
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i, w := range want {
		if !strings.HasSuffix(got[i], w) {
			t.Errorf("found %q, want %q", got[i], w)
		}
	}
	var out strings.Builder
	key := "@@ -0,0 +1,4 @@\n+-----BEGIN PRIVATE KEY-----\n+MIIEvQIBADAN\n+Bgkqhki\n+-----END PRIVATE KEY-----\n plain " + testSecret + "\n"
	if err := maskPatch(&out, strings.NewReader(key), redact.New(nil, testSecret)); err != nil || strings.Contains(out.String(), "MIIE") || strings.Contains(out.String(), "Bgkq") ||
		strings.Count(out.String(), "\n") != 6 || !strings.HasSuffix(out.String(), " plain [redacted:secret]\n") {
		t.Errorf("masked: %q %v", out.String(), err)
	}
	if got, _ := secretsInPatch(context.Background(), strings.NewReader("--- a/k\n+++ b/k\n"+key), redact.New(nil)); len(got) != 1 || !strings.HasSuffix(got[0], "k:1 (private-key)") {
		t.Errorf("found %q", got)
	}
	many := "--- a/x\n+++ b/x\n@@ -0,0 +1,99 @@\n" + strings.Repeat("+"+testSecret+"\n", 99)
	if got, _ := secretsInPatch(context.Background(), strings.NewReader(many), redact.New(nil, testSecret)); len(got) != maxFlags+1 {
		t.Errorf("%d are named", len(got))
	}
}

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
	masked := maskedReport(rep, redact.New(nil, testSecret))
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

func TestTextMask(t *testing.T) {
	t.Parallel()
	r := redact.New(nil, testSecret)
	for name, tt := range map[string]struct{ in, want string }{
		"short":  {"x " + testSecret, "x [redacted:secret]"},
		"binary": {"\x00" + testSecret, "\x00" + testSecret},
		"long":   {strings.Repeat("y", textProbe) + testSecret, strings.Repeat("y", textProbe) + "[redacted:secret]"},
		"empty":  {"", ""},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			var out bytes.Buffer
			m := &textMask{r: r, w: &out}
			for in := []byte(tt.in); len(in) > 0; {
				n := min(size, len(in))
				if _, err := m.Write(in[:n]); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			if err := m.Close(); err != nil || out.String() != tt.want {
				t.Errorf("%s in pieces of %d: %d bytes, %v", name, size, out.Len(), err)
			}
		}
	}
	var _ io.WriteCloser = &textMask{}
}
