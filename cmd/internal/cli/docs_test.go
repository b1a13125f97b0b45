package cli_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// onlyParsed are the lines of the pages that TestDocs does not run, and why. TestPages
// holds that the grammar takes them.
var onlyParsed = map[string]string{
	"superqode watch":                  "ends when somebody ends it",
	"superqode watch src --json":       "ends when somebody ends it",
	"superqode watch --session k3x9ab": "ends with the session",
}

// docsExits are the lines that end with another code than 0 in this world and do not say so.
var docsExits = map[string]int{
	"superqode init":                                          3, // it asks at a terminal
	"superqode workspace verify --session S":                  6, // a program has changed the workspace
	"superqode workspace verify --session S --verify full":    6,
	"superqode workspace kill --session S --run 3 --grace 2s": 7, // it has ended: logs --follow waited for it
}

// insideDocs are the beginnings of blocks that the pages show for a program of a session.
var insideDocs = []string{"superqode finding add ", "superqode claim acquire src/cart.go"}

// placeholders are the words of the pages that a reader replaces by what is his. The others
// (FILE, DIR, S, CMD, ab2cd3, finding-001) are names in the world.
var placeholders = strings.NewReplacer("[ARG…]", "", "SESSION/1", "$(superqode workspace restore --list | sed -n '$s/ .*//p')",
	"<project>", "$(ls ~/.superqode/working)", "<session>", "$(basename $(dirname $(grep -l '\"ab2cd3\"' ~/.superqode/working/*/sessions/*/session.json)))")

// The world of a block: a repository with work of every kind and, if the block names it, a session S that is
// open, with a salvage, or one of two agents that has ended with more hunks than any page names, a finding and
// its fix, and a conflict that keeps it.
const docsRepository = `
mkdir -p ~/templates/service "$WORLD/bin" DIR src ../fixtures
for name in claude codex some-linter make npm go jq CMD browser; do cp "$WORLD/fake" "$WORLD/bin/$name"; done
for n in $(seq 200); do echo "line $n"; done | tee FILE src/a.go src/cart.go src/b.go >store.go
cp "$WORLD/fake" agent.sh; cp "$WORLD/fake" format.sh; cp "$WORLD/fake" ~/templates/service/scaffold.sh
echo hello >README.md; echo A=1 >.env.example; echo '{}' | tee package-lock.json >../fixtures/customers.json
printf '%s\n' '*.log' '.env' .env.test node_modules >.gitignore
echo 'module example.com/shop' >go.mod
git init -q; git add .; git commit -qm first
superqode -q run -- true # what it measures of the machine stays in its home
`

const docsOpen = `
superqode workspace create --name S
superqode -q workspace exec -s S -- true
superqode -q workspace exec -s S -- sh -c 'echo more >>src/a.go; mkdir -p coverage; echo 1 >coverage/c.txt; echo 2 >lost'
superqode workspace revert -s S lost
`

const docsAgents = `
sed 's/^line 180/fixed/' FILE | { git diff --no-index FILE - || true; } | sed 's,b/-,b/FILE,' >"$WORLD/fix.patch"
superqode -q run --name ab2cd3 \
	--agent 'ann=for n in 10 30 50 70; do sed -i "${n}s/.*/ann/" FILE src/b.go; done; echo ann >both; superqode finding add --severity high --title Broken --patch "$WORLD/fix.patch"' \
	--agent 'bob=for n in 90 110 130 150; do sed -i "${n}s/.*/bob/" FILE src/b.go; done; echo bob >both' || [ $? = 4 ]
`

// docsProgram stands for the programs that the pages run.
const docsProgram = `#!/bin/sh
case ${0##*/} in
some-linter) echo '{"title": "Long line", "severity": "low", "file_path": "store.go"}' ;;
make) mkdir -p dist coverage; echo 1 >dist/app.js; echo '{}' >"$SUPERQODE_OUTPUT_DIR/report.json" ;;
npm) mkdir -p node_modules ;;
jq) cat >/dev/null ;;
browser) ;;
*) echo "$*" >>"README.${0##*/}" ;;
esac
`

// TestDocs runs the command lines that README.md and docs/*.md show in code blocks, as
// they are printed: each block in a world of its own, line after line.
func TestDocs(t *testing.T) {
	t.Parallel()
	world := newDocsWorld(t)
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran, parsed := 0, map[string]bool{}
	for _, page := range append(pages, "../../../README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		config := ""
		for _, block := range docsBlocks(string(data)) {
			if strings.HasPrefix(block[0], configHead) {
				config = block[0]
				continue
			}
			block = slices.DeleteFunc(block, func(line string) bool {
				command, _ := cutComment(line)
				_, only := onlyParsed[command]
				parsed[command] = true
				return only
			})
			if ran += len(block); len(block) == 0 {
				continue
			}
			if err := world.run(t, config, block); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if ran < 75 {
		t.Errorf("only %d lines were found", ran)
	}
	for line := range onlyParsed {
		if !parsed[line] {
			t.Errorf("no page shows %q", line)
		}
	}
}

// configHead begins a block that is a whole configuration file.
const configHead = "# superqode.yaml\n"

func cutComment(line string) (command, comment string) {
	command, comment, _ = strings.Cut(line, " # ")
	return strings.TrimSpace(command), strings.TrimSpace(comment)
}

var (
	shellLine  = regexp.MustCompile(`^(?:(?:[\w-]+ .*\| )?superqode |source <\(superqode |git --git-dir ~/\.superqode/)`)
	yamlLine   = regexp.MustCompile(`^ *(?:- |run: )(superqode .*)$`)
	exitInDocs = regexp.MustCompile(`^exit code (\d+)`)
)

// docsBlocks returns the command lines of each code block of a page, or of each of its paragraphs. What a
// program prints stands in blocks that begin with "superqode: ", or below lines with a prompt; a synopsis,
// with [flags], is no command line. A configuration file is a line of itself.
func docsBlocks(page string) [][]string {
	var blocks [][]string
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$|(?:^    [^\n]*\n)+").FindAllStringSubmatch(page, -1) {
		text := strings.TrimSpace(cmp.Or(block[2], strings.ReplaceAll("\n"+block[0], "\n    ", "\n")))
		var lines []string
		if strings.HasPrefix(text, configHead) {
			lines = append(lines, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			m := yamlLine.FindStringSubmatch(line)
			switch {
			case block[1] == "yaml" && m != nil:
				line = m[1]
			case block[1] == "json" || block[1] == "yaml" || strings.HasPrefix(text, "superqode: ") || strings.HasSuffix(line, "[flags]"),
				strings.HasPrefix(text, "$ ") && !strings.HasPrefix(line, "$ "):
				continue
			}
			if line = strings.TrimPrefix(line, "$ "); shellLine.MatchString(line) {
				lines = append(lines, line)
			}
		}
		if lines != nil {
			blocks = append(blocks, lines)
		}
	}
	return blocks
}

// A docsWorld is a folder in which the same world is made for each block, and copies of the
// worlds that were made.
type docsWorld struct {
	dir string
	env []string
}

func newDocsWorld(t *testing.T) *docsWorld {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqdocs")
	tmp, tmpErr := os.MkdirTemp("/tmp", "sq") // short, as in setupScript
	self, selfErr := os.Executable()
	if err = errors.Join(err, tmpErr, selfErr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(tmp)) })
	now := filepath.Join(dir, "now")
	w := &docsWorld{dir: dir, env: []string{
		"HOME=" + filepath.Join(now, "home"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "TERM=dumb", "TMPDIR=" + tmp, "WORLD=" + now,
		"BROWSER=browser", "TASK=tidy up", "GITHUB_STEP_SUMMARY=" + filepath.Join(now, "summary"), "SUPERQODE_TEST_SHIM=" + scriptShim,
		"PATH=" + filepath.Join(now, "bin") + ":" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
	}}
	if out, exit := w.shell(t, `mkdir bin; printf %s "$1" >gitconfig; printf %s "$2" >fake; chmod +x fake; ln "$3" bin/superqode || cp "$3" bin/superqode`,
		gitConfig, docsProgram, self); exit != 0 {
		t.Fatal(out)
	}
	return w
}

// make makes the world that a block needs, or copies it from the one that was made before.
func (w *docsWorld) make(t *testing.T, block string) error {
	t.Helper()
	script, name := docsRepository, "made"
	if regexp.MustCompile(`\bS\b|SESSION/`).MatchString(block) {
		script, name = script+docsOpen, name+"-open"
	}
	if regexp.MustCompile(`ab2cd3|--agent bob\s|finding-|<session>|^superqode report`).MatchString(block) {
		script, name = script+docsAgents, name+"-agents"
	}
	first := fmt.Sprintf(`mkdir -p now/home now/shop; cp gitconfig now/home/.gitconfig; cp fake now; cd now/shop
		%s
		cd ../..; rm -rf now/home/.superqode/working/*/trash/* || :; cp -a now %s`, script, name)
	if out, exit := w.shell(t, fmt.Sprintf(`set -e
		[ ! -e now ] || { mv now old; chmod -R u+w old 2>/dev/null || :; rm -rf old; } # a sweeper may still be at work there
		if [ -e %s ]; then mkdir -p now; cp -a %[1]s/. now; else %s; fi`, name, first)); exit != 0 {
		return fmt.Errorf("prepare for %q: exit code %d\n%s", block, exit, out)
	}
	return nil
}

func (w *docsWorld) shell(t *testing.T, script string, args ...string) (out string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", slices.Concat([]string{"-o", "pipefail", "-c", script, "bash"}, args)...)
	cmd.Dir, cmd.Env = w.dir, w.env
	text, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// run runs the lines of a block in a new world.
func (w *docsWorld) run(t *testing.T, config string, block []string) error {
	t.Helper()
	all := strings.Join(block, "\n") + "\n"
	if err := w.make(t, all); err != nil {
		return err
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(w.dir, "now", "shop", "superqode.yaml"), []byte(config), 0o644); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(insideDocs, func(s string) bool { return strings.HasPrefix(block[0], s) }) {
		block = []string{"superqode run -- bash -e -o pipefail -c '" + strings.ReplaceAll(all, "'", `'\''`) + "'"}
	}
	for _, line := range block {
		out, exit := w.shell(t, "cd now/shop; "+placeholders.Replace(line))
		command, comment := cutComment(line)
		want := docsExits[command]
		if m := exitInDocs.FindStringSubmatch(comment); m != nil {
			want, _ = strconv.Atoi(m[1])
		}
		if exit != want {
			return fmt.Errorf("%s\nends with %d, want %d:\n%s", line, exit, want, out)
		}
	}
	return nil
}
