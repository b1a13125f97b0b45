package revert_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a directory that is changed and brought back.
type place struct {
	*revert.Tree
	t      *testing.T
	print  gittest.Print // of the base
	times  gittest.Print // of files and links, and of folders
	folder map[string]time.Time
}

// remembered makes the directory as it is the base of a tree, with copies of all
// its files aside.
func remembered(t *testing.T, dir string) *place {
	t.Helper()
	base, problems, err := snapshot.Scan(t.Context(), dir, snapshot.ScanOptions{Format: snapshot.SHA256})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	aside := t.TempDir()
	files := *base
	files.Entries = slices.DeleteFunc(slices.Clone(base.Entries), func(e snapshot.Entry) bool { return e.Kind != snapshot.File })
	if _, _, err := treecopy.Copy(t.Context(), &files, aside, treecopy.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { openUp(dir); openUp(aside) })
	return &place{
		Tree: &revert.Tree{Dir: dir, Base: base, Aside: aside}, t: t,
		print: gittest.Fingerprint(t, dir), times: gittest.Times(t, dir), folder: folderTimes(t, dir),
	}
}

func folderTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir { // the tree's own folder is its owner's business
			info, err := d.Info()
			if err != nil {
				return err
			}
			times[path] = info.ModTime()
		}
		return err
	}))
	return times
}

// check holds the directory against the base.
func (p *place) check() {
	p.t.Helper()
	gittest.Same(p.t, p.print, gittest.Fingerprint(p.t, p.Dir))
	gittest.Same(p.t, p.times, gittest.Times(p.t, p.Dir))
	for path, was := range p.folder {
		if st, err := os.Lstat(path); err != nil || !st.ModTime().Equal(was) {
			p.t.Errorf("%s: time %v, was %v (%v)", path, st.ModTime(), was, err)
		}
	}
}

// restore brings the directory back and checks it.
func (p *place) restore(opt revert.RestoreOptions) *revert.Restored {
	p.t.Helper()
	res, err := p.Restore(p.t.Context(), opt)
	if err != nil || !res.Verified || len(res.Differences) > 0 {
		p.t.Fatalf("%v %+v", err, res)
	}
	p.check()
	return res
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// shapes are what can stand at a path.
func shapes() map[string]func(path string) error {
	return map[string]func(path string) error{
		"nothing":       func(string) error { return nil },
		"file":          func(p string) error { return os.WriteFile(p, []byte("one"), 0o644) },
		"other file":    func(p string) error { return os.WriteFile(p, []byte("two and more"), 0o600) },
		"empty file":    func(p string) error { return os.WriteFile(p, nil, 0o444) },
		"program":       func(p string) error { return errors.Join(os.WriteFile(p, []byte("one"), 0o644), os.Chmod(p, 0o4755)) },
		"link":          func(p string) error { return os.Symlink("one", p) },
		"link away":     func(p string) error { return os.Symlink("/", p) },
		"folder":        func(p string) error { return os.Mkdir(p, 0o755) },
		"closed folder": func(p string) error { return errors.Join(os.Mkdir(p, 0o755), os.Chmod(p, 0o1500)) },
		"full folder": func(p string) error {
			return errors.Join(os.MkdirAll(p+"/a/b", 0o755), os.WriteFile(p+"/a/b/c", []byte("c"), 0o644), os.Symlink("..", p+"/a/up"))
		},
		"fifo": func(p string) error { return syscall.Mkfifo(p, 0o640) },
	}
}

// Whatever stood at a path comes back, whatever stands there now.
func TestRestoreEveryShapeFromEveryOther(t *testing.T) {
	t.Parallel()
	for was, makeBase := range shapes() {
		for is, makeNow := range shapes() {
			t.Run(was+" from "+is, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				write(t, dir+"/before", "1")
				write(t, dir+"/zz/after", "2")
				must(t, makeBase(dir+"/x"))
				p := remembered(t, dir)
				openUp(dir + "/x")
				must(t, os.RemoveAll(dir+"/x"))
				must(t, makeNow(dir+"/x"))
				p.restore(revert.RestoreOptions{How: revert.Full})
			})
		}
	}
}

func TestPlanNamesWhatChanges(t *testing.T) {
	t.Parallel()
	file := func(path superqode.RelPath, id byte, perm uint32) snapshot.Entry {
		e := snapshot.Entry{Path: path, Kind: snapshot.File, Perm: perm, Size: 1}
		e.ID = snapshot.SHA256.HashBlob([]byte{id})
		return e
	}
	dir := func(path superqode.RelPath) snapshot.Entry {
		return snapshot.Entry{Path: path, Kind: snapshot.Dir, Perm: 0o755}
	}
	link := func(path superqode.RelPath, to string) snapshot.Entry {
		return snapshot.Entry{Path: path, Kind: snapshot.Link, Link: to, Size: int64(len(to))}
	}
	unread := snapshot.Entry{Path: "u", Kind: snapshot.File, Perm: 0o644, Size: 1}
	older := file("a", 1, 0o644)
	older.Stat.Mtime = 5
	for name, c := range map[string]struct {
		base, now                   []snapshot.Entry
		within                      []string
		write, adjust, remove, lost []string
		paths                       []string
	}{
		"nothing":             {base: []snapshot.Entry{file("a", 1, 0o644)}, now: []snapshot.Entry{file("a", 1, 0o644)}},
		"created":             {now: []snapshot.Entry{dir("d"), file("d/f", 1, 0o644)}, remove: []string{"d", "d/f"}, paths: []string{"d", "d/f"}},
		"deleted":             {base: []snapshot.Entry{dir("d"), file("d/f", 1, 0o644)}, write: []string{"d", "d/f"}, paths: []string{"d", "d/f"}},
		"modified":            {base: []snapshot.Entry{file("a", 1, 0o644)}, now: []snapshot.Entry{file("a", 2, 0o644)}, write: []string{"a"}, paths: []string{"a"}},
		"mode":                {base: []snapshot.Entry{file("a", 1, 0o644)}, now: []snapshot.Entry{file("a", 1, 0o755)}, adjust: []string{"a"}, paths: []string{"a"}},
		"time alone":          {base: []snapshot.Entry{older}, now: []snapshot.Entry{file("a", 1, 0o644)}, adjust: []string{"a"}},
		"file to folder":      {base: []snapshot.Entry{file("a", 1, 0o644)}, now: []snapshot.Entry{dir("a"), file("a/b", 1, 0o644)}, write: []string{"a"}, remove: []string{"a", "a/b"}, paths: []string{"a", "a/b"}},
		"folder to file":      {base: []snapshot.Entry{dir("a"), file("a/b", 1, 0o644)}, now: []snapshot.Entry{file("a", 1, 0o644)}, write: []string{"a", "a/b"}, remove: []string{"a"}, paths: []string{"a", "a/b"}},
		"file to link":        {base: []snapshot.Entry{file("a", 1, 0o644)}, now: []snapshot.Entry{link("a", "b")}, write: []string{"a"}, paths: []string{"a"}},
		"link elsewhere":      {base: []snapshot.Entry{link("a", "b")}, now: []snapshot.Entry{link("a", "c")}, write: []string{"a"}, paths: []string{"a"}},
		"never read, gone":    {base: []snapshot.Entry{unread}, lost: []string{"u"}},
		"within":              {base: []snapshot.Entry{file("a", 1, 0o644), file("b", 1, 0o644)}, within: []string{"b"}, write: []string{"b"}, paths: []string{"b"}},
		"within a folder":     {base: []snapshot.Entry{dir("d"), file("d-x", 1, 0o644), file("d/f", 1, 0o644)}, now: []snapshot.Entry{dir("d"), file("d/n", 1, 0o644)}, within: []string{"d"}, write: []string{"d/f"}, remove: []string{"d/n"}, paths: []string{"d/f", "d/n"}},
		"parents of one":      {base: []snapshot.Entry{dir("d"), dir("d/e"), file("d/e/f", 1, 0o644), file("d/g", 1, 0o644)}, within: []string{"d/e/f"}, write: []string{"d", "d/e", "d/e/f"}, paths: []string{"d", "d/e", "d/e/f"}},
		"a file for a parent": {base: []snapshot.Entry{dir("d"), file("d/f", 1, 0o644)}, now: []snapshot.Entry{file("d", 1, 0o644)}, within: []string{"d/f"}, write: []string{"d", "d/f"}, remove: []string{"d"}, paths: []string{"d", "d/f"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := &revert.Tree{Dir: "/nowhere", Base: &snapshot.Snapshot{Format: snapshot.SHA256, Entries: c.base}}
			var within []superqode.RelPath
			for _, w := range c.within {
				p, err := superqode.ParseRelPath(w)
				must(t, err)
				within = append(within, p)
			}
			p := tree.Plan(&snapshot.Snapshot{Format: snapshot.SHA256, Entries: c.now}, within)
			for what, got := range map[string][2][]string{
				"write": {names(p.Write), c.write}, "adjust": {names(p.Adjust), c.adjust}, "remove": {names(p.Remove), c.remove}, "lost": {p.Lost, c.lost}, "paths": {p.Paths(), c.paths},
			} {
				if !slices.Equal(got[0], got[1]) {
					t.Errorf("%s is %q, want %q", what, got[0], got[1])
				}
			}
			if empty := len(c.write)+len(c.adjust)+len(c.remove) == 0; p.Empty() != empty {
				t.Errorf("empty: %v", p.Empty())
			}
		})
	}
}

func names(list []snapshot.Entry) []string {
	var out []string
	for i := range list {
		out = append(out, string(list[i].Path))
	}
	return out
}

func fill(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "d/one", "d/two", "d/e/three"} {
		write(t, filepath.Join(dir, name), "text of "+name)
	}
	return dir
}

// What somebody changes between the look and the deed is seen before it is
// touched, and then brought back with all that is there by then.
func TestRestoreSeesWhatMovesMeanwhile(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	write(t, dir+"/a", "changed")
	must(t, os.Remove(dir+"/d/one"))
	write(t, dir+"/new", "x")
	var kept []string
	rounds := 0
	p.restore(revert.RestoreOptions{Keep: func(_ context.Context, plan *revert.Plan) error {
		rounds++
		for _, e := range plan.Overwritten() {
			data, err := os.ReadFile(e.Path.In(dir))
			must(t, err)
			kept = append(kept, string(e.Path)+"="+string(data))
		}
		if rounds == 1 {
			write(t, dir+"/a", "changed by the user meanwhile")
			write(t, dir+"/d/one", "as well")
			must(t, os.Remove(dir+"/new"))
		}
		return nil
	}})
	if want := []string{"a=changed", "new=x", "a=changed by the user meanwhile", "d/one=as well"}; !slices.Equal(kept, want) || rounds != 2 {
		t.Errorf("kept %q in %d rounds, want %q", kept, rounds, want)
	}
}

// Where nothing was brought back nobody looks twice, and where something was, all is
// looked at again.
func TestRestoreLooksAgainWhereItWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 400 {
		write(t, fmt.Sprintf("%s/d%d/f%d", dir, i/10, i), fmt.Sprint(i))
	}
	p := remembered(t, dir)
	var looks atomic.Int64
	p.Skip = func(superqode.RelPath, snapshot.Kind) bool { looks.Add(1); return false }
	write(t, dir+"/d7/f70", "changed")
	must(t, os.RemoveAll(dir+"/d9"))
	if p.restore(revert.RestoreOptions{}); looks.Load() > 600 {
		t.Errorf("%d looks at 440 names, of which 12 were brought back", looks.Load())
	}
	write(t, dir+"/d7/f70", "changed")
	res, err := p.Restore(t.Context(), revert.RestoreOptions{Keep: func(context.Context, *revert.Plan) error {
		write(t, dir+"/d7/new", "by somebody who does not wait")
		return nil
	}})
	if err != nil || res.Verified || !slices.Equal(res.Differences, []string{"d7/new: created"}) {
		t.Errorf("%v %+v", err, res)
	}
}

// Who never stops changing a file is left with it: nothing of it is overwritten
// that was not kept.
func TestRestoreGivesUpOnWhatNeverStopsMoving(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	write(t, dir+"/a", "0")
	rounds := 0
	must(t, os.RemoveAll(dir+"/d"))
	write(t, dir+"/b", "changed once")
	res, err := p.Restore(t.Context(), revert.RestoreOptions{Keep: func(context.Context, *revert.Plan) error {
		rounds++
		write(t, dir+"/a", strings.Repeat("x", rounds+1))
		return nil
	}})
	if want := []string{"a: modified (somebody keeps changing it; it was left alone)"}; err != nil || res.Verified || !slices.Equal(res.Differences, want) || rounds != 5 {
		t.Fatalf("%v %+v after %d rounds", err, res, rounds)
	}
	if data, err := os.ReadFile(dir + "/a"); err != nil || string(data) != "xxxxxx" {
		t.Errorf("a is %q %v", data, err)
	}
}

// What could not be saved is not overwritten; the rest comes back.
func TestRestoreSparesWhatIsNotSaved(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	write(t, dir+"/a", "changed")
	write(t, dir+"/new/made", "by hand")
	must(t, os.RemoveAll(dir+"/d"))
	write(t, dir+"/d/one/in", "a folder now") // where d/one has to be a file
	must(t, os.Remove(dir+"/b"))
	must(t, os.Symlink("a", dir+"/b"))
	spared := errors.New("no room")
	res, err := p.Restore(t.Context(), revert.RestoreOptions{Keep: func(_ context.Context, plan *revert.Plan) error {
		for _, path := range []superqode.RelPath{"a", "new/made", "d/one/in"} {
			plan.Spare(path, spared)
		}
		return nil
	}})
	want := []string{"a: modified (no room)", "d/one/in: created (no room)", "d/one: type changed", "new/made: created (no room)", "new: created"}
	if err != nil || res.Verified || !slices.Equal(res.Differences, want) {
		t.Fatalf("%v %q", err, res.Differences)
	}
	for name, text := range map[string]string{"a": "changed", "new/made": "by hand", "d/one/in": "a folder now", "b": "text of b", "d/two": "text of d/two", "d/e/three": "text of d/e/three"} {
		if data, err := os.ReadFile(dir + "/" + name); err != nil || string(data) != text {
			t.Errorf("%s is %q (%v)", name, data, err)
		}
	}
	p.restore(revert.RestoreOptions{})
}

// No link is followed, also not one that takes a folder's place at the last
// moment.
func TestRestoreFollowsNoLink(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, dir, outside string){
		"to outside": func(t *testing.T, dir, outside string) { must(t, os.Symlink(outside, dir+"/d")) },
		"to inside": func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir+"/inside", 0o755))
			must(t, os.Symlink("inside", dir+"/d"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, outside := fill(t), t.TempDir()
			write(t, outside+"/two", "outside")
			write(t, outside+"/planted", "outside")
			p := remembered(t, dir)
			write(t, dir+"/d/two", "changed")
			write(t, dir+"/d/planted", "created")
			before := gittest.Fingerprint(t, outside)
			first := true
			p.restore(revert.RestoreOptions{Keep: func(context.Context, *revert.Plan) error {
				if first {
					must(t, os.Rename(dir+"/d", t.TempDir()+"/moved"))
					swap(t, dir, outside)
				}
				first = false
				return nil
			}})
			gittest.Same(t, before, gittest.Fingerprint(t, outside))
		})
	}
}

func TestRestoreSomePaths(t *testing.T) {
	t.Parallel()
	dir := fill(t)
	p := remembered(t, dir)
	must(t, os.RemoveAll(dir+"/d"))
	write(t, dir+"/a", "changed")
	write(t, dir+"/d", "a file now")
	three, err := superqode.ParseRelPath("d/e/three")
	must(t, err)
	within := []superqode.RelPath{three}
	dry, err := p.Restore(t.Context(), revert.RestoreOptions{Within: within, DryRun: true})
	if want := []string{"d", "d/e", "d/e/three"}; err != nil || !slices.Equal(dry.Paths, want) || dry.Verified {
		t.Fatalf("%v %+v", err, dry)
	}
	if data, err := os.ReadFile(dir + "/d"); err != nil || string(data) != "a file now" {
		t.Fatalf("a dry run did something: %q %v", data, err)
	}
	res, err := p.Restore(t.Context(), revert.RestoreOptions{Within: within})
	if err != nil || !res.Verified || !slices.Equal(res.Paths, dry.Paths) {
		t.Fatalf("%v %+v", err, res)
	}
	if left, err := os.ReadDir(dir + "/d"); err != nil || len(left) != 1 {
		t.Errorf("d holds %v %v", left, err)
	}
	if data, err := os.ReadFile(dir + "/a"); err != nil || string(data) != "changed" {
		t.Errorf("a was not asked for: %q %v", data, err)
	}
	v, err := p.Verify(t.Context(), revert.Full, within)
	if err != nil || len(v.Differences) > 0 || v.Digest != res.Digest || v.Digest.IsZero() {
		t.Errorf("%v %+v", err, v)
	}
	if v, err := p.Verify(t.Context(), revert.Stat, nil); err != nil || !slices.Equal(v.Differences, []string{"a: modified", "d/one: deleted", "d/two: deleted"}) || !v.Digest.IsZero() {
		t.Errorf("%v %+v", err, v)
	}
	p.restore(revert.RestoreOptions{})
}
