package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/redact"
)

// hostile is what a session's program may put wherever it can.
const hostile = "<script>alert(1)</script></style></title>\"'><img src=x onerror=alert(2)> ](javascript:alert(3)) ::set-output name=a::b \x1b[31m \u2028 \u202e \xff {{.CSS}} <!--"

func relPath(t testing.TB, s string) superqode.RelPath {
	t.Helper()
	p, err := superqode.ParseRelPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func agent(t testing.TB, s string) superqode.AgentID {
	t.Helper()
	id, err := superqode.ParseAgentID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func session(t testing.TB) superqode.SessionID {
	t.Helper()
	id, err := superqode.ParseSessionID("qe-20261121-101112-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// render makes a page and returns it with its parse tree.
func render(t testing.TB, rep artifacts.Report, opt HTMLOptions) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, rep, opt); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

// elements returns the elements that are called tag; "" gives all.
func elements(n *html.Node, tag string) (out []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && (tag == "" || d.Data == tag) {
			out = append(out, d)
		}
	}
	return out
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func byClass(n *html.Node, class string) (out []*html.Node) {
	for _, e := range elements(n, "") {
		for c := range strings.FieldsSeq(attr(e, "class")) {
			if c == class {
				out = append(out, e)
			}
		}
	}
	return out
}

// hostileReport has hostile in every field that a session's program can fill.
func hostileReport(t testing.TB) (artifacts.Report, HTMLOptions) {
	at := artifacts.At(time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC))
	name := strings.ReplaceAll(hostile, "\x00", "")
	change := superqode.Change{Path: relPath(t, name), OldPath: relPath(t, "old/"+name), Type: superqode.ChangeRenamed, LinesAdded: 1, LinesRemoved: 1, OldMode: 0o100644, NewMode: 0o100755, FirstSeen: at.Time}
	odd := superqode.Change{Path: relPath(t, "dir\n"+hostile+"/x.go"), Type: superqode.ChangeCreated, LinesAdded: 3, NewMode: 0o100644}
	rep := artifacts.NewReport(artifacts.ReportInput{
		Result: artifacts.Result{
			SessionID: session(t), Mode: superqode.ModeWorktree, Origin: "/tmp/" + hostile, State: superqode.StatePreserved, StartedAt: at, EndedAt: at,
			Changes:     []superqode.Change{change, odd},
			Guard:       artifacts.Guard{Layers: artifacts.Layers{Shim: "active", Hooks: hostile, Kernel: "unavailable: " + hostile}, Blocked: []artifacts.Blocked{{Operation: hostile, Command: []string{"git", hostile, "\x00"}, Layer: hostile, At: at}}},
			Artifacts:   []artifacts.Ref{{ID: hostile, Type: artifacts.Type(hostile), Path: relPath(t, "evidence/javascript:alert(1)/"+hostile), SHA256: hostile}},
			Workspace:   artifacts.Workspace{Path: "/w/" + hostile, Preserved: true},
			OriginCheck: artifacts.OriginCheck{Differences: []string{hostile}},
			Agents: artifacts.AgentRuns{{Agent: agent(t, "bob"), Command: hostile, Changes: []superqode.Change{odd}, Conflicts: []string{hostile},
				Patch: "patches/" + hostile, Log: "javascript:" + hostile, Workspace: artifacts.Workspace{Path: hostile, Preserved: true}}},
		},
		Command: []string{"sh", "-c", hostile}, Agents: []string{hostile}, Errors: []string{hostile}, Warnings: []string{hostile},
		Findings: []artifacts.Finding{
			{Severity: artifacts.SeverityHigh, Title: hostile, Category: hostile, Description: hostile + "\n" + hostile, File: name, Lines: &artifacts.LineRange{Start: 1, End: 1},
				Evidence: hostile, SuggestedFix: hostile, FoundBy: hostile, Tags: []string{hostile}},
		},
		Setup:    []artifacts.SetupStep{{Name: hostile, Kind: hostile, State: "failed", Reason: hostile, Output: hostile}},
		Commands: []artifacts.CommandRun{{Run: 1, Command: []string{hostile}, ExitCode: 1, Limit: hostile, Output: hostile + "\n::error::x", StartedAt: at}},
	})
	patch := fmt.Sprintf("diff --git a/old b/new\nsimilarity index 50%%\nrename from \"%s\"\nrename to \"%s\"\n--- \"a/%s\"\n+++ \"b/%s\"\n@@ -1,1 +1,1 @@ %s\n-old\n+%s\n",
		quoteGit("old/"+name), quoteGit(name), quoteGit("old/"+name), quoteGit(name), hostile, hostile)
	return rep, HTMLOptions{Patches: []Patch{{Path: "patches/" + hostile, Data: []byte(patch)}}}
}

func quoteGit(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestHTMLTakesASessionAsData(t *testing.T) {
	t.Parallel()
	rep, opt := hostileReport(t)
	page, doc := render(t, rep, opt)
	if n := len(elements(doc, "script")); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if n := len(elements(doc, "style")); n != 1 {
		t.Errorf("%d styles", n)
	}
	for _, tag := range []string{"img", "iframe", "object", "embed", "base", "svg", "link"} {
		if len(elements(doc, tag)) > 0 {
			t.Errorf("an element %s", tag)
		}
	}
	for _, e := range elements(doc, "") {
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" {
				t.Errorf("<%s> has %s=%q", e.Data, a.Key, a.Val)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "../") {
				t.Errorf("a link to %q", a.Val)
			}
		}
	}
	for _, bad := range []string{"\x1b", "\u202e", "\u2028", "\xff", "<img", "<script>alert"} {
		if strings.Contains(page, bad) {
			i := strings.Index(page, bad)
			t.Errorf("%q stands in the page: %q", bad, page[max(0, i-150):i+5])
		}
	}
	added := byClass(doc, "a")
	if len(added) != 1 || !strings.Contains(textOf(added[0]), `<script>alert(1)</script>`) || !strings.Contains(textOf(added[0]), `\u202e`) {
		t.Errorf("the added line is not shown as it is: %v", added)
	}
	if len(byClass(added[0], "x")) < 4 {
		t.Error("escapes cannot be told from text")
	}
	if n := len(byClass(doc, "fd")); n != 1 {
		t.Errorf("%d findings in the diff", n)
	}
}

func TestHTMLPolicyNamesItsOwnScriptAndStyle(t *testing.T) {
	t.Parallel()
	rep, opt := hostileReport(t)
	_, doc := render(t, rep, opt)
	csp := ""
	for _, m := range elements(doc, "meta") {
		if attr(m, "http-equiv") == "Content-Security-Policy" {
			csp = attr(m, "content")
		}
	}
	for _, tag := range []string{"script", "style"} {
		if want := tag + "-src '" + hash([]byte(textOf(elements(doc, tag)[0]))) + "'"; !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %s", csp, want)
		}
	}
	if !strings.HasPrefix(csp, "default-src 'none';") {
		t.Errorf("the policy begins with %q", csp)
	}
}

// change is one path of a small report.
func change(t testing.TB, kind superqode.ChangeType, p string, lines ...int) superqode.Change {
	c := superqode.Change{Path: relPath(t, p), Type: kind, OldMode: 0o100644, NewMode: 0o100644}
	if len(lines) == 2 {
		c.LinesAdded, c.LinesRemoved = lines[0], lines[1]
	}
	return c
}

func small(t testing.TB, findings []artifacts.Finding, changes ...superqode.Change) artifacts.Report {
	return artifacts.NewReport(artifacts.ReportInput{
		Result:  artifacts.Result{SessionID: session(t), Mode: superqode.ModeWorktree, Origin: "/o", State: superqode.StateDone, Changes: changes},
		Command: []string{"true"}, Findings: findings,
	})
}

const patchOfAll = `diff --git a/a.go b/a.go
index 1111111..2222222 100644
--- a/a.go
+++ b/a.go
@@ -1,3 +1,4 @@ package a
 package a
 
-func one() {}
+func two() {}
+// --- x
diff --git a/bin b/bin
index 1111111..2222222 100644
GIT binary patch
literal 3
Kc${<hc?$pl0RRC20VDwc

literal 0
HcmV?d00001

diff --git a/gone b/gone
deleted file mode 100644
index 1111111..0000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-last
\ No newline at end of file
diff --git a/mode.sh b/mode.sh
old mode 100644
new mode 100755
diff --git a/broken b/broken
--- a/broken
+++ b/broken
@@ -1,9 +1,9 @@
 too short
diff --git "a/na\377me" "b/na\377me"
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ "b/na\377me"
@@ -0,0 +1 @@
+bytes
`

func TestHTMLDiffs(t *testing.T) {
	t.Parallel()
	findings := []artifacts.Finding{
		{Severity: artifacts.SeverityLow, Title: "in", File: "a.go", Lines: &artifacts.LineRange{Start: 3, End: 3}},
		{Severity: artifacts.SeverityLow, Title: "out", File: "a.go", Lines: &artifacts.LineRange{Start: 99, End: 100}},
		{Severity: artifacts.SeverityLow, Title: "elsewhere", File: "other.go"},
	}
	binary := change(t, superqode.ChangeModified, "bin")
	binary.Binary = true
	mode := change(t, superqode.ChangeMode, "mode.sh")
	mode.NewMode = 0o100755
	link := change(t, superqode.ChangeDeleted, "gone", 0, 1)
	link.OldMode = 0o120000
	_, doc := render(t, small(t, nil, link), HTMLOptions{Patches: []Patch{{Path: "patches/p.patch", Data: []byte(patchOfAll)}}})
	if is := textOf(byClass(doc, "diff")[0]); !strings.Contains(is, "a symbolic link") || strings.Contains(is, "newline") {
		t.Errorf("a link is shown as %q", is)
	}
	rep := small(t, findings, change(t, superqode.ChangeModified, "a.go", 2, 1), binary, change(t, superqode.ChangeDeleted, "gone", 0, 1), mode,
		change(t, superqode.ChangeModified, "broken", 1, 1), change(t, superqode.ChangeCreated, "na\xffme", 1, 0), change(t, superqode.ChangeModified, "unpatched", 1, 1))
	_, doc = render(t, rep, HTMLOptions{Patches: []Patch{{Path: "patches/p.patch", Data: []byte(patchOfAll)}}})
	shown := map[string]string{}
	for _, f := range byClass(doc, "file") {
		shown[attr(f, "data-path")] = textOf(byClass(f, "diff")[0])
	}
	for _, tt := range []struct{ path, want string }{
		{"a.go ", "func two() {}"}, {"a.go ", "// --- x"}, {"a.go ", "low out"}, {"a.go ", "outside of this diff"}, {"bin ", "binary contents"},
		{"gone ", "no newline at the end"}, {"mode.sh ", "mode 100644 → 100755"}, {"broken ", "could not be read"}, {`na\xffme `, "bytes"}, {"unpatched ", "not in the patch"},
	} {
		if !strings.Contains(shown[tt.path], tt.want) {
			t.Errorf("%s: %q lacks %q", tt.path, shown[tt.path], tt.want)
		}
	}
	inside := byClass(doc, "ch")
	if len(inside) < 2 || !strings.Contains(textOf(inside[0].Parent), "low in") {
		t.Error("the finding does not stand at its line")
	}
	if len(byClass(doc, "finding")) != 3 {
		t.Error("not every finding is listed")
	}
	if kw := elements(byClass(doc, "file")[0], "i"); len(kw) == 0 || attr(kw[0], "class") != "k" || textOf(kw[0]) != "package" {
		t.Error("the code is not highlighted")
	}
}

func TestHTMLIsBounded(t *testing.T) {
	t.Parallel()
	var changes []superqode.Change
	var patch strings.Builder
	for i := range maxFiles + 10 {
		p := fmt.Sprintf("d%d/f%d.txt", i%7, i)
		changes = append(changes, change(t, superqode.ChangeCreated, p, 20, 0))
		fmt.Fprintf(&patch, "diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1,20 @@\n%s", p, p, p, strings.Repeat("+line\n", 20))
	}
	long := change(t, superqode.ChangeCreated, "a-long.txt", 3000, 0)
	changes = append(changes, long)
	fmt.Fprintf(&patch, "diff --git a/a-long.txt b/a-long.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a-long.txt\n@@ -0,0 +1,3000 @@\n+%s\n%s", strings.Repeat("x", 1<<20-100), strings.Repeat("+line\n", 2999))
	page, doc := render(t, small(t, nil, changes...), HTMLOptions{Patches: []Patch{{Path: "patches/p.patch", Data: []byte(patch.String())}}})
	if len(page) > 4<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if n := len(byClass(doc, "l")); n > maxDiffRows {
		t.Errorf("%d lines of diff", n)
	}
	if n := len(byClass(doc, "file")); n != maxFiles {
		t.Errorf("%d paths", n)
	}
	if !strings.Contains(page, "and 11 more paths") || !strings.Contains(page, "more of this diff") || strings.Contains(page, strings.Repeat("x", maxLine+1)) {
		t.Error("what was left out is not told")
	}
}

func TestHTMLMasksTheDiff(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/k b/k\nnew file mode 100644\n--- /dev/null\n+++ b/k\n@@ -0,0 +1,3 @@\n+before\n+KEY\n+BODY\n"
	mask := func(s string) string { return strings.ReplaceAll(s, "KEY\nBODY", "***") }
	page, _ := render(t, small(t, nil, change(t, superqode.ChangeCreated, "k", 3, 0)), HTMLOptions{Mask: mask, Patches: []Patch{{Path: "p", Data: []byte(patch)}}})
	if strings.Contains(page, "BODY") || !strings.Contains(page, "***") {
		t.Error("a secret of two lines is shown")
	}
}

func TestHTMLAgents(t *testing.T) {
	t.Parallel()
	rep := small(t, nil, change(t, superqode.ChangeModified, "a.go", 1, 1), change(t, superqode.ChangeModified, "b.go", 1, 1))
	rep.Run.Agents = artifacts.AgentRuns{
		{Agent: agent(t, "ann"), Changes: rep.Changes[:1], Patch: "patches/ann.patch"},
		{Agent: agent(t, "bob"), Changes: rep.Changes, ExitCode: 3},
	}
	_, doc := render(t, rep, HTMLOptions{})
	var got []string
	for _, f := range byClass(doc, "file") {
		got = append(got, attr(f, "data-path")+":"+attr(f, "data-agents"))
	}
	if want := "a.go :ann bob,b.go :bob"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(byClass(doc, "agent")) != 2 {
		t.Error("the agents are not shown")
	}
}

// TestHTMLConflicts looks for both sides of each place where two agents collided.
func TestHTMLConflicts(t *testing.T) {
	t.Parallel()
	rep := small(t, nil, change(t, superqode.ChangeModified, "d/a.go", 1, 1))
	rep.Run.Agents = artifacts.AgentRuns{{Agent: agent(t, "ann")}, {Agent: agent(t, "bob"), Conflicts: []string{"d/a.go"}}}
	rep.Run.Warnings = []string{redact.PatchHolds + "a secret: d/a.go:1 (token)"}
	marked := "1\n<<<<<<< ann\nann's\n||||||| base\n=======\nbob's <b>\n>>>>>>> bob\n2\n<<<<<<< ann\ntoken\n||||||| base\n3\n=======\n=======\n>>>>>>> bob\n<<<<<<< ann\ncut"
	mask := func(s string) string { return strings.ReplaceAll(s, "token", "[masked]") }
	_, doc := render(t, rep, HTMLOptions{Mask: mask, Conflicts: []Patch{{Agent: "bob", Path: "evidence/qe-x/conflicts/bob/d/a.go.conflict", Data: []byte(marked)}}})
	if got := textOf(byClass(doc, "verdict")[0]); !strings.Contains(got, "Needs a look: 1 conflict, a secret in the patch") {
		t.Errorf("the verdict is %q", got)
	}
	var got []string
	for _, card := range byClass(doc, "loud") {
		got = append(got, strings.Join(strings.Fields(textOf(card)), " "))
	}
	want := []string{
		"Warnings" + rep.Run.Warnings[0],
		"Conflicts: what both sides wrote d/a.go, line 2 annann'sbobbob's <b> d/a.go, line 3 ann[masked]bob=======",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestHTMLLinks holds that an address is a link to itself, and nothing else is one.
func TestHTMLLinks(t *testing.T) {
	t.Parallel()
	rep := small(t, []artifacts.Finding{{Severity: artifacts.SeverityLow, Title: "t", Description: "See https://a.example/x?y=1&z=%22#f), javascript:alert(1) http://b.example."}})
	_, doc := render(t, rep, HTMLOptions{})
	var got []string
	for _, a := range elements(byClass(doc, "prose")[0], "a") {
		got = append(got, attr(a, "href"), textOf(a))
	}
	if want := []string{"https://a.example/x?y=1&z=%22#f", "https://a.example/x?y=1&z=%22#f", "http://b.example", "http://b.example"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHTMLSaysFirstWhatMatters looks for what a person wants to know at once: what
// failed and its last words, whether the own files are untouched, what to do.
func TestHTMLSaysFirstWhatMatters(t *testing.T) {
	t.Parallel()
	rep := small(t, nil, change(t, superqode.ChangeModified, "a.go", 1, 1))
	rep.OriginCheck.Unchanged = true
	rep.Run.ExitCode, rep.Verdict = 2, artifacts.VerdictFail
	rep.Run.Commands = []artifacts.CommandRun{{Run: 1, Command: []string{"make"}, ExitCode: 2, Output: strings.Repeat("early\n", 20) + "panic: late\n</pre><script>\n"}, {Run: 2, Output: "fine"}}
	rep.Run.Workspace = artifacts.Workspace{Path: "/kept", Preserved: true}
	_, doc := render(t, rep, HTMLOptions{})
	top := textOf(byClass(doc, "verdict")[0])
	for _, want := range []string{"Failed: exit code 2", "Your files are unchanged", "panic: late", "</pre><script>"} {
		if !strings.Contains(top, want) {
			t.Errorf("%q is not at the top: %s", want, top)
		}
	}
	if strings.Count(top, "early") != maxLastLines-2 {
		t.Errorf("%d early lines", strings.Count(top, "early"))
	}
	first, rest := byClass(doc, "next")[0], byClass(doc, "more")[0]
	for _, want := range []string{"workspace diff", "workspace apply --session", "workspace end", "cd /kept"} {
		if !strings.Contains(textOf(first), want) {
			t.Errorf("%q is not among the first commands", want)
		}
	}
	if strings.Contains(textOf(first), "artifacts verify") || !strings.Contains(textOf(rest), "artifacts verify") {
		t.Error("what is rarely wanted is not folded")
	}
	rep.Run.ExitCode, rep.Run.Commands = 0, nil
	if _, doc := render(t, rep, HTMLOptions{}); len(byClass(doc, "last")) > 0 {
		t.Error("a success has last words")
	}
}

// BenchmarkHTML renders a session of n changed files of Go, 40 lines of each.
func BenchmarkHTML(b *testing.B) {
	for _, tt := range []struct {
		n     int
		quick bool
	}{{1, true}, {20, true}, {500, true}, {20, false}, {500, false}} {
		b.Run(fmt.Sprintf("%d/quick=%t", tt.n, tt.quick), func(b *testing.B) {
			rep, opt := many(b, tt.n)
			opt.Quick = tt.quick
			for b.Loop() {
				if err := HTML(&bytes.Buffer{}, rep, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// many is a session of n changed files.
func many(t testing.TB, n int) (artifacts.Report, HTMLOptions) {
	var changes []superqode.Change
	var patch strings.Builder
	for i := range n {
		p := fmt.Sprintf("pkg%d/sub%d/file%d.go", i%9, i%4, i)
		changes = append(changes, change(t, superqode.ChangeModified, p, 20, 20))
		fmt.Fprintf(&patch, "diff --git a/%s b/%s\nindex 1111111..2222222 100644\n--- a/%s\n+++ b/%s\n@@ -1,20 +1,20 @@ package x\n%s%s", p, p, p, p,
			strings.Repeat("-func old(a int) string { return \"text\" } // a comment\n", 20), strings.Repeat("+func now(a int) string { return \"text\" } // a comment\n", 20))
	}
	return small(t, nil, changes...), HTMLOptions{Patches: []Patch{{Path: "patches/p.patch", Data: []byte(patch.String())}}}
}

func TestChangedPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, inA, inB string }{
		{"func Session() error", "func Sitzung() error", "Session", "Sitzung"},
		{"a := one + two", "a := one + three", "two", "three"},
		{"same line here", "same line here, longer", "", ", longer"},
		{"x = \"\u00e4\u00f6\" // text", "x = \"\u00e4\u00fc\" // text", "\u00e4\u00f6", "\u00e4\u00fc"},
		{"nothing", "in common at all", "", ""},
		{"", "", "", ""},
	} {
		a, b := changedPart(tt.a, tt.b)
		if tt.a[a.from:a.to] != tt.inA || tt.b[b.from:b.to] != tt.inB {
			t.Errorf("%q → %q: %q → %q, want %q → %q", tt.a, tt.b, tt.a[a.from:a.to], tt.b[b.from:b.to], tt.inA, tt.inB)
		}
	}
}

// FuzzHTMLText holds that nothing of a text becomes markup, and that the text can
// be read back but for what is shown as escapes.
func FuzzHTMLText(f *testing.F) {
	f.Add(hostile)
	f.Add("plain & <b>bold</b>\t\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		var b bytes.Buffer
		writeText(&b, s)
		doc, err := html.Parse(strings.NewReader("<!doctype html><pre>x" + b.String() + "</pre>"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elements(doc, "") {
			switch e.Data {
			case "html", "head", "body", "pre", "b":
			default:
				t.Fatalf("%q became <%s>", s, e.Data)
			}
		}
		for _, r := range b.String() {
			if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x202e) {
				t.Fatalf("%q is written with %U", s, r)
			}
		}
	})
}

// FuzzPatch holds that every patch, however broken, can be shown, and that no more
// lines are shown than a page may have.
func FuzzPatch(f *testing.F) {
	f.Add(patchOfAll)
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,99999999 +1 @@\n+\x00\xff\n")
	f.Fuzz(func(t *testing.T, patch string) {
		d := &differ{code: &coder{}, rows: 50} // without colours, which are chroma's to get right
		v := d.view(1, change(t, superqode.ChangeModified, "a.go", 1, 1), parsePatch([]byte(patch)))
		if n := strings.Count(string(v.Body), `<div class="l`); n > 50 {
			t.Fatalf("%d lines", n)
		}
		if _, err := html.Parse(strings.NewReader(string(v.Body))); err != nil {
			t.Fatal(err)
		}
	})
}
