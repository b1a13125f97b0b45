package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

// browser is a tab of a headless Chromium that shows one page. Whatever the page
// asks the network for, and whatever the console tells, fails the test.
type browser struct {
	*testing.T
	ctx context.Context
	url string
}

// openBrowser starts Chromium on a page. Where there is none the test is skipped:
// .ci/run installs Debian's.
func openBrowser(t *testing.T, page string) *browser {
	t.Helper()
	exe := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			exe = p
			break
		}
	}
	if exe == "" {
		t.Skip("skipped: no Chromium here (apt-get install chromium)")
	}
	file := filepath.Join(t.TempDir(), "qr", "page.html")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(exe), chromedp.UserDataDir(t.TempDir()))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own sandbox refuses root
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t, ctx, "file://" + file}
	if err := chromedp.Do(ctx); err != nil {
		t.Skipf("skipped: Chromium does not start here: %v", err)
	}
	b.listen()
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	b.do(chromedp.Navigate(b.url))
	return b
}

// listen fails the test on everything that a page for itself has no reason to do.
// The callback runs where the browser's messages are read, and only notes.
func (b *browser) listen() {
	var mu sync.Mutex
	var wrong []string
	err := chromedp.Listen(b.ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(ev.Request.URL, b.url) && ev.Request.URL != "about:blank" {
				wrong = append(wrong, "the page asks for "+ev.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			wrong = append(wrong, "exception: "+ev.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			wrong = append(wrong, "the console is used: "+string(ev.Type))
		case *log.EventEntryAdded:
			wrong = append(wrong, "the browser complains: "+ev.Entry.Text)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range wrong {
			b.Error(w)
		}
	})
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// call runs one command of the protocol.
func call[P, R any](b *browser, cmd cdp.Command[P, R], params P) R {
	b.Helper()
	r, err := chromedp.Call(b.ctx, cmd, params)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// eval returns what a piece of JavaScript gives.
func eval[T any](b *browser, js string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", js, err)
	}
	return v
}

// js runs a piece of JavaScript.
func (b *browser) js(code string) { b.Helper(); eval[chromedp.Void](b, code) }

// is fails the test unless the piece of JavaScript gives want.
func is[T comparable](b *browser, js string, want T) {
	b.Helper()
	if got := eval[T](b, js); got != want {
		b.Errorf("%s\ngives %v, want %v", js, got, want)
	}
}

// key types one character as a person would.
func (b *browser) key(k string) { b.Helper(); b.do(chromedp.KeyEvent(k)) }

func (b *browser) size(width int64) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 500})
}

func (b *browser) scheme(v string) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v}}})
}

// keep writes a file where the run's artifacts are kept: SUPERQODE_TEST_ARTIFACTS,
// or go test's -artifacts.
func (b *browser) keep(name string, data []byte) {
	b.Helper()
	dir := os.Getenv("SUPERQODE_TEST_ARTIFACTS")
	if dir == "" {
		dir = b.ArtifactDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Logf("kept %s", filepath.Join(dir, name))
}

func (b *browser) shoot(name string) {
	b.Helper()
	b.js(`scrollTo(0,0)`)
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Fatal(err)
	}
	b.keep(name, png)
}

// axe runs axe-core over the page as it stands.
func (b *browser) axe(where string) {
	b.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "axe", "axe.min.js"))
	if err != nil {
		b.Fatal(err)
	}
	b.js(string(source))
	out := eval[string](b, `axe.run(document,{preload:false,resultTypes:["violations"]}).then(r=>JSON.stringify(r.violations.map(v=>({id:v.id,help:v.help,nodes:v.nodes.slice(0,3).map(n=>n.target+" "+n.failureSummary)}))))`)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(out), &violations); err != nil {
		b.Fatal(err)
	}
	for _, v := range violations {
		b.Errorf("%s: axe: %s (%s)\n%s", where, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// sample is a session as it may well be: two agents, findings, refusals, output.
func sample(t *testing.T) (artifacts.Report, HTMLOptions) {
	start := time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC)
	at := func(s int) artifacts.Time { return artifacts.At(start.Add(time.Duration(s) * time.Second)) }
	binary, mode := change(t, superqode.ChangeModified, "bin"), change(t, superqode.ChangeMode, "mode.sh")
	binary.Binary, mode.NewMode = true, 0o100755
	changes := []superqode.Change{change(t, superqode.ChangeModified, "a.go", 2, 1), binary, change(t, superqode.ChangeDeleted, "gone", 0, 1), mode,
		change(t, superqode.ChangeCreated, "na\xffme", 1, 0), change(t, superqode.ChangeCreated, "pkg/server/handler.go", 22, 0), change(t, superqode.ChangeCreated, "pkg/server/long.py", 900, 0)}
	for i := range changes {
		changes[i].FirstSeen = start.Add(time.Duration(i+3) * time.Second)
	}
	confidence := 0.9
	rep := artifacts.NewReport(artifacts.ReportInput{
		Result: artifacts.Result{
			SessionID: session(t), Mode: superqode.ModeWorktree, Origin: "/home/ann/shop", State: superqode.StateDone, StartedAt: at(0), EndedAt: at(42), DurationSeconds: 42.3,
			Base:    artifacts.Base{Digest: superqode.NewDigest([32]byte{1, 2, 3}), Head: "4b825dc642cb6eb9a060e54bf8d69288fbee4904", Files: 1234, Bytes: 5678901},
			Final:   artifacts.Final{Digest: superqode.NewDigest([32]byte{4, 5, 6})},
			Changes: changes, Revert: artifacts.Revert{Verified: true, Method: "stat", Digest: superqode.NewDigest([32]byte{1, 2, 3})}, OriginCheck: artifacts.OriginCheck{Unchanged: true},
			Guard: artifacts.Guard{Layers: artifacts.Layers{Shim: "active", Hooks: "active", Kernel: "unavailable: no Landlock in this kernel"},
				Blocked: []artifacts.Blocked{{Operation: "commit", Command: []string{"git", "commit", "-am", "wip"}, Layer: "shim", At: at(20)}, {Operation: "push", Command: []string{"/usr/bin/git", "push", "--force"}, Layer: "hooks", At: at(31), Agent: agent(t, "bob")}}},
			Artifacts: []artifacts.Ref{{ID: "patch-001", Type: "patch", Path: relPath(t, artifacts.SessionPatch(session(t))), SHA256: strings.Repeat("ab", 32), Size: 4321}},
			Agents: artifacts.AgentRuns{{Agent: agent(t, "ann"), Command: "claude -p 'fix the tests'", StartedAt: at(1), DurationSeconds: 30, Changes: changes[:4], Patch: "patches/ann.patch", Log: "logs/ann.log"},
				{Agent: agent(t, "bob"), Command: "codex exec 'add a handler'", StartedAt: at(1), DurationSeconds: 41, ExitCode: 1, Changes: changes[3:]}},
		},
		Command: []string{"sh", "-c", "make test && echo 'all done'"}, Agents: []string{"ann", "bob"}, Warnings: []string{"3 new paths that git ignores are in no patch"},
		Findings: []artifacts.Finding{
			{Severity: artifacts.SeverityHigh, Title: "The error of Close is lost", Category: "correctness", Description: "Close reports a full disk, and nobody looks.", File: "a.go",
				Lines: &artifacts.LineRange{Start: 3, End: 3}, Evidence: "$ go test ./...\n--- FAIL: TestClose", SuggestedFix: "return errors.Join(err, f.Close())", FoundBy: "ann", Confidence: &confidence, Tags: []string{"go", "io"}},
			{Severity: artifacts.SeverityMedium, Title: "No test for an empty cart", File: "cart.go"}, {Severity: artifacts.SeverityInfo, Title: "Consider a table test"},
		},
		Setup:    []artifacts.SetupStep{{Name: "go mod download", Kind: "run", State: "applied", StartedAt: at(1), DurationSeconds: 0.8, Output: "go: downloading example.com/x v1.0.0"}},
		Commands: []artifacts.CommandRun{{Run: 1, Command: []string{"make", "test"}, ExitCode: 2, StartedAt: at(2), DurationSeconds: 39, OutputBytes: 1234, Output: "ok\nFAIL\n\x1b[31mred\x1b[0m"}},
	})
	body := "+package server\n+\n+import \"net/http\"\n+\n+// Handler answers.\n+func Handler(w http.ResponseWriter, r *http.Request) {\n+\tif r.Method != http.MethodGet {\n+\t\thttp.Error(w, \"no\", 405)\n+\t\treturn\n+\t}\n" + strings.Repeat("+\tcount := 0x1F + len(\"text\") // a comment\n", 11) + "+}\n"
	patch := patchOfAll + "diff --git a/pkg/server/handler.go b/pkg/server/handler.go\nnew file mode 100644\n--- /dev/null\n+++ b/pkg/server/handler.go\n@@ -0,0 +1,22 @@\n" + body +
		"diff --git a/pkg/server/long.py b/pkg/server/long.py\nnew file mode 100644\n--- /dev/null\n+++ b/pkg/server/long.py\n@@ -0,0 +1,900 @@\n" + strings.Repeat("+def f(x): return 'text' + str(x)  # comment\n", 900)
	return rep, HTMLOptions{Patches: []Patch{{Path: artifacts.SessionPatch(session(t)), Data: []byte(patch)}}}
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	rep, opt := sample(t)
	page, _ := render(t, rep, opt)
	b := openBrowser(t, page)
	b.size(1280)
	visible := `[...document.querySelectorAll("details.file")].filter(e=>e.checkVisibility()).length`
	is(b, visible, 7)
	is(b, `document.querySelector("#count").value`, "7 of 7")

	b.do(chromedp.SendKeys("#q", "server/ .go"))
	is(b, visible, 1)
	is(b, `[...document.querySelectorAll(".tree a")].filter(e=>e.checkVisibility()).length`, 1)
	b.do(chromedp.SendKeys("#q", "nothing"))
	is(b, `document.querySelector("#none").checkVisibility()`, true)
	b.js(`q.value="";q.dispatchEvent(new Event("input"));agent.value="ann";agent.dispatchEvent(new Event("change"))`)
	is(b, visible, 4)
	b.js(`agent.value="";type.value="created";type.dispatchEvent(new Event("change"))`)
	is(b, visible, 3)
	b.js(`type.value="";type.dispatchEvent(new Event("change"));document.activeElement.blur()`)

	is(b, `[...document.querySelectorAll("details.file")].filter(e=>!e.open).length`, 1) // the long one
	b.key("c")
	is(b, `document.querySelectorAll("details.file[open]").length`, 0)
	b.key("e")
	is(b, `document.querySelectorAll("details.file[open]").length`, 7)
	is(b, `document.querySelector("[data-path='pkg/server/long.py '] .diff").innerText.includes("400 lines more of this diff")`, true)

	rows := `(()=>{const c=document.querySelector("[data-path='a.go '] .ch");const d=c.querySelector(".d").getBoundingClientRect(),a=c.querySelector(".a").getBoundingClientRect();return d.top===a.top&&d.right<=a.left+1})()`
	is(b, rows, false)
	b.key("s")
	is(b, rows, true)
	is(b, `document.querySelectorAll("[data-path='a.go '] .twin").length`, 2)
	b.js(`document.querySelector("[data-path='pkg/server/long.py ']").open=false`)
	b.shoot("report-1280-split.png")
	b.key("s")
	is(b, rows, false)
	keys(b)
	looks(b)
}

// keys goes through the page without a mouse.
func keys(b *browser) {
	b.Helper()
	path := `document.activeElement.parentElement.dataset.path`
	b.key("j")
	is(b, path, "pkg/server/handler.go ")
	b.key("j")
	is(b, path, "pkg/server/long.py ")
	b.key("k")
	is(b, path, "pkg/server/handler.go ")
	b.key("o")
	is(b, `document.activeElement.parentElement.open`, false)
	b.key("f")
	is(b, `document.activeElement.tagName`, "ARTICLE")
	b.key("/")
	is(b, `document.activeElement.id`, "q")
	b.key("j")
	is(b, `q.value.endsWith("j")`, true)
	b.js(`q.value="";q.dispatchEvent(new Event("input"))`)
	b.key(kb.Escape)
	b.key("?")
	is(b, `keys.open`, true)
	b.key(kb.Escape)
	is(b, `keys.open`, false)
	b.js(`document.activeElement.blur();scrollTo(0,0);getSelection().removeAllRanges()`)
	b.js(`new Promise(r=>{addEventListener("hashchange",()=>setTimeout(r));location.hash="#"+document.querySelector("[data-path='pkg/server/handler.go ']").id})`)
	is(b, `document.querySelector("[data-path='pkg/server/handler.go ']").open`, true)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.url))
	b.key(kb.Tab)
	is(b, `document.activeElement.className`, "skip")
}

// looks takes the pictures, and lets axe look in each way that the page may stand.
func looks(b *browser) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range []int64{1280, 360} {
			b.size(width)
			b.js(`scrollTo(0,0);document.activeElement.blur()`)
			where := fmt.Sprintf("%d-%s", width, scheme)
			if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
				b.Errorf("%s: the page is %d wide", where, got)
			}
			if rows := eval[int64](b, `new Set([...document.querySelectorAll(".sections a")].map(a=>a.offsetTop)).size`); rows != 1 {
				b.Errorf("%s: the navigation has %d rows", where, rows)
			}
			b.axe(where)
			b.shoot("report-" + where + ".png")
		}
	}
	b.scheme("light")
	b.size(1280)
	b.do(chromedp.Click("#theme"))
	is(b, `getComputedStyle(document.documentElement).colorScheme`, "dark")
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil {
		b.Fatal(err)
	}
	b.keep("report.pdf", pdf)
}

// TestBrowserWithoutScripts looks at the page where no script runs.
func TestBrowserWithoutScripts(t *testing.T) {
	t.Parallel()
	rep, opt := sample(t)
	page, _ := render(t, rep, opt)
	b := openBrowser(t, page)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Reload())
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}) // for the questions; the page's script did not run
	is(b, `document.documentElement.classList.contains("js")`, false)
	is(b, `document.querySelector(".toolbar").checkVisibility()`, false)
	is(b, `document.querySelector("[data-path='a.go '] ins").checkVisibility()`, true)
}

// TestBrowserTakesASessionAsData opens the page of a hostile session.
func TestBrowserTakesASessionAsData(t *testing.T) {
	t.Parallel()
	rep, opt := hostileReport(t)
	page, _ := render(t, rep, opt)
	b := openBrowser(t, page)
	b.key("e")
	is(b, `document.title.endsWith(": superqode report")`, true)
	is(b, `document.scripts.length`, 1)
	is(b, `document.querySelector("footer").innerText.includes("Made by superqode")`, true)
	b.axe("hostile")
}

// TestBrowserBig opens a page of 500 changed paths and tells how long that took.
func TestBrowserBig(t *testing.T) {
	t.Parallel()
	rep, opt := many(t, 500)
	start := time.Now()
	page, _ := render(t, rep, opt)
	t.Logf("a page of %d kB in %s", len(page)>>10, time.Since(start))
	b := openBrowser(t, page)
	is(b, `document.querySelectorAll("details.file").length`, 500)
	t.Logf("loaded after %.0f ms, first paint after %.0f ms", eval[float64](b, `performance.getEntriesByType("navigation")[0].loadEventEnd`),
		eval[float64](b, `new Promise(r=>requestAnimationFrame(()=>r(0))),(performance.getEntriesByName("first-contentful-paint")[0]||{startTime:-1}).startTime`))
	b.do(chromedp.SendKeys("#q", "file499"))
	is(b, `document.querySelector("#count").value`, "1 of 500")
}
