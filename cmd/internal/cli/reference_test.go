package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// updatesDocs reports whether the generated pages are to be written: `make docs`.
func updatesDocs() bool { return os.Getenv("SUPERQODE_TEST_UPDATE_DOCS") != "" }

const referencePath = "../../../docs/reference.md"

// TestReference holds that docs/reference.md is what the grammar says.
func TestReference(t *testing.T) {
	t.Parallel()
	parser, err := newParser(app.New(app.IO{}), "", "")
	if err != nil {
		t.Fatal(err)
	}
	want := reference(parser.Model)
	if updatesDocs() {
		if err := os.WriteFile(filepath.FromSlash(referencePath), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(filepath.FromSlash(referencePath))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	is, wanted := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(is), len(wanted)) {
		if a, b := lineAt(is, i), lineAt(wanted, i); a != b {
			t.Fatalf("docs/reference.md is stale: run `make docs` and commit it\nline %d is     %q\nand should be %q", i+1, a, b)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// reference renders the grammar as a page.
func reference(model *kong.Application) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Reference\n")
	line("<!-- Made from the grammar by `make docs`; a test fails when it is stale. -->\n")
	line("Every command and flag, as `superqode COMMAND --help` prints them. Results go to stdout, everything else to stderr; `--json` gives every")
	line("result as one document (streams: one object a line). [guide.md](guide.md) shows how they go together.\n")
	line("## Global flags\n")
	flagTable(&b, model.Flags)
	line("")
	for _, leaf := range model.Leaves(true) {
		name := commandName(leaf)
		line("## superqode %s\n", name)
		line("%s\n", leaf.Help)
		line("    superqode %s\n", strings.TrimPrefix(leaf.Summary(), "superqode "))
		if leaf.Detail != "" {
			line("%s\n", markdownText(leaf.Detail))
		}
		var args []string
		for _, p := range leaf.Positional {
			if p.Help != "" {
				args = append(args, fmt.Sprintf("| `%s` | %s |", p.Summary(), markdownText(p.Help)))
			}
		}
		if len(args) > 0 {
			line("| argument | |\n|---|---|\n%s\n", strings.Join(args, "\n"))
		}
		if flags := ownFlags(leaf, model); len(flags) > 0 {
			flagTable(&b, flags)
			line("")
		}
	}
	line("## Exit codes\n")
	line("| code | meaning |\n|---|---|\n%s\n", exitRows())
	line("An error with `--json` is a document on stdout: `{\"error\":{\"code\":…,\"message\":…,\"hint\":…,\"paths\":[…]}}`.\n")
	line("| `code` in JSON | exit code |\n|---|---|")
	rows := app.ExitTable()
	slices.SortStableFunc(rows, func(a, b app.ExitRow) int { return cmp.Compare(a.Code, b.Code) })
	for _, r := range rows {
		line("| `%s` | %d |", r.Name, r.Code)
	}
	return b.String()
}

// exitRows is the table of exit codes; the last rows are those of exit.go.
func exitRows() string {
	return strings.Join([]string{
		"| CMD's own | `run` and `workspace exec` pass it through |",
		"| 0, 1 | done; failure (other commands) |",
		"| 3 | denied by the guard |",
		"| 4 | conflict: someone else changed what would be overwritten, or a merge or claim conflict |",
		"| 5 | locked: another session holds what is needed |",
		"| 6 | verification failed; also where CMD succeeded and the check afterwards did not |",
		"| 7 | not found: session, artifact, file |",
		"| 80 | usage error, a wrong configuration included |",
		"| 124, 125, 126, 127 | time-out; superqode itself failed before or after CMD; CMD not executable; CMD not found |",
		"| 130, 143 | interrupted, terminated; after the full way down |",
	}, "\n")
}

// ownFlags are a command's flags without the global ones.
func ownFlags(leaf *kong.Node, model *kong.Application) []*kong.Flag {
	var own []*kong.Flag
	for n := leaf; n != nil && n != model.Node; n = n.Parent {
		own = append(own, n.Flags...)
	}
	return slices.DeleteFunc(own, func(f *kong.Flag) bool { return slices.Contains(model.Flags, f) || f.Hidden || f.Name == "help" })
}

func flagTable(b *strings.Builder, flags []*kong.Flag) {
	fmt.Fprint(b, "| flag | |\n|---|---|\n")
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		if !f.IsBool() && !f.IsCounter() {
			name += " " + strings.Trim(f.FormatPlaceHolder(), `"`)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(name, "|", `\|`), markdownText(f.Help))
	}
}

// markdownText is a help text as running text of a page.
func markdownText(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "$$", "$", "\n", " ").Replace(s)
}
