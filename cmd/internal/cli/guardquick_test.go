package cli

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/guardcmd"
)

// checkTokens are what lines of guard check are made of, and some of what they are
// not made of.
var checkTokens = strings.Fields(`guard check -- - --json --json=true --explain --format --format=json --format=perl claude -C --repo --repo=/x --repo= /y -C/z --home=/h --config=c --config
 --color=never --color -q -v --no-input -h --help --foo -x git commit status --expl - guard -- ` + "check")

// byGrammar reads a line as every other command's line is read.
func byGrammar(t *testing.T, args []string) (app.Globals, *guardcmd.Check, bool) {
	t.Helper()
	a := app.New(app.IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	word, sub := commandWords(args)
	parser, err := newParser(a, word, sub)
	if err != nil {
		t.Fatal(err)
	}
	kctx, err := parser.Parse(args)
	if err != nil || kctx.Selected() == nil {
		return a.Flags, nil, false
	}
	c, ok := kctx.Selected().Target.Addr().Interface().(*guardcmd.Check)
	return a.Flags, c, ok
}

func holdQuick(t *testing.T, args []string) bool {
	t.Helper()
	flags, check, ok := quickCheck(args)
	if !ok {
		return false
	}
	wantFlags, want, known := byGrammar(t, args)
	if !known {
		t.Errorf("%q: the quick way takes what the grammar refuses", args)
		return true
	}
	if d := cmp.Diff(wantFlags, flags) + cmp.Diff(want, check); d != "" {
		t.Errorf("%q: grammar, quick way:\n%s", args, d)
	}
	return true
}

func TestQuickCheck(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"guard check -- git commit", "guard check git", "guard check --json -- x", "guard check --format claude", "guard check --format=codex -", "guard check --policy destructive git", "guard check --policy=qe --format gemini", "--json guard check x",
		"-C /x guard check -- y", "guard check", "guard check -C /x --explain -- a --json", "guard check --home /h --config=/c x -- y", "--repo /x guard check git -C /y status",
	} {
		if !holdQuick(t, strings.Fields(line)) {
			t.Errorf("%q is left to the grammar", line)
		}
	}
	for _, line := range []string{"guard", "guard check --help", "guard check -h", "guard check --format perl", "guard check --format", "guard status", "check guard", "guard check --json --json", "guard check --nonsense", ""} {
		if holdQuick(t, strings.Fields(line)) {
			t.Errorf("%q is not left to the grammar", line)
		}
	}
	if holdQuick(t, []string{"guard", "check", ""}) {
		t.Error("an empty word is not left to the grammar")
	}
	r := rand.New(rand.NewPCG(4, 2026))
	taken := 0
	for range 10000 {
		args := make([]string, 0, 8)
		for range r.IntN(3) {
			args = append(args, checkTokens[r.IntN(len(checkTokens))])
		}
		args = append(args, "guard")
		for range r.IntN(2) {
			args = append(args, checkTokens[r.IntN(len(checkTokens))])
		}
		args = append(args, "check")
		for range r.IntN(6) {
			args = append(args, checkTokens[r.IntN(len(checkTokens))])
		}
		if holdQuick(t, args) {
			taken++
		}
		if t.Failed() {
			return
		}
	}
	if taken < 333 {
		t.Errorf("%d of the lines were read the quick way, that shows nothing", taken)
	}
}
