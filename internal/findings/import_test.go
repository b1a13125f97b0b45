package findings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode/artifacts"
)

// leave writes files into a fresh artifact folder.
func leave(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func imported(t testing.TB, files map[string]string) ([]artifacts.Finding, string) {
	t.Helper()
	list, problems, err := Import(leave(t, files), "/origin/space")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, p := range problems {
		told = append(told, p.String())
	}
	return list, strings.Join(told, "\n")
}

func TestImportJSON(t *testing.T) {
	t.Parallel()
	const good = `{"severity":"low","title":"t"}`
	for _, tt := range []struct {
		name, data string
		n          int
		told       []string
	}{
		{"findings/one.json", good, 1, nil},
		{"findings/bom.json", "\xef\xbb\xbf" + good, 1, nil},
		{"findings/list.json", "[" + good + ",\n" + good + "]", 2, nil},
		{"findings/lines.ndjson", good + "\n\n" + good + "\r\n", 2, nil},
		{"findings/report.json", `{"version":"1.0","findings":[` + good + `]}`, 1, nil},
		{"findings/empty.json", "", 0, nil},
		{"findings/bad.json", "[" + good + ",\n{\"severity\":\"low\"},\n\n{\"title\":\"x\"}," + good + "]", 2, []string{"line 2: title: missing", "line 4: severity: missing"}},
		{"findings/cut.json", good + "\n" + good + "\n{\"severity\":", 2, []string{"line 3: unexpected EOF"}},
		{"findings/mixed.ndjson", good + "\nnonsense\n" + good + "\n7\n", 2, []string{"line 2: invalid character", "line 4: not a finding"}},
		{"findings/field.json", `{"severity":"low","title":"t","priority":"P1"}`, 0, []string{"line 1: priority: is a string"}},
		{"findings/more.json", `{"severity":"low","title":"t","cwe":79}`, 1, []string{"line 1: unknown fields are left out: cwe"}},
		{"findings/deep.json", strings.Repeat("[", 20000), 0, []string{"line 1"}},
		{"other/one.json", good, 0, nil},
		{"one.json", good, 0, nil},
		{"findings/one.txt", good, 0, nil},
	} {
		list, told := imported(t, map[string]string{tt.name: tt.data})
		if len(list) != tt.n {
			t.Errorf("%s: %d findings, want %d; told: %s", tt.name, len(list), tt.n, told)
		}
		for _, want := range tt.told {
			if !strings.Contains(told, tt.name+": "+want) {
				t.Errorf("%s: told %q, want %q", tt.name, told, want)
			}
		}
		if len(tt.told) == 0 && told != "" {
			t.Errorf("%s: told %q", tt.name, told)
		}
		for _, f := range list {
			if f.Source != tt.name || f.ID == "" {
				t.Errorf("%s: %+v", tt.name, f)
			}
		}
	}
}

func TestImportIDs(t *testing.T) {
	t.Parallel()
	list, told := imported(t, map[string]string{
		"findings/a.json": `[{"id":"x","severity":"low","title":"1"},{"severity":"low","title":"2"}]`,
		"findings/b.json": `[{"id":"x","severity":"low","title":"3"},{"id":"imported-002","severity":"low","title":"4","suppressed":{"reason":"mine","by":"me"}}]`,
	})
	if len(list) != 4 || !strings.Contains(told, `"x" is used twice`) {
		t.Fatalf("%+v %s", list, told)
	}
	seen := map[string]bool{}
	for _, f := range list {
		if seen[f.ID] || f.Suppressed != nil {
			t.Errorf("%+v", f)
		}
		seen[f.ID] = true
	}
}

const sarifFile = `{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{
"tool":{"driver":{"name":"lint","rules":[
 {"id":"R1","name":"NoEval","shortDescription":{"text":"eval is bad"},"fullDescription":{"text":"at length"},"help":{"text":"do not"},"properties":{"tags":["security"],"security-severity":"9.8"}},
 {"id":"R2","defaultConfiguration":{"level":"note"},"messageStrings":{"m":{"text":"found {0}"}}}]}},
"originalUriBaseIds":{"ROOT":{"uri":"file:///origin/space/"},"SUB":{"uri":"sub/","uriBaseId":"ROOT"}},
"artifacts":[{"location":{"uri":"from/index.go"}}],
"results":[
 {"ruleId":"R1","message":{"text":"eval used\nsecond line"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%20b.js","uriBaseId":"SUB"},"region":{"startLine":3,"endLine":4,"snippet":{"text":"eval(x)"}}}}],
  "fixes":[{"description":{"text":"call it"},"artifactChanges":[{"replacements":[{"insertedContent":{"text":"x()"}}]}]}]},
 {"ruleIndex":1,"message":{"id":"m","arguments":["it"]},"locations":[{"physicalLocation":{"artifactLocation":{"index":0},"region":{"startLine":7}}}]},
 {"ruleId":"R2","level":"error","message":{"text":"suppressed"},"suppressions":[{"kind":"inSource","justification":"known"}]},
 {"ruleId":"R2","kind":"pass","message":{"text":"fine"}},
 {"ruleId":"R9","level":"warning","message":{"text":"elsewhere"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"file:///etc/passwd"}}}]},
 {"ruleId":"R9","message":{"text":"a"},"baselineState":"absent"},
 {"message":{}},
 {"ruleId":7}]}]}`

func TestImportSARIF(t *testing.T) {
	t.Parallel()
	list, told := imported(t, map[string]string{"out/scan.sarif": sarifFile})
	if len(list) != 4 {
		t.Fatalf("%d findings: %+v", len(list), list)
	}
	f := list[0]
	if f.Severity != artifacts.SeverityCritical || f.Title != "eval used" || f.Location() != "sub/a b.js:3-4" || f.Evidence != "eval(x)" || f.SuggestedFix != "call it\nx()" || f.RuleID != "R1" ||
		f.Category != "NoEval" || f.FoundBy != "lint" || f.Tags[0] != "security" {
		t.Errorf("the first is %+v", f)
	}
	if f = list[1]; f.Severity != artifacts.SeverityLow || f.Title != "found it" || f.Location() != "from/index.go:7-7" || f.RuleID != "R2" {
		t.Errorf("the second is %+v", f)
	}
	if f = list[2]; f.Suppressed == nil || f.Suppressed.Reason != "known" || f.Severity != artifacts.SeverityHigh {
		t.Errorf("the third is %+v", f)
	}
	if f = list[3]; f.File != "" || !strings.Contains(f.Evidence, "/etc/passwd") {
		t.Errorf("the fourth is %+v", f)
	}
	for _, want := range []string{"runs[0].results[6]: title: missing", "runs[0].results[7]: "} {
		if !strings.Contains(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
}

func TestImportJUnit(t *testing.T) {
	t.Parallel()
	list, told := imported(t, map[string]string{"junit.xml": `<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="s"><testcase classname="pkg.A" name="ok"/><testcase classname="pkg.A" name="skipped"><skipped/></testcase>
<testcase classname="pkg.A" name="bad" file="a/b_test.py" line="12"><failure message="1 != 2" type="AssertionError">trace &lt;here&gt;</failure><system-out>noise</system-out></testcase>
<testcase name="worse"><error/><system-err>why</system-err></testcase></testsuite></testsuites>`})
	if len(list) != 2 || told != "" {
		t.Fatalf("%+v %s", list, told)
	}
	f := list[0]
	if f.Category != "test" || f.Severity != artifacts.SeverityHigh || f.Title != "Test pkg.A.bad failed" || f.Location() != "a/b_test.py:12-12" || f.Description != "1 != 2" || f.Evidence != "trace <here>" || f.FoundBy != "s" {
		t.Errorf("the first is %+v", f)
	}
	if f = list[1]; f.Title != "Test worse broke off" || f.Evidence != "why" {
		t.Errorf("the second is %+v", f)
	}
}

func TestImportPaths(t *testing.T) {
	t.Parallel()
	list, told := imported(t, map[string]string{
		"a.xml":           "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><testsuite><testcase name=\"caf\xe9\" file=\"/origin/space/a_test.py\"><failure/></testcase><testcase name=\"out\" file=\"/elsewhere/b.py\"><failure/></testcase></testsuite>",
		"findings/c.json": `{"severity":"low","title":"t","file_path":"/origin/space/deep/../c.go","line_range":{"start":1}}`,
	})
	if len(list) != 3 || told != "" || list[0].File != "a_test.py" || list[0].Title != "Test café failed" || list[1].File != "" || list[2].Location() != "c.go:1-1" {
		t.Errorf("%+v %s", list, told)
	}
	if _, told := imported(t, map[string]string{"findings/d.json": `{"severity":"low","title":"t","file_path":"/origin/spaceship"}`}); !strings.Contains(told, "absolute") {
		t.Errorf("a file elsewhere is accepted: %q", told)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	bomb := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><testsuite name="&lol2;"/>`
	for name, tt := range map[string]struct{ data, told string }{
		"a.xml": {bomb, "declares entities"},
		"b.xml": {`<testsuite><testcase name="x"><failure>` + strings.Repeat("<a>", 200), "nested too deeply"},
		"c.xml": {`<testsuite><testcase name="x"><failure message="&nope;"/></testcase></testsuite>`, "line 1: "},
		"d.xml": {`<testsuite><testcase name="x"><failure message="kept"/></testcase><testcase`, "what stands before it is kept"},
		"e.xml": {`<?xml version="1.0" encoding="EBCDIC"?><testsuite/>`, ""},
	} {
		_, told := imported(t, map[string]string{name: tt.data})
		if !strings.Contains(told, tt.told) {
			t.Errorf("%s: told %q, want %q", name, told, tt.told)
		}
	}
	if _, told := imported(t, map[string]string{"cov.xml": `<coverage/>`, "x.sarif": "nothing", "y.json": `{"runs":1}`}); told != "" {
		t.Errorf("other files are told: %s", told)
	}
}

// TestImportHostile leaves what must not stop or mislead an import.
func TestImportHostile(t *testing.T) {
	t.Parallel()
	dir := leave(t, map[string]string{"findings/good.json": `{"severity":"low","title":"kept"}`})
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(dir, "findings", "fifo.json"), 0o600), os.Symlink("/dev/zero", filepath.Join(dir, "findings", "zero.json")),
		os.Symlink("/etc", filepath.Join(dir, "etc")), os.Mkdir(filepath.Join(dir, "findings", "folder.json"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(dir, "findings", "huge.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(1<<40), big.Close()); err != nil {
		t.Fatal(err)
	}
	list, problems, err := Import(dir)
	if err != nil || len(list) != 1 || list[0].Title != "kept" || len(problems) != 1 {
		t.Errorf("%+v %v %v", list, problems, err)
	}
}

func TestImportIsBounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{"severity":"low","title":"t"}`+"\n", 50)
	im := &importer{limit: 30}
	if err := im.folder(leave(t, map[string]string{"findings/a.ndjson": many, "findings/b.ndjson": many})); err != nil || len(im.findings) != 30 || len(im.problems) != 1 {
		t.Errorf("%d findings, %v, %v", len(im.findings), im.problems, err)
	}
	list, told := imported(t, map[string]string{"findings/bad.ndjson": strings.Repeat("{}\n", 500)})
	if len(list) != 0 || strings.Count(told, "\n") != maxImportProblems || !strings.Contains(told, "and 480 more") {
		t.Errorf("%d lines are told", strings.Count(told, "\n"))
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(sarifFile))
	f.Add([]byte(`<testsuite><testcase name="a"><failure message="x"/></testcase></testsuite>`))
	f.Add([]byte("[{\"severity\":\"low\",\"title\":\"t\"},\n7]"))
	f.Add([]byte("{\"findings\":[{}]}\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		im := &importer{limit: 100}
		im.content("findings/x.json", data)
		for _, f := range im.findings {
			if err := f.Validate(); err != nil {
				t.Errorf("an invalid finding came in: %v", err)
			}
			line, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := artifacts.ParseFinding(line); err != nil || back.Title != strings.ToValidUTF8(f.Title, "\uFFFD") {
				t.Errorf("it cannot be read back: %v\n%s", err, line)
			}
			if f.Fingerprint() == "" || !artifacts.IsFingerprint(f.Fingerprint()) {
				t.Error(fmt.Sprint("no fingerprint: ", f))
			}
		}
	})
}

// TestImportIsLinear reads what would take hours if each line were tried with all
// that follows it.
func TestImportIsLinear(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"[\n", "{\"a\":\n", "{\n", "7\n", "\"\n", "[{},\n"} {
		if list, problems := parseFindings([]byte(strings.Repeat(line, 1<<18)), nil); len(list) > 0 || len(problems) == 0 {
			t.Errorf("%q: %d findings, %d problems", line, len(list), len(problems))
		}
	}
}
