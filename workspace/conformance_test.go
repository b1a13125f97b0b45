package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

// open returns a Dir of a temporary directory.
func open(t testing.TB) *workspace.Dir {
	t.Helper()
	dir, err := workspace.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v is not %v", err, want)
	}
}

// other is an FS that the package does not know.
type other struct{ workspace.FS }

// implementations are all there are; each test gets an empty one.
var implementations = map[string]func(testing.TB) workspace.FS{
	"Dir":        func(t testing.TB) workspace.FS { return open(t) },
	"Mem":        func(testing.TB) workspace.FS { return workspace.NewMem() },
	"Sub of Dir": func(t testing.TB) workspace.FS { return workspace.Sub(open(t), "a/b") },
	"Sub of Mem": func(testing.TB) workspace.FS { return workspace.Sub(workspace.NewMem(), "a/b") },
	"Sub of Sub": func(t testing.TB) workspace.FS { return workspace.Sub(workspace.Sub(open(t), "a"), "b") },
	"Scoped Dir": func(t testing.TB) workspace.FS { return workspace.Scoped(open(t), workspace.WithAllowWrite("**")) },
	"Scoped Mem": func(testing.TB) workspace.FS {
		return workspace.Scoped(workspace.NewMem(), workspace.WithAllowWrite("**"))
	},
	"Sub, Scoped": func(t testing.TB) workspace.FS {
		return workspace.Sub(workspace.Scoped(open(t), workspace.WithAllowWrite("x/**")), "x")
	},
	"Scoped, Sub": func(t testing.TB) workspace.FS {
		return workspace.Scoped(workspace.Sub(open(t), "x"), workspace.WithAllowWrite("**"))
	},
	"Sub of another's": func(testing.TB) workspace.FS { return workspace.Sub(other{workspace.NewMem()}, "x") },
}

// TestConformance states what every FS does, and what where there is a doubt.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, make := range implementations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, test := range map[string]func(suite, *testing.T){
				"read and write": suite.readWrite, "missing": suite.missing, "directories": suite.directories,
				"paths": suite.paths, "rename": suite.rename, "remove": suite.remove, "list": suite.list,
				"tools": suite.tools, "glob": suite.glob, "context": suite.cancelled, "io/fs": suite.iofs,
			} {
				t.Run(what, func(t *testing.T) { t.Parallel(); test(suite{make(t), context.Background()}, t) })
			}
		})
	}
}

type suite struct {
	workspace.FS
	ctx context.Context
}

func (s suite) put(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, s.Write(s.ctx, name, []byte(name)))
	}
}

func (s suite) has(t *testing.T, name, want string) {
	t.Helper()
	if data, err := s.Read(s.ctx, name); err != nil || string(data) != want {
		t.Errorf("%s holds %q (%v), not %q", name, data, err, want)
	}
}

func (s suite) exists(t *testing.T, name string, want bool) {
	t.Helper()
	if ok, err := s.Exists(s.ctx, name); err != nil || ok != want {
		t.Errorf("%s exists: %t, %v", name, ok, err)
	}
}

func (s suite) names(t *testing.T, dir string) string {
	t.Helper()
	list, err := s.List(s.ctx, dir)
	must(t, err)
	var names []string
	for _, e := range list {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func (s suite) readWrite(t *testing.T) {
	must(t, s.Write(s.ctx, "a/b/c.txt", []byte("one")))
	s.has(t, "a/b/c.txt", "one")
	must(t, s.Write(s.ctx, "a/b/c.txt", []byte("2")))
	s.has(t, "a/b/c.txt", "2")
	must(t, s.Append(s.ctx, "a/b/c.txt", []byte(" and 3")))
	s.has(t, "a/b/c.txt", "2 and 3")
	must(t, s.Append(s.ctx, "n/e/w", []byte("x")))
	s.has(t, "n/e/w", "x")
	must(t, s.Write(s.ctx, "empty", nil))
	s.has(t, "empty", "")
	data, err := s.Read(s.ctx, "a/b/c.txt")
	must(t, err)
	copy(data, "XXXX")
	s.has(t, "a/b/c.txt", "2 and 3")
	mine := []byte("mine")
	must(t, s.Write(s.ctx, "m", mine))
	copy(mine, "your")
	s.has(t, "m", "mine")
	info, err := s.Stat(s.ctx, "a/b/c.txt")
	must(t, err)
	if info.Name() != "c.txt" || info.Size() != 7 || info.IsDir() || !info.Mode().IsRegular() || info.ModTime().IsZero() {
		t.Errorf("%v", info)
	}
	big := []byte(strings.Repeat("0123456789", 100_000))
	must(t, s.Write(s.ctx, "big", big))
	s.has(t, "big", string(big))
}

func (s suite) missing(t *testing.T) {
	s.put(t, "file")
	for _, name := range []string{"no", "no/no", "file/no"} {
		for op, err := range map[string]error{
			"read": second(s.Read(s.ctx, name)), "stat": second(s.Stat(s.ctx, name)),
		} {
			e, ok := errors.AsType[*workspace.Error](err)
			if !ok || !errors.Is(err, superqode.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) || e.Op != op || e.Path != name {
				t.Errorf("%s %s: %v", op, name, err)
			}
		}
		s.exists(t, name, false)
	}
	for _, err := range []error{s.Delete(s.ctx, "no"), second(s.List(s.ctx, "no")), s.Rename(s.ctx, "no", "x/y")} {
		is(t, err, superqode.ErrNotFound)
		is(t, err, fs.ErrNotExist)
	}
	s.exists(t, "x", false)
	must(t, s.RemoveAll(s.ctx, "no"))
	must(t, s.RemoveAll(s.ctx, "no/no"))
	must(t, s.RemoveAll(s.ctx, "file/no"))
	is(t, s.Write(s.ctx, "file/no", nil), syscall.ENOTDIR)
	is(t, second(s.List(s.ctx, "file")), syscall.ENOTDIR)
	s.has(t, "file", "file")
}

func second[T any](_ T, err error) error { return err }

func (s suite) directories(t *testing.T) {
	s.put(t, "dir/file")
	for _, name := range []string{"dir", "", ".", "./"} {
		is(t, second(s.Read(s.ctx, name)), syscall.EISDIR)
		is(t, s.Write(s.ctx, name, []byte("x")), syscall.EISDIR)
		is(t, s.Append(s.ctx, name, []byte("x")), syscall.EISDIR)
		is(t, s.Delete(s.ctx, name), syscall.EISDIR)
		is(t, workspace.AtomicWrite(s.ctx, s.FS, name, nil), syscall.EISDIR)
		info, err := s.Stat(s.ctx, name)
		if err != nil || !info.IsDir() {
			t.Errorf("stat %q: %v %v", name, info, err)
		}
		s.exists(t, name, true)
	}
	s.has(t, "dir/file", "dir/file")
	must(t, s.Delete(s.ctx, "dir/file"))
	is(t, s.Delete(s.ctx, "dir"), syscall.EISDIR)
	if s.names(t, "dir") != "" {
		t.Error(s.names(t, "dir"))
	}
}

func (s suite) paths(t *testing.T) {
	for _, name := range []string{"..", "../x", "/", "/etc/passwd", "a/..", "a/../b", "a/../../b", "./../x", "../../../../../../etc/passwd"} {
		for op, err := range map[string]error{
			"read": second(s.Read(s.ctx, name)), "write": s.Write(s.ctx, name, nil), "append": s.Append(s.ctx, name, nil),
			"rename from": s.Rename(s.ctx, name, "x"), "rename to": s.Rename(s.ctx, "x", name), "delete": s.Delete(s.ctx, name),
			"remove": s.RemoveAll(s.ctx, name), "list": second(s.List(s.ctx, name)), "exists": second(s.Exists(s.ctx, name)),
			"stat": second(s.Stat(s.ctx, name)), "atomic": workspace.AtomicWrite(s.ctx, s.FS, name, nil),
			"walk": workspace.Walk(s.ctx, s.FS, name, func(string, fs.DirEntry) error { return nil }),
			"sub":  second(workspace.Sub(s.FS, name).Read(s.ctx, "x")),
		} {
			if !errors.Is(err, workspace.ErrPathTraversal) || !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("%s %q: %v", op, name, err)
			}
		}
	}
	for _, name := range []string{"..foo", "...", "a..b/..c/d..", " ", "~", "a\\b", "%2e%2e", "\xff\xfe", "-rf", "*", "x\ny"} {
		must(t, s.Write(s.ctx, name, []byte(name)))
		s.has(t, name, name)
	}
	must(t, s.Write(s.ctx, ".//q/./r/", []byte("q")))
	s.has(t, "q/r", "q")
	if err := s.Write(s.ctx, "a\x00b", nil); !errors.Is(err, superqode.ErrUsage) {
		t.Error(err)
	}
}

func (s suite) rename(t *testing.T) {
	s.put(t, "a/1", "a/sub/2", "full/x", "empty/x", "f", "g")
	must(t, s.Delete(s.ctx, "empty/x"))
	must(t, s.Rename(s.ctx, "f", "new/dir/f"))
	s.has(t, "new/dir/f", "f")
	s.exists(t, "f", false)
	must(t, s.Rename(s.ctx, "new/dir/f", "g"))
	s.has(t, "g", "f")
	must(t, s.Rename(s.ctx, "g", "g"))
	must(t, s.Rename(s.ctx, "a", "a"))
	s.has(t, "g", "f")
	is(t, s.Rename(s.ctx, "a", "full"), syscall.ENOTEMPTY)
	is(t, s.Rename(s.ctx, "a", "g"), syscall.ENOTDIR)
	is(t, s.Rename(s.ctx, "g", "full"), syscall.EISDIR)
	is(t, s.Rename(s.ctx, "a", "a/sub/a"), syscall.EINVAL)
	is(t, s.Rename(s.ctx, "a", "g/a"), syscall.ENOTDIR)
	s.has(t, "a/sub/2", "a/sub/2")
	must(t, s.Rename(s.ctx, "a", "empty"))
	s.has(t, "empty/sub/2", "a/sub/2")
	s.exists(t, "a", false)
	must(t, s.Rename(s.ctx, "empty", "deep/er/moved"))
	s.has(t, "deep/er/moved/1", "a/1")
	for _, root := range []string{"", "."} {
		is(t, s.Rename(s.ctx, root, "x"), workspace.ErrAccessDenied)
		is(t, s.Rename(s.ctx, "g", root), workspace.ErrAccessDenied)
	}
	s.has(t, "g", "f")
}

func (s suite) remove(t *testing.T) {
	s.put(t, "a/1", "a/sub/2", "f", "keep/x")
	must(t, s.RemoveAll(s.ctx, "a/sub"))
	s.exists(t, "a/sub", false)
	s.has(t, "a/1", "a/1")
	must(t, s.RemoveAll(s.ctx, "f"))
	must(t, s.RemoveAll(s.ctx, "a"))
	for _, root := range []string{"", ".", "./"} {
		is(t, s.RemoveAll(s.ctx, root), workspace.ErrAccessDenied)
	}
	if got := s.names(t, ""); got != "keep/" {
		t.Error(got)
	}
}

func (s suite) list(t *testing.T) {
	s.put(t, "z", "a", "m/x", ".hidden", "m2")
	if got := s.names(t, "."); got != ".hidden a m/ m2 z" || got != s.names(t, "") {
		t.Error(got)
	}
	list, err := s.List(s.ctx, "")
	must(t, err)
	for _, e := range list {
		info, err := e.Info()
		if err != nil || info.Name() != e.Name() || info.IsDir() != e.IsDir() || info.Mode().Type() != e.Type() {
			t.Errorf("%v: %v %v", e, info, err)
		}
	}
}

func (s suite) tools(t *testing.T) {
	must(t, workspace.AtomicWrite(s.ctx, s.FS, "out/x", []byte("one")))
	must(t, workspace.AtomicWrite(s.ctx, s.FS, "out/x", []byte("two")))
	s.has(t, "out/x", "two")
	if got := s.names(t, "out"); got != "x" {
		t.Error("left behind:", got)
	}
	must(t, workspace.Copy(s.ctx, s.FS, "out/x", "copy/x"))
	s.has(t, "copy/x", "two")
	is(t, workspace.Copy(s.ctx, s.FS, "no", "copy/y"), superqode.ErrNotFound)
	is(t, workspace.Copy(s.ctx, s.FS, "out", "copy/y"), syscall.EISDIR)
	s.exists(t, "copy/y", false)
	s.put(t, "skip/2", "a/1", "b/3")
	var seen []string
	walk := func(dir string, end map[string]error) error {
		seen = nil
		return workspace.Walk(s.ctx, s.FS, dir, func(name string, e fs.DirEntry) error {
			seen = append(seen, name)
			return end[name]
		})
	}
	for _, tt := range []struct {
		dir  string
		end  map[string]error
		want string
	}{
		{".", nil, "a a/1 b b/3 copy copy/x out out/x skip skip/2"},
		{"", map[string]error{"copy": fs.SkipDir, "skip": fs.SkipDir}, "a a/1 b b/3 copy out out/x skip"},
		{"a", nil, "a/1"},
		{"", map[string]error{"b/3": fs.SkipAll}, "a a/1 b b/3"},
	} {
		if err := walk(tt.dir, tt.end); err != nil || strings.Join(seen, " ") != tt.want {
			t.Errorf("%q %v: %q %v", tt.dir, tt.end, seen, err)
		}
	}
	stop := errors.New("stop")
	is(t, walk("", map[string]error{"a/1": stop}), stop)
	is(t, walk("missing", nil), superqode.ErrNotFound)
	got, ok := workspace.FromContext(workspace.WithContext(s.ctx, s.FS))
	if !ok || got != s.FS {
		t.Error("the context lost it")
	}
}

func (s suite) glob(t *testing.T) {
	s.put(t, "a.txt", "b.log", ".hidden", "dist/x.js", "dist/sub/y.css", "dist/sub/z.map", ".git/config", "{odd}", "we ird/$f")
	for pattern, want := range map[string]string{
		"*.txt": "a.txt", "**/*.css": "dist/sub/y.css", "dist/**/*.{js,css}": "dist/sub/y.css dist/x.js",
		"dist": "dist/sub/y.css dist/sub/z.map dist/x.js", "dist/": "dist/sub/y.css dist/sub/z.map dist/x.js",
		"*": ".hidden a.txt b.log {odd}", "*/": "dist/sub/y.css dist/sub/z.map dist/x.js we ird/$f", "a.txt": "a.txt",
		"**": ".hidden a.txt b.log dist/sub/y.css dist/sub/z.map dist/x.js we ird/$f {odd}", ".git/config": ".git/config",
		`\{odd\}`: "{odd}", "nothing*": "", "./a.txt": "a.txt", "a.txt/x": "", "no/where/*": "", "dist/*": "dist/x.js", "dist/?.js": "dist/x.js",
		"[ab].*": "a.txt b.log", "{dist/sub,x}/*.css": "dist/sub/y.css", ".": ".hidden a.txt b.log dist/sub/y.css dist/sub/z.map dist/x.js we ird/$f {odd}",
	} {
		if got, err := workspace.Glob(s.ctx, s.FS, pattern); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q %v", pattern, got, err)
		}
	}
	for _, bad := range []string{"", "../x", "a/../../x", "/etc/passwd", "[", "a\x00b", "{a"} {
		if got, err := workspace.Glob(s.ctx, s.FS, bad); !errors.Is(err, superqode.ErrUsage) || got != nil {
			t.Errorf("%q: %q %v", bad, got, err)
		}
	}
}

func (s suite) cancelled(t *testing.T) {
	s.put(t, "a")
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(why)
	for _, err := range []error{
		second(s.Read(ctx, "a")), s.Write(ctx, "a", nil), s.Append(ctx, "a", nil), s.Rename(ctx, "a", "b"), s.Delete(ctx, "a"),
		s.RemoveAll(ctx, "a"), second(s.List(ctx, "")), second(s.Exists(ctx, "a")), second(s.Stat(ctx, "a")),
		workspace.AtomicWrite(ctx, s.FS, "a", nil), second(workspace.Glob(ctx, s.FS, "*")),
	} {
		is(t, err, why)
	}
	s.has(t, "a", "a")
}

func (s suite) iofs(t *testing.T) {
	s.put(t, "a.txt", "d/e/f", "d/g", ".h")
	f := workspace.IOFS(s.ctx, s.FS)
	must(t, fstest.TestFS(f, "a.txt", "d/e/f", "d/g", ".h"))
	matches, err := fs.Glob(f, "d/*")
	if err != nil || !slices.Equal(matches, []string{"d/e", "d/g"}) {
		t.Error(matches, err)
	}
	_, err = fs.ReadFile(f, "no")
	is(t, err, fs.ErrNotExist)
	is(t, second(f.Open("../x")), fs.ErrInvalid)
	to := t.TempDir()
	must(t, os.CopyFS(filepath.Join(to, "copy"), f))
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	dir, mem := open(t), workspace.NewMem()
	if c := workspace.CapabilitiesOf(dir); !c.AtomicRename || !c.Sync || !c.Links {
		t.Errorf("%+v", c)
	}
	if c := workspace.CapabilitiesOf(mem); !c.AtomicRename || c.Sync || c.Links || !c.CaseSensitive {
		t.Errorf("%+v", c)
	}
	for _, f := range []workspace.FS{dir, mem} {
		if workspace.CapabilitiesOf(workspace.Scoped(workspace.Sub(f, "x"))) != workspace.CapabilitiesOf(f) {
			t.Error("a view has other capabilities")
		}
	}
	if workspace.CapabilitiesOf(nil) != (workspace.Capabilities{}) || workspace.CapabilitiesOf(workspace.Sub(other{mem}, "x")) != (workspace.Capabilities{}) {
		t.Error("what cannot tell promises something")
	}
	if _, ok := workspace.FromContext(context.Background()); ok {
		t.Error("an empty context has one")
	}
}
