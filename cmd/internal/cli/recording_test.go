package cli_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const recordingPath = "../../../docs/demo.svg"

// TestRecording holds that docs/demo.svg shows a demo as it is, and nothing of the
// machine that it was recorded on. `make docs` records it anew.
func TestRecording(t *testing.T) {
	t.Parallel()
	text := recordDemo(t)
	old, _ := os.ReadFile(filepath.FromSlash(recordingPath)) // none: it is drawn for the first time
	if os.Getenv("SUPERQODE_TEST_UPDATE_DOCS") != "" && everChanging.ReplaceAllString(string(old), "") != everChanging.ReplaceAllString(drawing(text), "") {
		if err := os.WriteFile(filepath.FromSlash(recordingPath), []byte(drawing(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.FromSlash(recordingPath))
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for dec := xml.NewDecoder(bytes.NewReader(data)); ; {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("docs/demo.svg: %v", err)
		}
		if c, ok := tok.(xml.CharData); ok {
			drawn = append(drawn, string(c))
		}
	}
	shown := strings.Join(drawn, "")
	for l := range strings.Lines(uncoloured(text)) {
		what, _, _ := strings.Cut(strings.TrimSpace(l), "  ")
		if (what == "refused" || what == "undone") && strings.Count(shown, what) == 0 || !strings.Contains(shown, "Everything as promised.") {
			t.Fatalf("docs/demo.svg is stale: run `make docs` and commit it; it lacks %q", l)
		}
	}
	for _, secret := range []string{os.TempDir() + "/Test", "/home/", "/dev/shm", "/root"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("docs/demo.svg names a path of the machine it was made on: %s", secret)
		}
	}
}

// everChanging is what two recordings of the same demo differ in.
var everChanging = regexp.MustCompile(`\d{8}-\d{6}-[a-z2-7]{6}|sha256:[0-9a-f]+|qr-\d{8}`)

// recordDemo runs the demo with colours; paths and numbers that are never the same
// twice are made so.
func recordDemo(t *testing.T) string {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "superqode")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "demo", "--color", "always")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "SUPERQODE_TEST_SHIM=" + scriptShim, "LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo: %v\n%s", err, out)
	}
	text := strings.ReplaceAll(string(out), dir, "/tmp")
	text = regexp.MustCompile(`superqode-demo-\d+`).ReplaceAllString(text, "superqode-demo")
	return regexp.MustCompile(`(/\S*/)?/usr/\S*/git commit`).ReplaceAllString(text, "/usr/bin/git commit")
}

var sequence = regexp.MustCompile(`\x1b\[(\d*)m`)

func uncoloured(s string) string { return sequence.ReplaceAllString(s, "") }

// drawing renders a terminal's output as SVG, a line after the other.
func drawing(text string) string {
	const columns, width, lineHeight, margin, pause = 112, 910, 19, 18, 0.14
	colors := map[string]string{"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff", "1": "#ffffff"}
	lines := strings.Split(strings.TrimRight("\x1b[32m$\x1b[0m \x1b[1msuperqode demo\x1b[0m\n"+text, "\n"), "\n")
	height := len(lines)*lineHeight + 2*margin + 22
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A terminal in which superqode demo runs">
<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}.b{font-weight:700}
g{animation:s .01s both}@keyframes s{from{opacity:0}to{opacity:1}}@media (prefers-reduced-motion:reduce){g{animation:none}}</style>
<rect width="100%%" height="100%%" rx="9" fill="#0d1117"/><circle cx="22" cy="18" r="6" fill="#ff5f56"/><circle cx="42" cy="18" r="6" fill="#ffbd2e"/><circle cx="62" cy="18" r="6" fill="#27c93f"/>
`, width, height, width, height)
	for i, l := range lines {
		if l == "" {
			continue
		}
		fmt.Fprintf(&b, `<g style="animation-delay:%.2fs"><text x="%d" y="%d" xml:space="preserve">`, pause*float64(i), margin, 22+margin+(i+1)*lineHeight-5)
		room, color := columns, ""
		for l != "" && room > 0 {
			piece, next := l, ""
			if at := sequence.FindStringSubmatchIndex(l); at != nil {
				piece, next = l[:at[0]], l[at[2]:at[3]]
				l = l[at[1]:]
			} else {
				l = ""
			}
			if n := utf8.RuneCountInString(piece); n > room {
				piece = string([]rune(piece)[:room-1]) + "…"
			}
			room -= utf8.RuneCountInString(piece)
			if piece != "" {
				span(&b, piece, color, colors)
			}
			color = next
		}
		b.WriteString("</text></g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func span(b *strings.Builder, piece, color string, colors map[string]string) {
	var esc bytes.Buffer
	_ = xml.EscapeText(&esc, []byte(piece)) // a buffer takes everything
	if fill := colors[color]; fill != "" {
		class := ""
		if color == "1" {
			class = ` class="b"`
		}
		fmt.Fprintf(b, `<tspan fill="%s"%s>%s</tspan>`, fill, class, esc.String())
		return
	}
	b.WriteString(esc.String())
}
