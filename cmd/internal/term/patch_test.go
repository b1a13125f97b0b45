package term

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatchWriter(t *testing.T) {
	t.Parallel()
	in := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n--- old\n+new\x1b[2J\n c\tc\n\\ No newline at end of file\nindex 1..2\nlast"
	const b, r, g, c, n = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
	want := b + "diff --git a/x b/x" + n + "\n" + b + "--- a/x" + n + "\n" + b + "+++ b/x" + n + "\n" + c + "@@ -1,2 +1,2 @@ f" + n + "\n" +
		r + "--- old" + n + "\n" + g + `+new\x1b[2J` + n + "\n c\tc\n\\ No newline at end of file\n" + b + "index 1..2" + n + "\nlast\n"
	for size := 1; size < len(in); size += 7 {
		var out bytes.Buffer
		p := &PatchWriter{W: &out, Color: true}
		for rest := in; rest != ""; {
			k := min(size, len(rest))
			if _, err := p.Write([]byte(rest[:k])); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Fatalf("pieces of %d: %s", size, d)
		}
	}
}
