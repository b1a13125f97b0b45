package report

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

// fullInput has every field filled, every list with one element at least.
func fullInput(t testing.TB) artifacts.ReportInput {
	t.Helper()
	id, start := idAt(t), time.Date(2026, 1, 2, 4, 0, 0, 5e8, time.FixedZone("", 3600))
	agent, err := superqode.ParseAgentID("claude")
	if err != nil {
		t.Fatal(err)
	}
	digest := superqode.NewDigest([32]byte{1})
	sum := strings.Repeat("0a", 32)
	arts := []artifacts.Artifact{
		{ID: "patch-001", Type: artifacts.TypePatch, Path: relPath(t, artifacts.SessionPatch(id)), SHA256: sum, Size: 7, Session: id},
		{ID: "test-unit-002", Type: artifacts.TypeTestUnit, Path: relPath(t, "generated-tests/unit/x/a_\xff.go"), SHA256: sum, Metadata: map[string]any{"target": "a.go"}},
		{ID: "fix-003", Type: artifacts.TypeFix, Path: relPath(t, artifacts.FixPatch("f-1")), SHA256: sum},
	}
	return artifacts.ReportInput{
		Result: artifacts.Result{
			SessionID: id, Mode: superqode.ModeWorktree, Origin: "/home/u/p", State: superqode.StatePreserved, ExitCode: 2,
			StartedAt: artifacts.At(start), EndedAt: artifacts.At(start.Add(1500 * time.Millisecond)), DurationSeconds: 1.5,
			Base: artifacts.Base{Digest: digest, Head: strings.Repeat("ab", 20), Files: 3, Bytes: 4}, Final: artifacts.Final{Digest: digest},
			Changes: []superqode.Change{
				{Path: relPath(t, "a.go"), Type: superqode.ChangeModified, LinesAdded: 3, LinesRemoved: 1, OldMode: 0o100644, NewMode: 0o100755, Agent: agent, FirstSeen: start},
				{Path: relPath(t, "n\xff"), OldPath: relPath(t, "o\xff"), Type: superqode.ChangeRenamed, Binary: true, LinesAdded: -1, LinesRemoved: -1},
			},
			Guard: artifacts.Guard{Layers: artifacts.Layers{Shim: "active", Hooks: "off", Kernel: "unavailable: no Landlock"}, Blocked: []artifacts.Blocked{
				{Operation: "commit", Command: []string{"git", "commit", "-m", "x"}, Layer: "shim", At: artifacts.At(start), Agent: agent}, {Operation: "reset", Layer: "kernel"}}},
			Artifacts: artifacts.Refs(arts), Revert: artifacts.Revert{Verified: true, Digest: digest, Method: "full"},
			Workspace: artifacts.Workspace{Path: "/w", Preserved: true}, OriginCheck: artifacts.OriginCheck{Differences: []string{"HEAD"}},
			Applied: &artifacts.Applied{
				Applied:   []artifacts.AppliedPath{{Change: superqode.Change{Path: relPath(t, "n\xff"), OldPath: relPath(t, "o"), Type: superqode.ChangeRenamed, LinesAdded: 1}, Merged: true}},
				Already:   []artifacts.AppliedPath{{Change: superqode.Change{Path: relPath(t, "b"), Type: superqode.ChangeDeleted}}},
				Conflicts: []artifacts.ApplyConflict{{Path: relPath(t, "c\xff"), Kind: "content", Message: "CONFLICT (content): Merge conflict in c\xff"}}, LeftOut: []string{"fifo"}, Salvage: "x/1",
			},
		},
		Command: []string{"sh", "-c", "exit 2"}, Agents: []string{"claude"}, Warnings: []string{"w"}, Artifacts: arts,
		Findings: []artifacts.Finding{
			{Severity: artifacts.SeverityHigh, Priority: 1, Title: "t", Confidence: new(0.5), File: "a.go", Lines: &artifacts.LineRange{Start: 1, End: 2}, Evidence: "e",
				SuggestedFix: "s", Category: "c", FoundBy: "x", Tags: []string{"g"}, Description: "d", PatchID: "fix-003"},
			{Severity: artifacts.SeverityLow, Priority: 3, Title: "u", File: "\xff"},
		},
		Coverage: artifacts.Coverage{Before: new(10.0), After: new(12.5)}, AllowSuggestions: true,
		Fixes: &artifacts.FixesReport{Enabled: true, Total: 1, Verified: 1, Fixes: []artifacts.Fix{{FindingID: "f-1", PatchID: "fix-003", Verified: true}}},
	}
}

// bareInput is what a session knows that never came to run anything.
func bareInput(t testing.TB) artifacts.ReportInput {
	t.Helper()
	return artifacts.ReportInput{Result: artifacts.Result{SessionID: idAt(t), Mode: superqode.ModeSnapshot, State: superqode.StateDone}}
}

// TestResultKeys holds the exact text that docs/formats.md shows: names, order,
// nothing null.

// nasty is what a session's program may put into any name, argument or text.
func nasty() []string {
	return []string{
		"<script>alert(1)</script>", "</details><img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![x](http://evil/x.png)",
		"\x1b[2J\x1b]0;title\a", "\x9b31m", "a|b|c", "`code` ``more``", "```\nfence\n```", "line\nbreak\r\n# heading", "::set-output name=a::b",
		"##[error]x", "\xff\xfe", "\u202egnp.exe", "zero\u200bwidth", "@everyone #1", "$math$", "*b* _i_ ~s~", "&lt;", "---", " ", "\\", "`", "\\`|`\\|",
		"www.evil.example https://evil.example", strings.Repeat("long", 3000),
	}
}

func nastyInput(t testing.TB) artifacts.ReportInput {
	t.Helper()
	in := fullInput(t)
	for _, n := range nasty() {
		p := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(n, "\x00", ""), "/", "_"), ".")
		if len(p) > 4000 {
			p = p[:4000]
		}
		in.Result.Changes = append(in.Result.Changes, superqode.Change{Path: relPath(t, p), OldPath: relPath(t, p), Type: superqode.ChangeRenamed})
		in.Result.Guard.Blocked = append(in.Result.Guard.Blocked, artifacts.Blocked{Operation: n, Command: []string{"git", n}, Layer: n})
		in.Artifacts = append(in.Artifacts, artifacts.Artifact{ID: n, Type: artifacts.Type(n), Path: relPath(t, p), SHA256: n})
		in.Findings = append(in.Findings, artifacts.Finding{Severity: artifacts.SeverityLow, Title: "t" + n, Category: n, Description: n, File: p, Lines: &artifacts.LineRange{Start: 1, End: 2},
			Evidence: n, SuggestedFix: n, FoundBy: n, Tags: []string{n}, RuleID: n, PatchID: n})
		in.Findings = append(in.Findings, artifacts.Finding{Severity: artifacts.SeverityLow, Title: "s" + n, File: p, Suppressed: &artifacts.Suppressed{Reason: n, By: n}})
		in.Setup = append(in.Setup, artifacts.SetupStep{Name: n, Kind: n, State: "failed", Reason: n, Output: n})
		in.Commands = append(in.Commands, artifacts.CommandRun{Run: 1, Command: []string{n}, ExitCode: 1, Limit: n, Output: n})
		in.Result.Agents = append(in.Result.Agents, artifacts.AgentRun{Command: n, Patch: n, Log: n, Conflicts: []string{n, n}})
		in.Fixes.Fixes = append(in.Fixes.Fixes, artifacts.Fix{FindingID: n, PatchID: n, Evidence: n})
		in.Command = append(in.Command, n)
		in.Agents, in.Warnings, in.Errors = append(in.Agents, n), append(in.Warnings, n), append(in.Errors, n)
		in.Result.Revert.Differences = append(in.Result.Revert.Differences, n)
		in.Result.OriginCheck.Differences = append(in.Result.OriginCheck.Differences, n)
	}
	in.Result.Guard.Layers = artifacts.Layers{Shim: nasty()[0], Hooks: nasty()[4], Kernel: nasty()[2]}
	in.Result.Revert.Method = "<b>"
	in.Result.Origin = "/tmp/<script>`|\n"
	in.Result.Workspace.Path = "/w/$(x)`'\n```"
	return in
}

// TestMarkdownIsHarmless looks at the raw text, as a terminal and a careless
// reader would. That Markdown parsers agree is checked by the structure: outside
// code spans and blocks no markup may stand that the report does not write itself.
func TestMarkdownIsHarmless(t *testing.T) {
	t.Parallel()
	md := markdownOf(t, artifacts.NewReport(nastyInput(t)))
	if !utf8.ValidString(md) {
		t.Error("the report is not UTF-8")
	}
	for _, r := range md {
		if r != '\n' && r != '\t' && (!unicode.IsPrint(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("the report holds %U", r)
		}
	}
	outside := withoutCode(t, md)
	for _, bad := range []string{"<script", "<img", "](javascript", "](http", "::set-output", "##[", "<b>", "https://", "http://", "www.", "@every"} {
		if strings.Contains(strings.ToLower(outside), bad) {
			t.Errorf("outside code the report holds %q", bad)
		}
	}
	for _, bad := range []string{"<script", "<img", "](javascript:", "\n::", "##["} {
		if body, _, _ := strings.Cut(md, "## What to do next"); strings.Contains(strings.ToLower(body), bad) {
			t.Errorf("the report holds %q", bad)
		}
	}
	for line := range strings.Lines(outside) {
		if strings.HasPrefix(line, "#") && !regexp.MustCompile(`^#{1,3} (CODE\n|Session\n|Errors|Warnings|Not as before|Differences in|Setup|Commands|Agents|Suppressed findings|Fixes|Changes|Guard|Findings|Artifacts|What to do|high:|low:)`).MatchString(line) {
			t.Errorf("a heading that is not ours: %q", line)
		}
		if strings.HasPrefix(line, "|") {
			if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n < 5 || n > 8 {
				t.Errorf("a row with %d bars: %q", n, line)
			}
		}
	}
}

// withoutCode takes code blocks and code spans out of Markdown, by the rules of
// CommonMark: a block ends at a fence at least as long, a span at a run of
// backticks of the same length.
func withoutCode(t *testing.T, md string) string {
	t.Helper()
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(md) {
		bare := strings.TrimRight(line, "\n")
		if fence != "" {
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, "`") == "" {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(bare, "```") && !strings.Contains(strings.TrimLeft(bare, "`"), "`") {
			fence = bare[:len(bare)-len(strings.TrimLeft(bare, "`"))]
			continue
		}
		for i := 0; i < len(line); {
			if line[i] == '\\' && i+1 < len(line) {
				out.WriteString(line[i : i+2])
				i += 2
				continue
			}
			if line[i] != '`' {
				out.WriteByte(line[i])
				i++
				continue
			}
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			end := spanEnd(line, i+n, n)
			if end < 0 {
				t.Errorf("a code span does not end: %.200q", line)
				return out.String()
			}
			out.WriteString("CODE")
			i = end
		}
	}
	if fence != "" {
		t.Error("a code block does not end")
	}
	return out.String()
}

func spanEnd(line string, from, n int) int {
	for i := from; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		if i += run; run == n {
			return i
		}
	}
	return -1
}

func TestMarkdownSays(t *testing.T) {
	t.Parallel()
	md := markdownOf(t, artifacts.NewReport(fullInput(t)))
	for _, want := range []string{
		"# `sh -c 'exit 2'`\n\n**Failed: exit code 2, 1 high finding**\n\nYour files are NOT as they were.\n", "- Command: `sh -c 'exit 2'`", "2026-01-02 03:00:02 UTC, after 1.5s",
		"## Changes: 2 paths, +3 −1 lines", "| modified | `a.go` | 3 | 1 | 100644 → 100755 | claude |", "| renamed | `o\\xff` → `n\\xff` | bin | bin |  |  |",
		"Revert: verified (full)", "Origin check: **NOT unchanged**: 1 difference", "## Guard: 2 operations refused", "kernel unavailable: no Landlock",
		"| `commit` | `git commit -m x` | history is the user's | shim | 2026-01-02 03:00:00 UTC | claude |", "### high: t", "at `a.go:1-2`", "Coverage: 10.0 % → 12.5 %",
		"git -C /home/u/p apply .superqode/qe-artifacts/patches/qe-20260102-030000-abcdea.patch", "workspace diff --session abcdea",
		"cd /w\n", "HEAD `abab", "- Applied: nothing: 1 conflict (after the check of the origin)",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	done := fullInput(t)
	done.Result.Applied.Conflicts = nil
	if md := markdownOf(t, artifacts.NewReport(done)); strings.Contains(md, "git -C") || !strings.Contains(md, "- Applied: 1 path, 1 more had that already; what was overwritten is in salvage x/1 (") {
		t.Errorf("the report of applied changes:\n%s", md)
	}
	bare := markdownOf(t, artifacts.NewReport(bareInput(t)))
	for _, want := range []string{"Revert: not checked", "Origin check: not checked", "What changed is not known.", "Base: 0 files"} {
		if !strings.Contains(bare, want) {
			t.Errorf("the bare report lacks %q:\n%s", want, bare)
		}
	}
	if strings.Contains(bare, "apply") {
		t.Error("there is nothing to apply")
	}
}

func TestNastyJSON(t *testing.T) {
	t.Parallel()
	data, err := artifacts.NewReport(nastyInput(t)).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) || !utf8.Valid(data) || strings.ContainsAny(string(data), "<\x1b") {
		t.Error("the JSON report is not harmless")
	}
}

func TestLongLists(t *testing.T) {
	t.Parallel()
	in := bareInput(t)
	for i := range maxRows + 5 {
		in.Result.Changes = append(in.Result.Changes, superqode.Change{Path: relPath(t, strings.Repeat("x", i+1)), Type: superqode.ChangeCreated})
	}
	if md := markdownOf(t, artifacts.NewReport(in)); !strings.Contains(md, "and 5 more") || strings.Count(md, "| created |") != maxRows {
		t.Error("a long list is not cut")
	}
}

func FuzzText(f *testing.F) {
	for _, n := range nasty() {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{code(s), cell(s), prose(s)} {
			if strings.ContainsAny(out, "\n\r\x1b") || !utf8.ValidString(out) {
				t.Fatalf("%q became %q", s, out)
			}
		}
		if out := withoutCode(t, code(s)+"\n"); out != "CODE\n" && !strings.HasSuffix(out, "blanks)\n") && s != "" {
			t.Fatalf("%q became more than a code span: %q", s, out)
		}
		if out := withoutCode(t, prose(s)+"\n"); strings.Contains(out, "CODE") {
			t.Fatalf("%q became code: %q", s, out)
		}
		if out := withoutCode(t, codeBlock(s)+"after\n"); out != "after\n" {
			t.Fatalf("%q left its block: %q", s, out)
		}
		if out := cell(s); strings.Contains(strings.ReplaceAll(out, `\|`, ""), "|") || strings.Contains(out, `\\|`) {
			t.Fatalf("%q became %q", s, out)
		}
	})
}

// TestBarsOfCells: a bar is read as one on GitHub, and ends no cell.
func TestBarsOfCells(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"a | b": "`a \\| b`", `a\|b`: "`a\\\\x7cb`", "||": "`\\|\\|`"} {
		if got := cell(s); got != want {
			t.Errorf("%q became %s, not %s", s, got, want)
		}
	}
}

func markdownOf(t testing.TB, rep artifacts.Report) string {
	t.Helper()
	var b strings.Builder
	if err := Markdown(&b, rep, ""); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func idAt(t testing.TB) superqode.SessionID {
	t.Helper()
	id, err := superqode.ParseSessionID("qe-20260102-030000-abcdea")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestFilesWrittenAgain: a report that is written again replaces the first.
func TestFilesWrittenAgain(t *testing.T) {
	t.Parallel()
	origin, in := t.TempDir(), fullInput(t)
	f := Files{Dir: t.TempDir(), Origin: origin, Session: in.Result.SessionID}
	var first []artifacts.Artifact
	for i := range 2 {
		in.Result.DurationSeconds += float64(i)
		list, err := f.Write(t.Context(), artifacts.NewReport(in))
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		for k, ext := range []string{"json", "md", "html"} {
			if list[k].Path.String() != "qr/qr-20260102-qe-20260102-030000-abcdea."+ext {
				t.Errorf("written to %v", list)
			}
			if first != nil && list[k].ID != first[k].ID {
				t.Errorf("written again under other ids: %v, %v", list, first)
			}
		}
		first = list
	}
	store, err := artifacts.Open(origin)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := store.Verify(t.Context()); err != nil || !c.OK() || c.Checked != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if rep, err := f.Read(t.Context()); err != nil || rep.DurationSeconds != in.Result.DurationSeconds {
		t.Errorf("read back: %v, %v", rep.DurationSeconds, err)
	}
}
