package linked

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// place is where a test's workspaces go.
func place(f *gittest.Fixture) (id superqode.SessionID, path string) {
	id = superqode.NewSessionID(time.Now())
	return id, filepath.Join(f.Home, ".superqode", "qe", id.String())
}

// options returns what Create needs for a session on the repository at dir.
func options(t testing.TB, f *gittest.Fixture, dir, from string) Options {
	t.Helper()
	g, err := git.Find(t.Context(), f.Env())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := g.Discover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	id, path := place(f)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	format, err := snapshot.ParseFormat(repo.ObjectFormat)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Repo: repo, ID: id, Path: path, From: from, Format: format}
}

// origin is one repository in the state that a case is about.
type origin struct {
	*gittest.Fixture
	dir     string   // the work tree; the fixture's own by default
	include []string // Options.Include
	gone    []string // what must not come along, beside ignored files
	come    []string // what must
	differs bool     // status cannot be the same; see the case
}

func cases() map[string]func(t *testing.T) origin {
	repo := func(setup func(f *gittest.Fixture)) func(*testing.T) origin {
		return func(t *testing.T) origin {
			f := gittest.Repo(t)
			f.Write("a.txt", "one\n")
			f.Write("dir/b.txt", "two\n")
			f.Write(".gitignore", "*.log\n/build/\n")
			f.Commit("first")
			f.Settle()
			setup(f)
			return origin{Fixture: f, dir: f.Dir}
		}
	}
	all := map[string]func(*testing.T) origin{
		"clean": repo(func(*gittest.Fixture) {}),
		"dirty": func(t *testing.T) origin {
			f := gittest.Dirty(t)
			return origin{Fixture: f, dir: f.Dir, gone: []string{"debug.log", "build"}, come: []string{"empty-folder/inner", "new-folder/run.sh"}}
		},
		"dirty and settled": func(t *testing.T) origin {
			f := gittest.Dirty(t)
			f.Settle()
			return origin{Fixture: f, dir: f.Dir}
		},
		"unmerged": repo(func(f *gittest.Fixture) {
			f.Git("switch", "-q", "-c", "other")
			f.Write("a.txt", "other\n")
			f.Commit("other")
			f.Git("switch", "-q", "main")
			f.Write("a.txt", "mine\n")
			f.Commit("mine")
			_, _ = f.Try(f.Dir, "merge", "-q", "other") // conflicts, as it should
		}),
		"cherry-pick under way": repo(func(f *gittest.Fixture) {
			f.Git("switch", "-q", "-c", "other")
			f.Write("a.txt", "other\n")
			f.Commit("other")
			f.Git("switch", "-q", "main")
			f.Write("a.txt", "mine\n")
			f.Commit("mine")
			_, _ = f.Try(f.Dir, "cherry-pick", "other")
		}),
		"ignored folder with a tracked file": repo(func(f *gittest.Fixture) {
			f.Write("build/kept.txt", "kept\n")
			f.Write("build/other.o", "object\n")
			f.Git("add", "-f", "build/kept.txt")
			f.Git("commit", "-qm", "kept")
		}),
		"file in the place of a folder": repo(func(f *gittest.Fixture) {
			f.Remove("dir")
			f.Write("dir", "a file now\n")
			f.Remove("a.txt")
			f.Write("a.txt/inner", "a folder now\n")
			f.Write("a.txt/x.log", "ignored\n")
		}),
		"no index": repo(func(f *gittest.Fixture) { f.Remove(".git/index") }),
		"touched": repo(func(f *gittest.Fixture) {
			now := time.Now()
			_ = os.Chtimes(f.Path("a.txt"), now, now)
		}),
		"assume unchanged": repo(func(f *gittest.Fixture) {
			f.Git("update-index", "--assume-unchanged", "a.txt")
			f.Write("a.txt", "changed, and nobody shall see\n")
			f.Git("update-index", "--skip-worktree", "dir/b.txt")
			f.Write("dir/b.txt", "changed, too\n")
		}),
		"file mode off": repo(func(f *gittest.Fixture) {
			f.Git("config", "core.fileMode", "false")
			f.WriteMode("a.txt", "one\n", 0o755)
		}),
		"symlinks off": repo(func(f *gittest.Fixture) {
			f.Symlink("a.txt", "link")
			f.Commit("link")
			f.Git("config", "core.symlinks", "false")
			f.Remove("link")
			f.Git("checkout", "-q", "--", "link")
		}),
		"ignore case": repo(func(f *gittest.Fixture) {
			f.Git("config", "core.ignoreCase", "true")
			f.Write("A.LOG", "ignored\n")
			f.Write("B.txt", "untracked\n")
		}),
		"relative hooks path": repo(func(f *gittest.Fixture) {
			f.Git("config", "core.hooksPath", ".hooks")
			f.WriteMode(".hooks/post-checkout", "#!/bin/sh\ntouch \"$(git rev-parse --git-common-dir)/hook-ran\"\n", 0o755)
		}),
		"untracked cache and split index": repo(func(f *gittest.Fixture) {
			f.Git("config", "core.untrackedCache", "true")
			f.Git("update-index", "--untracked-cache")
			f.Write("new.txt", "new\n")
			f.Git("status")
			f.Git("update-index", "--split-index")
			f.Write("a.txt", "split\n")
			f.Git("add", "a.txt")
			f.Git("rm", "-q", "dir/b.txt")
		}),
		"file system monitor": repo(func(f *gittest.Fixture) {
			f.WriteMode(".git/hooks/monitor", "#!/bin/sh\nprintf 'token\\0/\\0'\n", 0o755)
			f.Git("config", "core.fsmonitor", ".git/hooks/monitor")
			f.Git("update-index", "--fsmonitor")
			f.Git("status")
			f.Git("config", "core.fsmonitor", f.Path(".git/hooks/monitor")) // for the workspace, whose .git is a file
			f.Write("a.txt", "monitored\n")
		}),
		"times before 1970": repo(func(f *gittest.Fixture) {
			old := time.Unix(-100, 500)
			_ = os.Chtimes(f.Path("a.txt"), old, old)
			f.Git("update-index", "--refresh")
		}),
		"index version 4": repo(func(f *gittest.Fixture) {
			f.Git("update-index", "--index-version=4")
			f.Write("a.txt", "four\n")
			f.Write("new.txt", "new\n")
		}),
		"long and many untracked": repo(func(f *gittest.Fixture) {
			for i := range 300 {
				f.Write(fmt.Sprintf("deep/%d/%d/file-%d", i%7, i%5, i), "x")
				f.Write(fmt.Sprintf("deep/%d/%d/file-%d.log", i%7, i%5, i), "x")
			}
			f.Write("deep/0/.gitignore", "file-?\n!*.log\n")
			f.Write(":magic", "x")
			f.Write("only-ignored/a.log", "x")
		}),
		"sparse cone":     sparse("--cone"),
		"sparse index":    sparse("--cone", "--sparse-index"),
		"sparse patterns": sparse("--no-cone"),
		"sha256": func(t *testing.T) origin {
			f := gittest.Repo(t, "--object-format=sha256")
			f.Write("a.txt", "one\n")
			f.Commit("first")
			f.Write("a.txt", "two\n")
			f.Write("b.txt", "new\n")
			return origin{Fixture: f, dir: f.Dir}
		},
		"include": func(t *testing.T) origin {
			o := repo(func(f *gittest.Fixture) {
				f.Write(".worktreeinclude", "*.log\n!no.log\n")
				f.Write("yes.log", "y")
				f.Write("dir/sub/no.log", "n")
				f.Write("build/x/y.o", "o")
				f.Write("build/x/secret.env", "s")
			})(t)
			o.include, o.come, o.gone = []string{"*.env"}, []string{"yes.log", "build/x/secret.env"}, []string{"dir/sub/no.log", "build/x/y.o"}
			return o
		},
		"linked worktree": func(t *testing.T) origin {
			f := gittest.Dirty(t)
			dir := filepath.Join(f.Home, "linked")
			f.Git("worktree", "add", "-q", "-b", "linked", dir)
			for name, data := range map[string]string{"staged.txt": "in the linked one\n", "fresh.txt": "untracked there\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f.GitIn(dir, "add", "staged.txt")
			return origin{Fixture: f, dir: dir, come: []string{"fresh.txt"}}
		},
		"filter":          converted("*.x filter=upper\n"),
		"ident":           converted("*.txt ident\n"),
		"text=auto":       converted("* text=auto\n"),
		"eol=crlf":        converted("*.txt text eol=crlf\n"),
		"macro":           converted("[attr]mine text\n*.txt mine\n"),
		"binary":          converted("*.x binary\n"),
		"nested encoding": converted("/dir/** text working-tree-encoding=ISO-8859-1\n"),
		"autocrlf":        converted("", "core.autocrlf", "true"),
	}
	for name, o := range nestedCases(repo) {
		all[name] = o
	}
	return all
}

// sparse is a sparse checkout, with changes inside it and a file outside.
func sparse(args ...string) func(*testing.T) origin {
	return func(t *testing.T) origin {
		f := gittest.Repo(t)
		for _, d := range []string{"in", "out", "out/deep"} {
			f.Write(d+"/a.txt", d+"\n")
			f.Write(d+"/b.txt", d+"\n")
			f.Write(d+"/.gitignore", "*.log\n")
		}
		f.Write("top.txt", "top\n")
		f.Commit("first")
		f.Settle()
		f.Git(append(append([]string{"sparse-checkout", "set"}, args...), "in")...)
		f.Write("in/a.txt", "changed\n")
		f.Write("in/new.txt", "new\n")
		f.Write("in/x.log", "ignored\n")
		f.Write("out/x.log", "ignored by a file that is not there\n")
		return origin{Fixture: f, dir: f.Dir, gone: []string{"out/b.txt", "out/deep", "in/x.log"}}
	}
}

// converted is a repository in which git converts contents.
func converted(attrs string, config ...string) func(*testing.T) origin {
	return func(t *testing.T) origin {
		f := gittest.Repo(t)
		f.Git("config", "filter.upper.clean", "tr a-z A-Z")
		f.Git("config", "filter.upper.smudge", "tr A-Z a-z")
		if len(config) == 2 {
			f.Git("config", config[0], config[1])
		}
		f.Write(".gitattributes", attrs)
		f.Write("lf.txt", "one\ntwo\n$Id$\n")
		f.Write("crlf.txt", "one\r\ntwo\r\n")
		f.Write("mixed.txt", "one\r\ntwo\n")
		f.Write("dir/lower.x", "lower case\n")
		f.Write("dir/changed.txt", "x\n")
		f.Write("dir/changed.x", "x\n")
		f.Commit("first")
		f.Remove("lf.txt")
		f.Remove("crlf.txt")
		f.Git("checkout", "-q", "--", ".")
		f.Settle()
		f.Write("dir/changed.txt", "y\n")
		f.Write("dir/changed.x", "Y\n")
		f.Write("dir/new.txt", "new\r\n")
		later := time.Now().Add(2 * time.Second) // the index was written well after the files
		if err := os.Chtimes(f.Path(".git/index"), later, later); err != nil {
			t.Fatal(err)
		}
		return origin{Fixture: f, dir: f.Dir}
	}
}

func nestedCases(repo func(func(*gittest.Fixture)) func(*testing.T) origin) map[string]func(*testing.T) origin {
	return map[string]func(*testing.T) origin{
		"submodule": func(t *testing.T) origin {
			lib := gittest.Repo(t)
			lib.Write("lib.c", "int x;\n")
			lib.Commit("lib")
			o := repo(func(f *gittest.Fixture) {
				f.Git("submodule", "--quiet", "add", lib.Dir, "vendor/lib")
				f.Git("submodule", "--quiet", "add", lib.Dir, "vendor/empty")
				f.Commit("with a library")
				f.Git("submodule", "--quiet", "deinit", "-f", "vendor/empty")
				f.Write("vendor/lib-x", "sorts between\n")
			})(t)
			o.come, o.gone = []string{"vendor/lib/lib.c", "vendor/empty"}, []string{"vendor/lib/.git"}
			return o
		},
		"dirty submodule": func(t *testing.T) origin {
			lib := gittest.Repo(t)
			lib.Write("lib.c", "int x;\n")
			lib.Commit("lib")
			o := repo(func(f *gittest.Fixture) {
				f.Git("submodule", "--quiet", "add", lib.Dir, "lib")
				f.Commit("with a library")
				f.Write("lib/lib.c", "int y;\n")
				f.Write("lib/new.c", "int z;\n")
			})(t)
			o.come, o.differs = []string{"lib/new.c"}, true // without the submodule's .git git cannot see into it
			return o
		},
		"submodule as origin": func(t *testing.T) origin {
			lib := gittest.Repo(t)
			lib.Write("lib.c", "int x;\n")
			lib.Commit("lib")
			f := gittest.Repo(t)
			f.Git("submodule", "--quiet", "add", lib.Dir, "lib")
			f.Commit("with a library")
			f.Write("lib/lib.c", "int y;\n")
			f.Write("lib/new.c", "int z;\n")
			return origin{Fixture: f, dir: f.Path("lib"), come: []string{"new.c"}}
		},
		"nested repository": func(t *testing.T) origin {
			o := repo(func(f *gittest.Fixture) {
				f.Write("nested/inner.txt", "inner\n")
				f.Write("nested/inner.log", "in another repository this is not ignored\n")
				f.Git("init", "-q", "nested")
				f.Git("-C", "nested", "add", ".")
				f.Git("-C", "nested", "commit", "-qm", "inner")
				f.Write("new/deep/repo/x", "x")
				f.Git("init", "-q", "new/deep/repo")
				f.Write("build/repo/x", "x")
				f.Git("init", "-q", "build/repo")
			})(t)
			o.come, o.gone = []string{"nested/inner.log", "nested/.git/HEAD", "new/deep/repo/.git/config"}, []string{"build/repo"}
			return o
		},
		"linked worktree inside": func(t *testing.T) origin {
			o := repo(func(f *gittest.Fixture) { f.Git("worktree", "add", "-q", "--detach", "inside/other") })(t)
			o.come, o.gone, o.differs = []string{"inside/other/a.txt"}, []string{"inside/other/.git"}, true // its files show, not the folder
			return o
		},
		"own folder": func(t *testing.T) origin {
			o := repo(func(f *gittest.Fixture) {
				f.Write(".superqode/.gitignore", "*\n")
				f.Write(".superqode/qe-artifacts/x", "x")
			})(t)
			o.gone = []string{".superqode"}
			return o
		},
	}
}

func TestCreateWorking(t *testing.T) {
	t.Parallel()
	for name, setup := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setup(t)
			opt := options(t, o.Fixture, o.dir, Working)
			opt.Include = o.include
			status, plain := o.StatusIn(o.dir), o.GitIn(o.dir, "--no-optional-locks", "status")
			before, times := gittest.Fingerprint(t, o.dir), gittest.Times(t, o.dir)
			res, err := Create(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			checkOrigin(t, o, opt, before, times)
			checkStatus(t, o, opt, status, plain)
			checkFiles(t, o, opt, res)
			checkBase(t, opt, res)
			o.GitIn(opt.Path, "fsck", "--no-dangling")
			removeAgain(t, o, opt, res, before)
		})
	}
}

// checkOrigin makes sure that nothing in the origin is new but the admin folder.
func checkOrigin(t *testing.T, o origin, opt Options, before, times gittest.Print) {
	t.Helper()
	admin := ".git/worktrees"
	if st, err := os.Lstat(filepath.Join(o.dir, ".git")); err == nil && !st.IsDir() {
		admin = "COMMON/worktrees"
		if opt.Repo.Linked() {
			admin += "/" + opt.ID.String()
		}
	}
	exclude(before, gittest.Fingerprint(t, o.dir), admin).check(t)
	exclude(times, gittest.Times(t, o.dir), admin).check(t)
}

// differences are lines of Print.Diff.
type differences []string

// exclude compares two fingerprints, but for what lies at or below dir, and the
// folder .git whose time a new entry moves.
func exclude(before, after gittest.Print, dir string) differences {
	var d differences
	for _, line := range before.Diff(after) {
		if !strings.HasPrefix(line, fmt.Sprintf("%q", dir)) && !strings.HasPrefix(line, `"`+dir+`/`) {
			d = append(d, line)
		}
	}
	return d
}

func (d differences) check(t *testing.T) {
	t.Helper()
	if len(d) > 0 {
		t.Errorf("the origin changed:\n%s", strings.Join(d, "\n"))
	}
}

// checkStatus compares what git says on both sides, and that it need not read a
// clean file to say it: diff-files names every entry whose stat data differ.
func checkStatus(t *testing.T, o origin, opt Options, status, plain string) {
	t.Helper()
	stale := zlist(o.GitIn(opt.Path, "diff-files", "--name-only", "-z"))
	dirty := zlist(o.GitIn(opt.Path, "--no-optional-locks", "diff", "--name-only", "-z", "--no-renames"))
	if diff := cmp.Diff(dirty, stale); diff != "" {
		t.Errorf("entries that git has to read again (+):\n%s", diff)
	}
	if o.differs {
		return
	}
	if diff := cmp.Diff(status, o.StatusIn(opt.Path)); diff != "" {
		t.Errorf("git status differs:\n%s", diff)
	}
	_, plain, _ = strings.Cut(plain, "\n")
	_, now, _ := strings.Cut(o.GitIn(opt.Path, "status"), "\n")
	if rest, ok := strings.CutPrefix(plain, "Your branch is "); ok {
		_, plain, _ = strings.Cut(rest, "\n\n")
	}
	if diff := cmp.Diff(plain, now); diff != "" {
		t.Errorf("plain git status differs:\n%s", diff)
	}
	if diff := cmp.Diff(o.GitIn(o.dir, "ls-files", "-s", "-v"), o.GitIn(opt.Path, "ls-files", "-s", "-v")); diff != "" {
		t.Errorf("index differs:\n%s", diff)
	}
	if head := o.GitIn(opt.Path, "rev-parse", "HEAD"); head != o.GitIn(o.dir, "rev-parse", "HEAD") {
		t.Errorf("HEAD is %s", head)
	}
}

func zlist(out string) []string {
	list := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	slices.Sort(list)
	return slices.Compact(list)
}

// checkFiles compares every file that came along with the origin's, and what
// came along with what git lists.
func checkFiles(t *testing.T, o origin, opt Options, res *Result) {
	t.Helper()
	for _, p := range o.come {
		if _, err := os.Lstat(filepath.Join(opt.Path, p)); err != nil {
			t.Errorf("did not come along: %v", err)
		}
	}
	for _, p := range o.gone {
		if _, err := os.Lstat(filepath.Join(opt.Path, p)); err == nil {
			t.Errorf("came along: %s", p)
		}
	}
	for _, p := range zlist(o.GitIn(o.dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")) {
		_, err := os.Lstat(filepath.Join(o.dir, p))
		_, err2 := os.Lstat(filepath.Join(opt.Path, p))
		if (err == nil) != (err2 == nil) && !strings.HasPrefix(p, ".superqode") {
			t.Errorf("%q: %v in the origin, %v in the workspace", p, err, err2)
		}
	}
	for _, e := range res.Base.Entries {
		if e.Kind == snapshot.Dir {
			continue
		}
		from, to := look(t, e.Path.In(o.dir)), look(t, e.Path.In(opt.Path))
		if from != to {
			t.Errorf("%q: %s in the origin, %s in the workspace", e.Path, from, to)
		}
	}
}

func look(t *testing.T, p string) string {
	t.Helper()
	st, err := os.Lstat(p)
	if err != nil {
		t.Error(err)
		return ""
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(p)
		return fmt.Sprintf("link %q %v %v", target, err, st.ModTime())
	}
	data, err := os.ReadFile(p)
	return fmt.Sprintf("%v %v %q %v", st.Mode(), st.ModTime(), data, err)
}

// checkBase compares the result's base with a scan that reads every byte, and
// Missing with what git has.
func checkBase(t *testing.T, opt Options, res *Result) {
	t.Helper()
	fresh, problems, err := snapshot.Scan(t.Context(), opt.Path, snapshot.ScanOptions{
		Format: opt.Format, Skip: func(p superqode.RelPath, _ snapshot.Kind) bool { return p.Name() == ".git" },
	})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if diff := cmp.Diff(plainEntries(fresh), plainEntries(res.Base)); diff != "" {
		t.Errorf("base is not what lies there (-):\n%s", diff)
	}
	missing := map[superqode.RelPath]bool{}
	for _, e := range res.Missing {
		missing[e.Path] = true
	}
	for _, e := range res.Base.Entries {
		if e.Kind == snapshot.Dir || missing[e.Path] {
			continue
		}
		if err := opt.Repo.Run(t.Context(), git.Cmd{Dir: opt.Path, Args: []string{"cat-file", "-e", e.ID.String()}}); err != nil {
			t.Errorf("%q is not missing, but: %v", e.Path, err)
		}
	}
}

func plainEntries(s *snapshot.Snapshot) []string {
	list := make([]string, 0, len(s.Entries))
	for _, e := range s.Entries {
		st := e.Stat
		if e.Kind == snapshot.Dir {
			st.Mtime, st.Ctime, st.Nlink, e.Perm = 0, 0, 0, 0
		}
		list = append(list, fmt.Sprintf("%q %d %o %d %q %v %+v", e.Path, e.Kind, e.Perm, e.Size, e.Link, e.ID, st))
	}
	return list
}

// removeAgain takes the workspace away; then the origin is what it was.
func removeAgain(t *testing.T, o origin, opt Options, res *Result, before gittest.Print) {
	t.Helper()
	bin := filepath.Join(o.Home, ".superqode", "trash")
	for range 2 { // the second time there is nothing left to do
		if err := Remove(t.Context(), opt.Repo, res.AdminDir, opt.Path, bin); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Same(t, before, gittest.Fingerprint(t, o.dir))
	if done, err := trash.Sweep(t.Context(), bin, 0); !done || err != nil {
		t.Errorf("Sweep: %v, %v", done, err)
	}
	if left, err := os.ReadDir(bin); err != nil || len(left) > 0 {
		t.Errorf("left in the bin: %v, %v", left, err)
	}
}
