package shelltext

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
)

// wrapperNames are all programs that run other ones, and words that stand behind them.
func wrapperNames() (names, words []string) {
	names = strings.Fields("sh bash xargs parallel find fd frobnicate make npm just")
	words = strings.Fields(`git push reset --hard -- - -c -S -0 -I -n {} ; + ::: A=b -exec -delete -name .git -/ 5 x
 "" '' exec run`)
	for _, w := range wrappers {
		names, words = append(names, strings.Fields(w.names)...), append(words, strings.Fields(w.sub)...)
		for o := range strings.FieldsSeq(w.options) {
			for n := range strings.SplitSeq(strings.TrimRight(o, "=?"), "/") {
				words = append(words, "-"+n, "--"+n, "--"+n+"=", "--"+n+"=x", "-"+n+"x")
			}
		}
	}
	return names, words
}

func checkWrapper(t *testing.T, name string, words []string) {
	t.Helper()
	line := name
	for _, w := range words {
		line += " '" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: %v", line, p)
		}
	}()
	v := Check(context.Background(), "printf 'push\\0x' | "+line, guard.Context{Dir: "/srv/orc/repo"})
	if v.Decision != guard.Allow && v.Decision != guard.Deny || v.Certainty == "" {
		t.Errorf("%s: %+v", line, v.Verdict)
	}
}

// TestWrapperWords: each program that runs another one, with words at random.
func TestWrapperWords(t *testing.T) {
	t.Parallel()
	names, words := wrapperNames()
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		for range 300 {
			line := make([]string, random.IntN(6))
			for i := range line {
				line[i] = words[random.IntN(len(words))]
			}
			checkWrapper(t, name, line)
		}
	}
}

// FuzzWrappers: no words make the reader of wrappers panic.
func FuzzWrappers(f *testing.F) {
	names, _ := wrapperNames()
	f.Add(uint16(0), "-c\ngit push")
	f.Add(uint16(5), "-u\nroot\n-/\n.\ngit\npush")
	f.Fuzz(func(t *testing.T, which uint16, words string) {
		checkWrapper(t, names[int(which)%len(names)], strings.Split(words, "\n"))
	})
}
