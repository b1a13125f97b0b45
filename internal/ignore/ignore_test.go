package ignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// FuzzTree holds that git judges the same.
func FuzzTree(f *testing.F) {
	for _, seed := range [][3]string{
		{"*.log\n/build/\n", "", ""},
		{"x\n!/a/x\n", "", "a\n"},
		{"a/*\n!a/x/\n", "!x", ""},
		{"foo*bar \r\n# no\n!*\nx.d", "*.d\n", "/a/\n"},
		{"a/x\n", "/x/x\n", "*"},
		{"a/\n!a/x", "", "x/"},
		{"/*\n!/a\n", "*\n!x", "\ufeffx\n"},
		{"//\n", "!\n", "/"},
		{"*x*\n!*.d*", "b//", ""},
		{"a/x/*", "x/*.d\n!x/x.d/", ""},
		{"**/x\n!a/**", "x/**\n", "a/**/b"},
		{"a**/x.d\n**x\n", "**/b\n", "/**/**/x"},
		{"foo**/bar\nfoo[0-9]bar/x", "[!a-w]\n", "[^b]"},
		{"[[:alpha:]]\n", "[[:digit:][:punct:]x]*", "[[:nope:]]"},
		{"[]-]x\n[x", "[a-]\n[\\]x]", "[[:x]"},
		{"\\x\\ \n\\!n\n\\#h", "x\\", "x\\\\ \n*\\**"},
		{"x?d\n?", "a?x\n?/x", "??"},
		{"**\n!x", "***\n!b", "a/***/x"},
		{"*a*a*a*a*a*a*a*a*b", "**/x/**/x/**/b", "[a-b]*[x-y]/"},
		{"f\\oo\\*bar\nb\\/x", "/**", "a/**\\/x"},
		{"#h\n \n  x", "x \\ \n", "\\ \n"},
		{"[[:space:]]\n[z-a]\n[a-c-x]", "[--x]", "[!]x]"},
		{"[A]\n\\X\nFOO*\nA/B", "[A-D]\n[![:upper:]].*", "[X-Z]\n[Z-b]"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	repo := gittest.Repo(f)
	paths := []superqode.RelPath{"x", "x.d", "a", "a/x", "a/x/x", "a/x/x.d", "a/x/x.d/b", "a/b", "b", "b/x", "b/x/x", "foobar", "foo1bar/x"}
	for _, p := range paths {
		repo.Mkdir(string(p))
	}
	folders := len(paths)
	for _, p := range []string{"a/x/x.d/f", "b/x/f.d", "f", "foo2bar", "!n", "#h", " ", "x ", "a/]", "aaaaaaaaaaaaaaaaab", "foo*bar", "X", "-x", "a/\\"} {
		repo.Write(p, "")
		paths = append(paths, superqode.RelPath(p))
	}
	f.Fuzz(func(t *testing.T, top, inner, exclude string) {
		for name, text := range map[string]string{".gitignore": top, "a/.gitignore": inner, ".git/info/exclude": exclude} {
			if err := os.WriteFile(repo.Path(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, fold := range []bool{false, true} {
			read := func(dir superqode.RelPath) Patterns { return Read(dir.Join(File).In(repo.Dir), fold) }
			tree := NewTree(read, Read(repo.Path(".git/info/exclude"), fold))
			var got, in []string
			for i, p := range paths {
				in = append(in, "./"+string(p))
				if tree.Ignored(p, i < folders) {
					got = append(got, "./"+string(p))
				}
			}
			config := "core.ignorecase=false"
			if fold {
				config = "core.ignorecase=true"
			}
			cmd := exec.Command("git", "-c", config, "check-ignore", "-z", "--stdin", "--no-index")
			cmd.Dir, cmd.Env, cmd.Stdin = repo.Dir, repo.Env(), strings.NewReader(strings.Join(in, "\x00"))
			out, err := cmd.Output()
			if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: none is ignored
				t.Fatal(err)
			}
			if want := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }); !slices.Equal(got, want) {
				t.Errorf("ignored %q, git says %q\npatterns %q, in a %q, outside %q, %s", got, want, top, inner, exclude, config)
			}
		}
	})
}

// A file of patterns that is none, or much too large, is as good as missing, and
// nothing waits for it.
func TestReadWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo, link, huge, folder := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "huge"), filepath.Join(dir, "folder")
	plain := filepath.Join(dir, "plain")
	for _, err := range []error{
		syscall.Mkfifo(fifo, 0o600), os.WriteFile(plain, []byte("x\n"), 0o600), os.Symlink(plain, link), os.Mkdir(folder, 0o700),
		os.WriteFile(huge, []byte("x\n"), 0o600), os.Truncate(huge, 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{fifo, link, huge, folder, filepath.Join(dir, "missing")} {
		if got := Read(path, false); got != nil {
			t.Errorf("%s has patterns", path)
		}
	}
	if len(Read(plain, false)) != 1 || len(ReadThrough(link, false)) != 1 {
		t.Error("the pattern was not read")
	}
}

// Patterns of many stars take time that is bounded by the name's length.
func TestManyStars(t *testing.T) {
	name := bytes.Repeat([]byte("a"), 200)
	deep := bytes.Repeat([]byte("a/"), 2000)
	for _, text := range []string{strings.Repeat("*a", 90) + "*b", strings.Repeat("**/a/", 40) + "b", strings.Repeat("*[a]", 80) + "?b", strings.Repeat("a*/**/", 60) + "b"} {
		list := Parse([]byte(text), false)
		if list.last(string(name), false) != nil || list.last(string(deep)+"x", false) != nil {
			t.Errorf("%s matches", text)
		}
	}
}
