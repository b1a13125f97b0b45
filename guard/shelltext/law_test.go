package shelltext_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
)

// simple commands for which the law of equivalent spellings is held.
func lawSeeds() []string {
	return []string{
		"git commit -am x", "git reset --hard HEAD~1", "git reset -q a.txt", "git clean -fdx", "git clean -n -d", "git checkout -- a.txt", "git checkout feature",
		"git branch -D feature", "git branch topic", "git push -n", "git push -f origin main", "git stash", "git stash list", "git rm -rf src", "git restore -SW .",
		"git restore --staged .", "git tag -d v1", "git config a.b c", "git config --get a.b", "git log --grep=push", "git switch -C feature", "git status",
	}
}

// spellings are words that mean the same to the shell and to git.
func spellings(words []string) map[string]string {
	quoted := make([]string, len(words))
	double := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			return nil
		}
		quoted[i] = q
		double[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	line := strings.Join(quoted, " ")
	rest := strings.Join(quoted[1:], " ")
	out := map[string]string{
		"single quotes":  strings.Join(double, " "),
		"env":            "env " + line,
		"env assignment": "env A=b " + line,
		"command":        "command " + line,
		"assignment":     "LC_ALL=C " + line,
		"absolute":       "/usr/bin/git " + rest,
		"global option":  "git --no-pager -c a.b=c " + rest,
		"directory":      "git -C . " + rest,
		"sudo":           "sudo " + line,
		"timeout":        "timeout 5 " + line,
		"subshell":       "(" + line + ")",
		"sequence":       "true; " + line,
		"and":            "true && " + line,
		"function":       "f() { " + line + "; }; f",
		"variable":       "g=git; $g " + rest,
		"array":          "a=(" + line + "); \"${a[@]}\"",
		"background":     line + " &",
	}
	if inner, err := syntax.Quote(line, syntax.LangBash); err == nil {
		out["sh -c"] = "bash -c " + inner
		out["eval"] = "eval " + inner
	}
	return out
}

func checkLaw(t *testing.T, words []string) {
	t.Helper()
	for _, w := range words {
		if strings.ContainsAny(w, "\x00\uE0D7") || !strings.ContainsFunc(w, func(r rune) bool { return r > ' ' }) {
			return
		}
	}
	plain := spellings(words)["single quotes"]
	want := shelltext.Check(context.Background(), plain, guard.Context{})
	for name, line := range spellings(words) {
		got := shelltext.Check(context.Background(), line, guard.Context{})
		if got.Decision != want.Decision || got.Operation != want.Operation {
			t.Errorf("%s: %q is %s %s, but %q is %s %s", name, line, got.Decision, got.Operation, plain, want.Decision, want.Operation)
		}
	}
}

func TestEquivalentSpellings(t *testing.T) {
	t.Parallel()
	for _, s := range lawSeeds() {
		checkLaw(t, strings.Fields(s))
	}
}

// FuzzEquivalentSpellings: the verdict does not depend on how the words are
// written down, nor on a wrapper around them.
func FuzzEquivalentSpellings(f *testing.F) {
	for _, s := range lawSeeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words := strings.Fields(strings.ToValidUTF8(s, ""))
		if len(words) < 2 || len(words) > 20 {
			return
		}
		words[0] = "git"
		if strings.HasPrefix(words[1], "-") { // -C and -c would read the words that the law adds
			return
		}
		checkLaw(t, words)
	})
}

func TestBundles(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"git clean -fdx", "git clean -f -d -x", "git clean -xdf", "git clean --force -dx", "git clean -d -f -x --", "git clean --forc -xd"},
		{"git commit -am x", "git commit -a -m x", "git commit -amx", "git commit --all --message=x", "git commit --al --mess x"},
		{"git branch -Dq x", "git branch -D -q x", "git branch --delete --force -q x", "git branch -qd -f x"},
		{"git reset --hard", "git reset --har", "git reset -q --hard", "git reset --hard --"},
		{"git push -n", "git push --dry-run", "git push --dry", "git push -qn"},
		{"git restore -SW .", "git restore -S -W .", "git restore --staged --worktree .", "git restore -WS -- ."},
		{"git stash show -p", "git --no-pager stash show -p", "git -C . stash show --patch"},
	}
	for _, group := range same {
		want := shelltext.Check(t.Context(), group[0], guard.Context{})
		for _, line := range group[1:] {
			if got := shelltext.Check(t.Context(), line, guard.Context{}); got.Decision != want.Decision || got.Operation != want.Operation {
				t.Errorf("%q: %s %s, but %q: %s %s", line, got.Decision, got.Operation, group[0], want.Decision, want.Operation)
			}
		}
	}
}

// FuzzCheckLine: any text gets a verdict, soon, and without a panic.
func FuzzCheckLine(f *testing.F) {
	for _, l := range readCorpus(f, "corpus-dev.tsv") {
		f.Add(l.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := shelltext.Check(context.Background(), text, guard.Context{Dir: "/srv/orc/repo"})
		if line.Decision != guard.Allow && line.Decision != guard.Deny || line.Certainty == "" || line.Denied() && line.Operation == "" {
			t.Errorf("%q: %+v", text, line.Verdict)
		}
		for _, w := range line.Command {
			if strings.Contains(w, "\x00") {
				t.Errorf("%q: %q", text, line.Command)
			}
		}
	})
}

// FuzzDecode: no payload makes a hook panic.
func FuzzDecode(f *testing.F) {
	f.Add("claude", `{"tool_name":"Bash","tool_input":{"command":"git push"}}`)
	f.Add("copilot", `{"toolName":"bash","toolArgs":"{\"command\":\"x\"}"}`)
	f.Fuzz(func(t *testing.T, name, in string) {
		format, err := guard.ParseFormat(name)
		if err != nil {
			return
		}
		r, err := guard.Decode(format, strings.NewReader(in))
		if err != nil {
			_, err = guard.Refuse(format, err)
		} else {
			_, err = guard.Encode(format, shelltext.CheckRequest(context.Background(), r, guard.Context{}))
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestPathological: nesting, size and doubling end, and soon enough that a test
// with many of them ends too.
func TestPathological(t *testing.T) {
	t.Parallel()
	var doubling, calls strings.Builder
	doubling.WriteString("a=xxxxxxxxxxxxxxxx;")
	for range 200 {
		doubling.WriteString("a=$a$a;")
	}
	for i := range 60 {
		fmt.Fprintf(&calls, "f%d() { f%d; f%d; }; ", i, i+1, i+1)
	}
	texts := map[string]string{
		"parentheses":  strings.Repeat("(", 500_000),
		"braces":       strings.Repeat("{ ", 300_000),
		"substitution": strings.Repeat("$(", 300_000),
		"backquotes":   strings.Repeat("`", 100_001),
		"ifs":          strings.Repeat("if ", 200_000),
		"nots":         strings.Repeat("! ", 200_000),
		"doubling":     doubling.String() + "git $a",
		"calls":        calls.String() + "f0",
		"recursion":    "f() { f; f; }; f",
		"brace words":  "echo " + strings.Repeat("{a,b}", 40),
		"sequence":     "echo {1..999999999}",
		"fork bomb":    ":(){ :|:& };:",
		"loops":        strings.Repeat("for i in 1 2 3 4 5 6 7 8 9; do ", 30) + "git status" + strings.Repeat("; done", 30),
		"long word":    "git " + strings.Repeat("x", 900_000),
		"large":        strings.Repeat("echo x\n", 200_000),
		"evals":        strings.Repeat("eval ", 50_000) + "git status",
		"shells":       strings.Repeat("sh -c 'sh -c ", 2000),
		"alias":        "git -c alias.a=b -c alias.b=a a",
		"shell alias":  "alias a=b; alias b=a; a",
		"printf":       "printf '%s%s%s' " + strings.Repeat("a ", 100_000),
		"heredoc":      "cat <<EOF\n" + strings.Repeat("$(echo x) ", 20_000) + "\nEOF",
		"quotes":       strings.Repeat(`"$(`, 100_000),
		"python":       "python3 -c '" + strings.Repeat("system(", 100_000) + "'",
		"arith":        "echo $((" + strings.Repeat("(", 200_000),
	}
	for name, text := range texts {
		start := time.Now()
		shelltext.Check(t.Context(), text, guard.Context{})
		t.Logf("%s: %v", name, time.Since(start))
	}
}

func BenchmarkCheckLine(b *testing.B) {
	for name, line := range map[string]string{
		"plain":    "git status --short",
		"sequence": `cd src && npm test -- --watch=false 2>&1 | tail -20; git diff --stat | cat`,
		"denied":   `git add -A && git commit -m "feat: x" && git push origin HEAD`,
		"heredoc":  "gh pr create --title x --body \"$(cat <<'EOF'\n" + strings.Repeat("- use git push\n", 50) + "EOF\n)\"",
		"python":   `python3 -c "import subprocess; subprocess.run(['git','status'])"`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				shelltext.Check(context.Background(), line, guard.Context{})
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	argv := []string{"git", "commit", "-am", "message"}
	for b.Loop() {
		shelltext.CheckArgs(context.Background(), argv, guard.Context{})
	}
}

// FuzzPrograms: no program text in any language makes the reader of programs
// panic or run on.
func FuzzPrograms(f *testing.F) {
	interpreters := []string{"python3 -c", "node -e", "perl -e", "ruby -e", "php -r", "awk", "lua -e", "julia -e", "emacs --eval", "sed", "make --eval", "osascript -e", "tclsh -c", "find"}
	for _, l := range readCorpus(f, "corpus-dev.tsv") {
		f.Add(byte(0), l.text)
	}
	for i, text := range []string{
		"import subprocess; c=['git']; c+=['stash']; subprocess.run(c)", "function git(...a){return cp.execFileSync('git',a)} git('push')", "my @f=split(/x/,`ls`); system('git',@f)",
		"system(\"git #{x}\")", "`git push`;", "BEGIN{while((\"x\"|getline l)>0)print l}", "os.execute('git '..x)", "run(`git $x`)", "(shell-command \"git push\")", "1e git stash;s/a/b\\/c/ge",
		"x: y;git push", "do shell script \"git push\"", "exec git push", ". -name .git -prune -o -type f -delete",
	} {
		f.Add(byte(i), text)
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		quoted, err := syntax.Quote(text, syntax.LangBash)
		if err != nil {
			return
		}
		name := interpreters[int(which)%len(interpreters)]
		if name == "find" {
			quoted = text
		}
		line := shelltext.Check(context.Background(), name+" "+quoted+" | sh", guard.Context{Dir: "/srv/orc/repo"})
		if line.Decision != guard.Allow && line.Decision != guard.Deny {
			t.Errorf("%s %q: %+v", name, text, line.Verdict)
		}
	})
}
