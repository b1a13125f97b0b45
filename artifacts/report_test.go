package artifacts

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func rel(t testing.TB, p string) superqode.RelPath {
	t.Helper()
	r, err := superqode.ParseRelPath(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fullInput has every field filled, every list with one element at least.
func fullInput(t testing.TB) ReportInput {
	t.Helper()
	id, start := sessionAt(t, 0), time.Date(2026, 1, 2, 4, 0, 0, 5e8, time.FixedZone("", 3600))
	agent, err := superqode.ParseAgentID("claude")
	if err != nil {
		t.Fatal(err)
	}
	digest := superqode.NewDigest([32]byte{1})
	sum := strings.Repeat("0a", 32)
	arts := []Artifact{
		{ID: "patch-001", Type: TypePatch, Path: rel(t, SessionPatch(id)), SHA256: sum, Size: 7, Session: id},
		{ID: "test-unit-002", Type: TypeTestUnit, Path: rel(t, "generated-tests/unit/x/a_\xff.go"), SHA256: sum, Metadata: map[string]any{"target": "a.go"}},
		{ID: "fix-003", Type: TypeFix, Path: rel(t, FixPatch("f-1")), SHA256: sum},
	}
	return ReportInput{
		Result: Result{
			SessionID: id, Mode: superqode.ModeWorktree, Origin: "/home/u/p", State: superqode.StatePreserved, ExitCode: 2,
			StartedAt: At(start), EndedAt: At(start.Add(1500 * time.Millisecond)), DurationSeconds: 1.5,
			Base: Base{Digest: digest, Head: strings.Repeat("ab", 20), Files: 3, Bytes: 4}, Final: Final{Digest: digest},
			Changes: []superqode.Change{
				{Path: rel(t, "a.go"), Type: superqode.ChangeModified, LinesAdded: 3, LinesRemoved: 1, OldMode: 0o100644, NewMode: 0o100755, Agent: agent, FirstSeen: start},
				{Path: rel(t, "n\xff"), OldPath: rel(t, "o\xff"), Type: superqode.ChangeRenamed, Binary: true, LinesAdded: -1, LinesRemoved: -1},
			},
			Guard: Guard{Layers: Layers{Shim: "active", Hooks: "off", Kernel: "unavailable: no Landlock"}, Blocked: []Blocked{
				{Operation: "commit", Command: []string{"git", "commit", "-m", "x"}, Layer: "shim", At: At(start), Agent: agent}, {Operation: "reset", Layer: "kernel"}}},
			Artifacts: Refs(arts), Revert: Revert{Verified: true, Digest: digest, Method: "full"},
			Workspace: Workspace{Path: "/w", Preserved: true}, OriginCheck: OriginCheck{Differences: []string{"HEAD"}},
			Setup: []SetupStep{{Name: "in/a", Kind: "input", State: "applied"}}, Error: &Failure{Kind: "conflict", Paths: []string{"c"}}, Included: []superqode.HostPath{".env", "n\xff"},
			Applied: &Applied{
				Applied:   []AppliedPath{{superqode.Change{Path: rel(t, "n\xff"), OldPath: rel(t, "o"), Type: superqode.ChangeRenamed, LinesAdded: 1}, true}},
				Already:   []AppliedPath{{Change: superqode.Change{Path: rel(t, "b"), Type: superqode.ChangeDeleted}}},
				Conflicts: []ApplyConflict{{rel(t, "c\xff"), "content", "CONFLICT (content): Merge conflict in c\xff"}}, LeftOut: []string{"fifo"}, Salvage: "x/1",
			},
		},
		Command: []string{"sh", "-c", "exit 2"}, Agents: []string{"claude"}, Warnings: []string{"w"}, Artifacts: arts,
		Findings: []Finding{
			{Severity: SeverityHigh, Priority: 1, Title: "t", Confidence: new(0.5), File: "a.go", Lines: &LineRange{1, 2}, Evidence: "e",
				SuggestedFix: "s", Category: "c", FoundBy: "x", Tags: []string{"g"}, Description: "d", PatchID: "fix-003"},
			{Severity: SeverityLow, Priority: 3, Title: "u", File: "\xff"},
		},
		Coverage: Coverage{Before: new(10.0), After: new(12.5)}, AllowSuggestions: true,
		Fixes: &FixesReport{Enabled: true, Total: 1, Verified: 1, Fixes: []Fix{{FindingID: "f-1", PatchID: "fix-003", Verified: true}}},
	}
}

// bareInput is what a session knows that never came to run anything.
func bareInput(t testing.TB) ReportInput {
	t.Helper()
	return ReportInput{Result: Result{SessionID: sessionAt(t, 0), Mode: superqode.ModeSnapshot, State: superqode.StateDone}}
}

// TestResultKeys holds the exact text that docs/formats.md shows: names, order,
// nothing null.
func TestResultKeys(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(bareInput(t).Result)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema_version":1,"session_id":"qe-20260102-030000-abcdea","mode":"snapshot","origin":"","state":"done","exit_code":0,"timed_out":false,` +
		`"started_at":"","ended_at":"","duration_seconds":0,"base":{"digest":"","head":"","files":0,"bytes":0},"final":{"digest":""},"changes":[],` +
		`"guard":{"policy":"","allowed_by":"","layers":{"shim":"","hooks":"","kernel":""},"kernel":{"layer":"","missing":[]},"blocked":[],"kernel_refusals":[]},"artifacts":[],"revert":{"verified":false,"digest":"","method":"","differences":[]},` +
		`"workspace":{"path":"","preserved":false},"origin_check":{"unchanged":false,"differences":[],"method":"","not_covered":[]},"setup":[],"error":null,"included_ignored":[]}`
	if string(got) != want {
		t.Errorf("a result is\n%s\nwant\n%s", got, want)
	}
	full, err := json.Marshal(fullInput(t).Result)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"started_at":"2026-01-02T03:00:00.5Z"`, `"head":"abab`, `"files":3`,
		`{"path":"a.go","type":"modified","old_path":"","lines_added":3,"lines_removed":1,"agent_id":"claude","old_mode":"100644","new_mode":"100755","binary":false,"first_seen":"2026-01-02T03:00:00.5Z"}`,
		`{"operation":"commit","command":["git","commit","-m","x"],"layer":"shim","at":"2026-01-02T03:00:00.5Z","agent_id":"claude"}`,
		`{"operation":"reset","command":[],"layer":"kernel","at":"","agent_id":""}`,
		`{"id":"patch-001","type":"patch","path":"patches/qe-20260102-030000-abcdea.patch","sha256":"` + strings.Repeat("0a", 32) + `","size":7}`,
		`"path_bytes":"` /* of the name that is not UTF-8 */, `"old_path_bytes":"`,
	} {
		if !strings.Contains(string(full), want) {
			t.Errorf("a result lacks %s\n%s", want, full)
		}
	}
	var back Result
	if err := json.Unmarshal(full, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(back); err != nil || string(again) != string(full) {
		t.Errorf("read and written again (%v):\n%s\nwas\n%s", err, again, full)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	of := func(list ...Severity) (f []Finding) {
		for _, s := range list {
			f = append(f, Finding{Severity: s, Title: "t", Priority: s.DefaultPriority()})
		}
		return f
	}
	ran := []string{"true"}
	const c, h, m, l, i = SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow, SeverityInfo
	for _, tt := range []struct {
		name string
		in   ReportInput
		want Verdict
	}{
		{"nothing", ReportInput{Command: ran}, VerdictPass},
		{"info and low", ReportInput{Command: ran, Findings: of(i, i, i, i, l, l, l, l)}, VerdictPass},
		{"three medium", ReportInput{Command: ran, Findings: of(m, m, m)}, VerdictPass},
		{"nothing ran", ReportInput{}, VerdictBlocked},
		{"nothing ran, low", ReportInput{Findings: of(l)}, VerdictBlocked},
		{"four medium", ReportInput{Findings: of(m, m, m, m)}, VerdictConditional},
		{"high", ReportInput{Findings: of(h)}, VerdictConditional},
		{"critical", ReportInput{Findings: of(i, c, h)}, VerdictFail},
		{"command failed", ReportInput{Result: Result{ExitCode: 1}}, VerdictFail},
		{"command failed, high", ReportInput{Result: Result{ExitCode: 1}, Findings: of(h)}, VerdictFail},
		{"error", ReportInput{Errors: []string{"x"}}, VerdictBlocked},
		{"error and critical", ReportInput{Errors: []string{"x"}, Findings: of(c)}, VerdictBlocked},
		{"timed out", ReportInput{Result: Result{TimedOut: true, ExitCode: 124}}, VerdictBlocked},
		{"revert left differences", ReportInput{Result: Result{Revert: Revert{Differences: []string{"a"}}}}, VerdictBlocked},
		{"invalid finding", ReportInput{Findings: []Finding{{Severity: "odd", Title: "t"}}}, VerdictBlocked},
	} {
		r := NewReport(tt.in)
		if r.Verdict != tt.want {
			t.Errorf("%s: verdict %s, want %s", tt.name, r.Verdict, tt.want)
		}
		if want := map[bool]string{true: "correct", false: "incorrect"}[tt.want == VerdictPass]; r.Correctness != want {
			t.Errorf("%s: %s", tt.name, r.Correctness)
		}
		if r.Explanation == "" || r.Metadata.Errors != len(r.Run.Errors) {
			t.Errorf("%s: explanation %q, %d errors of %q", tt.name, r.Explanation, r.Metadata.Errors, r.Run.Errors)
		}
	}
}

// TestExplanation says what is to be known first.
func TestExplanation(t *testing.T) {
	t.Parallel()
	find := func(list ...Severity) (f []Finding) {
		for _, s := range list {
			f = append(f, Finding{Severity: s, Title: "t", Priority: s.DefaultPriority()})
		}
		return f
	}
	run := func(name string, code int, conflicts ...string) AgentRun {
		id, err := superqode.ParseAgentID(name)
		if err != nil {
			t.Fatal(err)
		}
		return AgentRun{Agent: id, ExitCode: code, Conflicts: conflicts}
	}
	for _, tt := range []struct {
		in   ReportInput
		want string
	}{
		{ReportInput{Findings: find(SeverityCritical, SeverityHigh, SeverityHigh, SeverityInfo)}, "Findings: 1 critical, 2 high, 1 info."},
		{ReportInput{Result: Result{ExitCode: 2}}, "The command ended with exit code 2."},
		{ReportInput{Result: Result{ExitCode: 3, Agents: AgentRuns{run("ann", 0), run("bob", 3, "a.go", "b.go"), run("cat", 0, "a.go")}}}, "Of 3 agents bob ended with exit code 3; 2 paths could not be merged: a.go, b.go."},
		{ReportInput{Result: Result{ExitCode: 4, Agents: AgentRuns{run("ann", 0), run("bob", 0, "1", "2", "3", "4")}}}, "Of 2 agents 4 paths could not be merged: 1, 2, 3, …."},
	} {
		if got := NewReport(tt.in).Explanation; got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestReportCounts(t *testing.T) {
	t.Parallel()
	in := fullInput(t)
	in.Findings = append(in.Findings, Finding{ID: "finding-001", Severity: SeverityMedium, Priority: 0, Title: "v", Confidence: new(1.0)})
	r := NewReport(in)
	if r.FindingsCount != 3 || r.CriticalCount != 0 || r.WarningCount != 2 || r.PatchesCount != 2 || r.TestsCount != 1 {
		t.Errorf("flat counts: %+v", r)
	}
	want := Summary{TotalFindings: 3, BySeverity: SeverityCounts{High: 1, Medium: 1, Low: 1}, ByPriority: PriorityCounts{P0: 1, P1: 1, P3: 1}, TestsGenerated: 1, PatchesGenerated: 2}
	if r.Summary != want {
		t.Errorf("summary %+v, want %+v", r.Summary, want)
	}
	if *r.Confidence != 0.75 || *r.Coverage.Change != 2.5 {
		t.Errorf("confidence %v, coverage change %v", *r.Confidence, *r.Coverage.Change)
	}
	if r.Findings[0].ID != "finding-002" || r.Findings[1].ID != "finding-003" {
		t.Errorf("ids %q %q: one is taken", r.Findings[0].ID, r.Findings[1].ID)
	}
	if in.Findings[0].ID != "" || in.Coverage.Change != nil {
		t.Error("NewReport changed its input")
	}
	p := r.Artifacts.Patches
	if len(p) != 2 || *p[0].LinesAdded != 3 || *p[0].LinesRemoved != 1 || p[1].LinesAdded != nil {
		t.Errorf("patches %+v", p)
	}
	if r.Artifacts.Tests[0].Type != "unit" || r.Artifacts.Tests[0].Target != "a.go" {
		t.Errorf("tests %+v", r.Artifacts.Tests)
	}
	bare := NewReport(bareInput(t))
	if bare.Confidence != nil || bare.Coverage != (Coverage{}) || bare.VerifiedFixes != nil || bare.Metadata.FilesAnalyzed != nil {
		t.Errorf("something is claimed that was not measured: %+v", bare)
	}
	data, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseReport(data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.JSON(); err != nil || string(again) != string(data) {
		t.Errorf("read and written again (%v): %s", err, again)
	}
	for _, bad := range []string{"", "{}", `{"schema":"other"}`, "[]"} {
		if _, err := ParseReport([]byte(bad)); err == nil {
			t.Errorf("ParseReport(%q) succeeded", bad)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	id := sessionAt(t, 0)
	agent, err := superqode.ParseAgentID("a.b")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{SessionPatch(id), AgentPatch(id, agent), FixPatch("f-1"), SessionLog(id, "guard"), ReportFile(id, "html")}
	const s = "qe-20260102-030000-abcdea"
	want := []string{"patches/" + s + ".patch", "patches/" + s + "-a.b.patch", "patches/fix-f-1.patch", "logs/" + s + "-guard.log", "qr/qr-20260102-" + s + ".html"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	for _, ty := range Types() {
		if p, err := ParseType(string(ty)); err != nil || p != ty {
			t.Error(ty, err)
		}
		if want := "x-" + fmt.Sprintf("%03d", 7); !strings.HasSuffix(makeID("x", 7), want) {
			t.Error(makeID("x", 7))
		}
	}
	if _, err := ParseType("evidence"); err == nil {
		t.Error("an unknown type was accepted")
	}
	if got := makeID(TypeTestUnit, 1234); got != "test-unit-1234" {
		t.Error(got)
	}
}

func TestReportWithSuppressed(t *testing.T) {
	t.Parallel()
	in := bareInput(t)
	in.Command = []string{"true"}
	in.Findings = []Finding{{Severity: SeverityCritical, Title: "x", Suppressed: &Suppressed{Reason: "r", By: "b"}}, {Severity: SeverityLow, Title: "y"}}
	rep := NewReport(in)
	if rep.Verdict != VerdictPass || rep.FindingsCount != 1 || rep.CriticalCount != 0 || rep.Summary.Suppressed != 1 || len(rep.Suppressed) != 1 {
		t.Errorf("%s %+v", rep.Verdict, rep.Summary)
	}
	data, err := rep.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseReport(data)
	if err != nil || back.Suppressed[0].Suppressed.Reason != "r" {
		t.Errorf("%+v %v", back.Suppressed, err)
	}
	again := back.WithFindings(back.AllFindings())
	if again.Verdict != rep.Verdict || again.Summary != rep.Summary {
		t.Errorf("judged again it is %+v", again.Summary)
	}
}
