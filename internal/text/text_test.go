package text

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, text, path string }{
		{"a b/c.go", "a b/c.go", "a b/c.go"},
		{"häß→", "häß→", "häß→"},
		{"a\nb", `a\nb`, `"a\nb"`},
		{"\x1b[31mred", `\x1b[31mred`, `"\033[31mred"`},
		{"\xff\xfe", `\xff\xfe`, `"\377\376"`},
		{"\u009b0m", `\u009b0m`, `"\302\2330m"`},
		{"a\u202eb", `a\u202eb`, `"a\342\200\256b"`},
		{`a"b\c`, `a"b\c`, `"a\"b\\c"`},
		{"\x7f", `\x7f`, `"\177"`},
		{"\u3000\u00a0", "\u3000\u00a0", "\u3000\u00a0"},
		{"👩\u200d💻", "👩\u200d💻", "👩\u200d💻"},
		{"zero\u200bwidth\U000e0041", `zero\u200bwidth\U000e0041`, `"zero\342\200\213width\363\240\201\201"`},
	} {
		if got := Printable(tt.in); got != tt.text {
			t.Errorf("Printable(%q) = %s, want %s", tt.in, got, tt.text)
		}
		if got := QuotePath(tt.in); got != tt.path {
			t.Errorf("QuotePath(%q) = %s, want %s", tt.in, got, tt.path)
		}
	}
}

// obeyed reports whether a terminal might obey the rune instead of showing it.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// FuzzPrintable holds that nothing a terminal obeys survives.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"a", "\x1b]0;x\a", "\xc2\x9b", "\u2066", "\r\n\t", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Printable(s), QuotePath(s), Quote(s)} {
			if strings.ContainsFunc(out, obeyed) || strings.ToValidUTF8(out, "") != out {
				t.Errorf("%q became %q", s, out)
			}
		}
		if Printable(Printable(s)) != Printable(s) {
			t.Errorf("%q: escaping twice differs", s)
		}
	})
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/a/b-c_d.patch": "/a/b-c_d.patch",
		"/a b":           "'/a b'",
		"it's":           `'it'\''s'`,
		"":               "''",
		"a\nb'c":         `$'a\nb\'c'`,
		"$(rm)":          "'$(rm)'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{-time.Second: "0s", 5 * time.Second: "5s", 90 * time.Second: "1m", 3 * time.Hour: "3h", 30 * time.Hour: "30h", 80 * time.Hour: "3d"} {
		if got := Age(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestPrintableLines(t *testing.T) {
	t.Parallel()
	if got := PrintableLines("a\x1b[31mb\r\nc\td\xffé\x00"); got != "a\\x1b[31mb\nc\td\\xffé\\x00" {
		t.Errorf("%q", got)
	}
}

func TestQuotePattern(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", `[a]*?{b,c}\d`, "[!a-]"} {
		if ok, err := filepath.Match(QuotePattern(name), name); !ok || err != nil {
			t.Errorf("%q does not match itself as %q: %v", name, QuotePattern(name), err)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Size(0): "0 B", Size(1023): "1023 B", Size(1536): "1.5 KiB", Size(5 << 30): "5 GiB",
		Took(0.0123): "12ms", Took(3.2149): "3.21s", Took(247.4): "4m7s",
		Plural(1, "file"): "1 file", Plural(0, "file"): "0 files", Clip("häß", 2): "h…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"30": 30 * time.Second, "1.5s": 1500 * time.Millisecond, "15m": 15 * time.Minute, "0": 0, "-1s": 0, "x": 0, "": 0} {
		if d, err := ParseDuration(in); (err == nil) != (want > 0) || d != want {
			t.Errorf("duration %q: %v, %v", in, d, err)
		}
	}
	for in, want := range map[string]int64{"512": 512, "1k": 1024, "10M": 10 << 20, "2GiB": 2 << 30, "3kb": 3072, "1T": 1 << 40, "0": 0, "-1": 0, "9999999999T": 0, "M": 0, "1x": 0} {
		if z, err := ParseSize(in); (err == nil) != (want > 0) || z != want {
			t.Errorf("size %q: %d, %v", in, z, err)
		}
	}
}
