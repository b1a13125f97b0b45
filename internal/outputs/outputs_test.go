package outputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
)

// tree writes files; a name that ends in "/" is a folder.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func paths(s *Selection) string {
	var list []string
	for _, f := range s.Files {
		list = append(list, f.Path)
	}
	return strings.Join(list, " ")
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	ws := tree(t, "a.txt", "b.log", ".hidden", "dist/x.js", "dist/sub/y.css", "dist/sub/z.map", ".git/config", "{odd}", "we ird/$f")
	out := tree(t, "r.json", "deep/s.json")
	for _, tt := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"*.txt"}, "a.txt"},
		{[]string{"**/*.css"}, "dist/sub/y.css"},
		{[]string{"dist/**/*.{js,css}"}, "dist/sub/y.css dist/x.js"},
		{[]string{"dist"}, "dist/sub/y.css dist/sub/z.map dist/x.js"},
		{[]string{"dist/"}, "dist/sub/y.css dist/sub/z.map dist/x.js"},
		{[]string{"*"}, ".hidden a.txt b.log {odd}"},
		{[]string{"*/"}, "dist/sub/y.css dist/sub/z.map dist/x.js we ird/$f"},
		{[]string{"**", "a.txt", "*.txt"}, ".hidden a.txt b.log dist/sub/y.css dist/sub/z.map dist/x.js we ird/$f {odd}"},
		{[]string{".git/config"}, ".git/config"},
		{[]string{`\{odd\}`}, "{odd}"},
		{[]string{"$OUTPUT_DIR/*.json"}, "r.json"},
		{[]string{"${SUPERQODE_OUTPUT_DIR}/**"}, "deep/s.json r.json"},
		{[]string{"$SUPERQODE_OUTPUT_DIR"}, "deep/s.json r.json"},
		{[]string{"$WORKSPACE/a.txt", "a.txt", "./a.txt"}, "a.txt"},
		{[]string{ws + "/a.txt"}, "a.txt"},
		{[]string{"nothing*"}, ""},
		{[]string{"$ARTIFACT_DIR/**"}, ""},
	} {
		sel, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws, Output: out}, Patterns: tt.patterns})
		if err != nil || paths(sel) != tt.want {
			t.Errorf("%q: %q %v", tt.patterns, paths(sel), err)
		}
		if (tt.want == "") != (len(sel.Unmatched) > 0) {
			t.Errorf("%q: unmatched %q", tt.patterns, sel.Unmatched)
		}
	}
	for _, bad := range []string{"", "../x", "a/../../x", "/etc/passwd", "[", "$HOME/x", "${OUTPUT_DIR", "${OUTPUT_DIR}x", "a\x00b"} {
		if _, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws, Output: out}, Patterns: []string{bad}}); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLinksAndSpecialFiles(t *testing.T) {
	t.Parallel()
	ws := tree(t, "in/file", "dir/a")
	for name, target := range map[string]string{
		"good": "in/file", "out": "../../../../../../etc/passwd", "abs": "/etc/passwd", "root": "/proc/self/root", "none": "nowhere", "circle": "circle", "folder": "in", "in/up": "../..",
	} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	sel, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws}, Patterns: []string{"**", "root/etc/passwd", "in/up/*"}})
	if err != nil {
		t.Fatal(err)
	}
	if paths(sel) != "dir/a good in/file" {
		t.Error(paths(sel))
	}
	why := map[string]string{}
	for _, k := range sel.Skipped {
		why[k.Path] = k.Reason
	}
	for path, word := range map[string]string{"out": "leads out", "abs": "absolute", "root": "absolute", "none": "nowhere", "circle": "circle", "folder": "folder", "in/up": "leads out", "pipe": "named pipe"} {
		if !strings.Contains(why[path], word) {
			t.Errorf("%s: %q", path, why[path])
		}
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("f%02d", i)) // 3 bytes each
	}
	ws := tree(t, append(names, "big-big-big")...)
	for _, tt := range []struct {
		opt      Options
		files    int
		cut      int
		skipped  int
		contains string
	}{
		{Options{}, 21, 0, 0, ""},
		{Options{Limits: Limits{MaxFiles: 5}}, 5, 16, 0, "--max-files"},
		{Options{Limits: Limits{MaxFileBytes: 3}}, 20, 1, 1, "--max-file-bytes"},
		{Options{Limits: Limits{MaxTotalBytes: 20}}, 4, 17, 17, "--max-total-bytes"},
	} {
		tt.opt.Roots, tt.opt.Patterns = Roots{Workspace: ws}, []string{"**"}
		sel, err := Select(context.Background(), tt.opt)
		if err != nil || len(sel.Files) != tt.files || sel.SkippedCount != tt.skipped {
			t.Errorf("%+v: %d files, %d skipped, %v", tt.opt, len(sel.Files), sel.SkippedCount, err)
		}
		if tt.cut == 0 != (sel.Cut == nil) || sel.Cut != nil && (sel.Cut.Files != tt.cut || !strings.Contains(strings.Join(sel.Cut.Reasons, ""), tt.contains)) {
			t.Errorf("%+v: cut %+v", tt.opt, sel.Cut)
		}
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	ws := tree(t)
	for name, data := range map[string]string{"text": "grün\n", "bin": "\xff\x00"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sel, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws}, Patterns: []string{"*"}, Inline: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(sel.Files) != 2 || string(sel.Files[0].Data) != "\xff\x00" || string(sel.Files[1].Data) != "grün\n" {
		t.Errorf("%+v", sel.Files)
	}
}

// FuzzPattern holds that no pattern selects what is not there, or anything outside.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"**", "$OUTPUT_DIR/{a,b}", "../x", "[a-", "a/./b//c", "${WORKSPACE}/*", "\\", "{a,{b,c}}/**"} {
		f.Add(s)
	}
	ws := f.TempDir()
	if err := os.MkdirAll(filepath.Join(ws, "a", "b"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "a", "b", "c"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sel, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws}, Patterns: []string{text}})
		if err == nil && paths(sel) != "" && paths(sel) != "a/b/c" {
			t.Errorf("%q selects %q", text, paths(sel))
		}
		if err != nil && !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func BenchmarkSelect(b *testing.B) {
	ws := b.TempDir()
	for i := range 10_000 {
		dir := filepath.Join(ws, fmt.Sprint("d", i%100))
		if i < 100 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), slices.Repeat([]byte("x"), 2000), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		sel, err := Select(context.Background(), Options{Roots: Roots{Workspace: ws}, Patterns: []string{"**/f*", "d1/**"}, Limits: Limits{MaxFiles: 20_000}})
		if err != nil || len(sel.Files) != 10_000 {
			b.Fatal(len(sel.Files), err)
		}
	}
}
