package redact

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

const aSecret = "sup3r-s3cret-value"

func TestSecretsInPatch(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-old " + aSecret + "\n+new " + aSecret + "\n+plain\n three\n" +
		"@@ -10 +11 @@ " + aSecret + "\n-x\n+y " + aSecret + "\n" +
		"diff --git \"a/o\\303\\244\" \"b/o\\303\\244\"\n--- /dev/null\n+++ \"b/o\\303\\244\"\n@@ -0,0 +1,2 @@\n+--- a/not/a/header\n+k=" + aSecret + "\n\\ No newline at end of file\n"
	got, err := New([]string{"MY_TOKEN=" + aSecret}).InPatch(context.Background(), strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.txt:2 of before (MY_TOKEN)", "a.txt:2 (MY_TOKEN)", "a.txt:11 (MY_TOKEN)", `o\303\244:2 (MY_TOKEN)`}
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i, w := range want {
		if !strings.HasSuffix(got[i], w) {
			t.Errorf("found %q, want %q", got[i], w)
		}
	}
	var out strings.Builder
	key := "@@ -0,0 +1,4 @@\n+-----BEGIN PRIVATE KEY-----\n+MIIEvQIBADAN\n+Bgkqhki\n+-----END PRIVATE KEY-----\n plain " + aSecret + "\n"
	if err := New(nil, aSecret).Patch(&out, strings.NewReader(key)); err != nil || strings.Contains(out.String(), "MIIE") || strings.Contains(out.String(), "Bgkq") ||
		strings.Count(out.String(), "\n") != 6 || !strings.HasSuffix(out.String(), " plain [redacted:secret]\n") {
		t.Errorf("masked: %q %v", out.String(), err)
	}
	if got, _ := New(nil).InPatch(context.Background(), strings.NewReader("--- a/k\n+++ b/k\n"+key)); len(got) != 1 || !strings.HasSuffix(got[0], "k:1 (private-key)") {
		t.Errorf("found %q", got)
	}
	many := "--- a/x\n+++ b/x\n@@ -0,0 +1,99 @@\n" + strings.Repeat("+"+aSecret+"\n", 99)
	if got, _ := New(nil, aSecret).InPatch(context.Background(), strings.NewReader(many)); len(got) != maxNamed+1 {
		t.Errorf("%d are named", len(got))
	}
}

func TestTextMask(t *testing.T) {
	t.Parallel()
	r := New(nil, aSecret)
	for name, tt := range map[string]struct{ in, want string }{
		"short":  {"x " + aSecret, "x [redacted:secret]"},
		"binary": {"\x00" + aSecret, "\x00" + aSecret},
		"long":   {strings.Repeat("y", textProbe) + aSecret, strings.Repeat("y", textProbe) + "[redacted:secret]"},
		"empty":  {"", ""},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			var out bytes.Buffer
			m := &textMask{r: r, w: &out}
			for in := []byte(tt.in); len(in) > 0; {
				n := min(size, len(in))
				if _, err := m.Write(in[:n]); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			if err := m.Close(); err != nil || out.String() != tt.want {
				t.Errorf("%s in pieces of %d: %d bytes, %v", name, size, out.Len(), err)
			}
		}
	}
	var _ io.WriteCloser = &textMask{}
}
