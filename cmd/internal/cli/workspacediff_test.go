package cli_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/seed-2d964004/superqode/cmd/internal/cli"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestDiffOnTerminal holds that hunks are numbered where a person looks, and only
// there.
func TestDiffOnTerminal(t *testing.T) {
	t.Parallel()
	f := gittest.Repo(t)
	f.Write("a", strings.Repeat("line\n", 30))
	f.Write("b\x1b[31m", "1\n")
	f.Commit("base")
	run := func(out io.Writer, args ...string) string {
		t.Helper()
		var text, errs bytes.Buffer
		if out == nil {
			out = &text
		}
		if code := cli.Main(t.Context(), cli.IO{Out: out, Err: &errs, Env: f.Env(), Dir: f.Dir}, args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs.String())
		}
		return text.String()
	}
	run(nil, "workspace", "create")
	ws := strings.TrimSuffix(run(nil, "workspace", "path"), "\n")
	for path, text := range map[string]string{"a": "first\n" + strings.Repeat("line\n", 30) + "last\n", "b\x1b[31m": "2\n", "empty": ""} {
		if err := os.WriteFile(ws+"/"+path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if piped := run(nil, "workspace", "diff"); strings.Contains(piped, "[1]") {
		t.Errorf("a pipe gets numbers:\n%s", piped)
	}
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	shown := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, ptmx) // ends with EIO when the other side is closed
		shown <- b.String()
	}()
	run(tty, "workspace", "diff")
	run(tty, "workspace", "diff", "--stat")
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(<-shown, "\r\n", "\n")
	for _, want := range []string{"@@ -1,3 +1,4 @@ [1]\n", "@@ -28,3 +29,4 @@ [2]", "@@ -1 +1 @@ [3]\n", "[4] the whole change\n", "3 files changed", `"a/b\033[31m"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the terminal lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b[31m\"") || strings.Contains(got, "b\x1b[31m") {
		t.Errorf("a name acts on the terminal:\n%q", got)
	}
}
