package linked

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// FuzzPlainIgnore holds that what is judged in process git judges as well.
func FuzzPlainIgnore(f *testing.F) {
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
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	repo := gittest.Repo(f)
	paths := []superqode.RelPath{"x", "x.d", "a", "a/x", "a/x/x", "a/x/x.d", "a/x/x.d/b", "a/b", "b", "b/x", "b/x/x", "foobar", "foo1bar/x"}
	for _, p := range paths {
		repo.Mkdir(string(p))
	}
	for _, p := range []string{"a/x/x.d/f", "b/x/f.d", "f", "foo2bar"} {
		repo.Write(p, "")
		paths = append(paths, superqode.RelPath(p))
	}
	bin, err := git.Find(f.Context(), repo.Env())
	if err != nil {
		f.Fatal(err)
	}
	found, err := bin.Discover(f.Context(), repo.Dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, top, inner, exclude string) {
		if strings.ContainsRune(top+inner+exclude, 0) {
			t.Skip("check-ignore -z ends a pattern there")
		}
		for name, text := range map[string]string{".gitignore": top, "a/.gitignore": inner, ".git/info/exclude": exclude} {
			if err := os.WriteFile(repo.Path(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := &creation{Options: Options{Repo: found}}
		if c.config, err = found.Config(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.origin, _, err = snapshot.Scan(t.Context(), repo.Dir, snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly}); err != nil {
			t.Fatal(err)
		}
		p, err := c.plainJudge(t.Context())
		if err != nil {
			return
		}
		got, err := p.ignored(paths)
		if err != nil || p.git != nil {
			p.close()
			return
		}
		j, err := c.checkIgnore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		want, err := j.ignored(paths)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			for i := range paths {
				if got[i] != want[i] {
					t.Errorf("%s: ignored %v, git says %v", paths[i], got[i], want[i])
				}
			}
			t.Errorf("patterns %q, in a %q, outside %q", top, inner, exclude)
		}
	})
}
