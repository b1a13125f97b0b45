package linked

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// TestRawAgainstGit: no path for which git check-attr sets one of the attributes
// is called raw. The patterns are random mixtures of what patterns are made of.
func TestRawAgainstGit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(words string) string {
		list := strings.Split(words, " ")
		return list[rng.IntN(len(list))]
	}
	for round := range 12 {
		f := gittest.Repo(t)
		var files []string
		for i := range 60 {
			p := pick("a b dir/a dir/sub/b DIR/x é") + pick("x .c .tar.gz .C y.txt [z] q?") + fmt.Sprint(i%3) + pick(".c .H .txt .tar.gz é")
			f.Write(p, "x")
			files = append(files, p)
		}
		for _, dir := range []string{"", "dir/"} {
			var b strings.Builder
			for range 1 + rng.IntN(6) {
				fmt.Fprintln(&b, pick("* *.c /a* dir/*.c dir/** **/b* *.tar.* a?1* [ab]* \"*.txt\" é* a\\* *[z]* sub/b* dir/ #x [attr]own"), pick("text -text !text text=auto eol=lf ident filter=x crlf=input diff own binary")+pick("  -diff"))
			}
			f.Write(dir+".gitattributes", b.String())
		}
		raw := rawIn(t, f)
		out := f.GitInput(strings.Join(files, "\x00")+"\x00", "check-attr", "-z", "--stdin", "text", "eol", "crlf", "ident", "filter", "working-tree-encoding")
		fields := strings.Split(out, "\x00")
		for i := 0; i+2 < len(fields); i += 3 {
			path, name, value := fields[i], fields[i+1], fields[i+2]
			if value != "unspecified" && value != "unset" && raw(path) {
				t.Fatalf("round %d: %q is called raw, but %s is %s with\n%s\nand in dir\n%s", round, path, name, value, f.Read(".gitattributes"), f.Read("dir/.gitattributes"))
			}
		}
	}
}

// rawIn reads the attributes that hold in a fixture.
func rawIn(t *testing.T, f *gittest.Fixture) func(string) bool {
	t.Helper()
	opt := options(t, f, f.Dir, Working)
	conf, err := opt.Repo.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scan, _, err := snapshot.Scan(t.Context(), f.Dir, snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly})
	if err != nil {
		t.Fatal(err)
	}
	a, err := readAttributes(t.Context(), opt.Repo, conf, scan, &git.Index{Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	return a.raw
}

// TestRaw: what has no such attribute is raw, so that it need not be read.
func TestRaw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attrs, config, global string
		raw, not              string
	}{
		"none":            {raw: "a.txt dir/b.bin"},
		"extension":       {attrs: "*.bin filter=lfs diff=lfs merge=lfs -text\n", raw: "a.txt dir/b.go", not: "x.bin dir/y.BIN"},
		"double":          {attrs: "*.tar.gz ident\n", raw: "a.gz b.tar", not: "x.tar.gz x.y.tar.gz"},
		"name":            {attrs: "/dir/Makefile text\n", raw: "dir/x", not: "dir/makefile other/Makefile"},
		"unset":           {attrs: "* -text\n*.c !eol\n*.x binary\n", raw: "a.c b.x c"},
		"auto":            {attrs: "* text=auto\n", not: "a.c b.x c"},
		"autocrlf":        {config: "core.autocrlf", not: "a"},
		"user's own file": {global: "*.c ident\n", raw: "a.h", not: "a.c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t)
			f.Write(".gitattributes", c.attrs)
			if c.config != "" {
				f.Git("config", c.config, "input")
			}
			if c.global != "" {
				f.Write("../attrs", c.global)
				f.Git("config", "core.attributesFile", f.Path("../attrs"))
			}
			raw := rawIn(t, f)
			for _, p := range strings.Fields(c.raw) {
				if !raw(p) {
					t.Errorf("%s is not raw", p)
				}
			}
			for _, p := range strings.Fields(c.not) {
				if raw(p) {
					t.Errorf("%s is raw", p)
				}
			}
		})
	}
}
