package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/site"
)

// childApply applies the only session of the origin.
func childApply() int {
	_, _, err := childManager().Apply(context.Background(), os.Getenv("SUPERQODE_TEST_DIR"), os.Getenv("SUPERQODE_TEST_SESSION"), apply.Options{})
	switch {
	case errors.Is(err, superqode.ErrConflict):
		fmt.Fprintln(os.Stderr, err)
		return 4
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}

// applyTest is an origin with one session whose workspace tests edit by hand.
type applyTest struct {
	*gittest.Fixture
	t  *testing.T
	m  *Manager
	id string
	ws *gittest.Fixture // the workspace, as a fixture
}

// openApply opens a session on a fixture and lets edit change its workspace.
func openApply(t *testing.T, f *gittest.Fixture, mode superqode.Mode, edit func(ws *gittest.Fixture)) *applyTest {
	t.Helper()
	m := managerIn(f, mode)
	m.Tell = func(s string) { t.Log("warning:", s) }
	s, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir, Mode: mode, Exclude: []string{".git/**"}})
	if err != nil {
		t.Fatal(err)
	}
	a := &applyTest{f, t, m, s.Rec.ID.String(), gittest.In(t, string(s.Rec.Workspace))}
	if s.Rec.Overlay == nil {
		edit(a.ws)
	} else { // only the session's programs see it: a copy is edited, and put in its place
		a.ws = gittest.In(t, t.TempDir())
		shell(t, `cp -a "$1/." "$2" && rm -r "$2/.git" "$2/.superqode"`, f.Dir, a.ws.Dir)
		edit(a.ws)
		put := `find . -mindepth 1 -maxdepth 1 ! -name .git ! -name .superqode -exec rm -rf {} + && cp -a "$1/." .`
		if res, err := s.Exec(t.Context(), program.ExecOptions{Args: []string{"sh", "-c", put, "sh", a.ws.Dir}, Stderr: os.Stderr}); err != nil || res.ExitCode != 0 {
			t.Fatal(err, res)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *applyTest) apply(opt apply.Options) (*artifacts.Applied, error) {
	res, _, err := a.m.Apply(a.t.Context(), a.Dir, a.id, opt)
	return res, err
}

// mustApply applies and checks that nothing of the work stays anywhere.
func (a *applyTest) mustApply(opt apply.Options) *artifacts.Applied {
	a.t.Helper()
	res, err := a.apply(opt)
	if err != nil {
		a.t.Fatalf("%v %+v", err, res)
	}
	a.checkClean()
	return res
}

// checkClean looks for what an apply must not leave.
func (a *applyTest) checkClean() {
	a.t.Helper()
	for _, dir := range []string{a.Dir, a.m.Home} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if name := d.Name(); strings.HasPrefix(name, ".superqode-") && name != "."+site.HelperName || strings.HasPrefix(name, merge.Prefix) || name == "apply.json" {
				a.t.Errorf("left behind: %s", path)
			}
			return err
		})
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// end ends the session, so that it is applied from what was stored.
func (a *applyTest) end() {
	a.t.Helper()
	s, err := a.m.Attach(a.t.Context(), a.Dir, a.id)
	if err == nil {
		_, err = s.End(a.t.Context(), EndOptions{Keep: superqode.KeepNever})
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// everyChange does a bit of everything that a patch can hold.
func everyChange(ws *gittest.Fixture) {
	ws.Write("README.md", "# fixture\n\nOne.\nTwo changed.\nThree.\n")
	ws.Remove("tool.sh")
	ws.WriteMode("mode.sh", "#!/bin/sh\necho mode\n", 0o644)
	ws.Write("crlf.txt", "one\r\ntwo b\r\nthree")
	ws.Write("latin1.txt", "caf\xe9s\n")
	ws.Write("no-newline.txt", "still none")
	ws.Write("empty.txt", "no more")
	ws.Write("binary.bin", "\x00\x01\x03")
	ws.Write("fresh-empty", "")
	ws.Write("new/dir/file", "new\n")
	ws.WriteMode("new/run.sh", "#!/bin/sh\n", 0o755)
	ws.WriteMode("new/secret", "s\n", 0o600)
	ws.Remove("link")
	ws.Symlink("src", "link")
	ws.Remove("dangling")
	ws.Write("dangling", "a file now\n")
	ws.Symlink("no/where", "new/link")
	text := ws.Read("src/deep/er/lib.go")
	ws.Remove("src/deep")
	ws.Write("moved/lib.go", text)
	both := ws.Read("both.txt")
	ws.Remove("both.txt")
	ws.Write("both.txt/inner", both)
	for i, name := range []string{"-dash", "with space", "new\nline", "tab\there", `quote".txt`, "back\\slash", "*star"} {
		if i%2 == 0 {
			ws.Write("odd/"+name, "changed\n")
		} else {
			ws.Remove("odd/" + name)
		}
	}
	ws.Write("odd/made \xff\xfe\n", "not UTF-8\n")
	ws.Write("untracked.txt", "untracked and changed\n")
}

// sameFiles compares the files, links and bits of two folders at the given paths
// or, without any, everywhere outside of git's and superqode's own.
func sameFiles(t *testing.T, got, want *gittest.Fixture, paths ...string) {
	t.Helper()
	strip := func(f *gittest.Fixture) gittest.Print {
		p := f.Fingerprint(".git", ".superqode")
		for path, facts := range p {
			if strings.HasPrefix(facts, "d") || len(paths) > 0 && !slices.Contains(paths, path) {
				delete(p, path)
			}
		}
		return p
	}
	if d := strip(want).Diff(strip(got)); len(d) > 0 {
		t.Errorf("not as in the session:\n%s", strings.Join(d, "\n"))
	}
}

// Whatever a session did comes over whole, from a session that is open and from
// one that has ended, and nothing else in the origin moves: not its index, not
// HEAD, not a byte of any other file.
func TestApplyEverything(t *testing.T) {
	t.Parallel()
	for _, mode := range withOverlay(superqode.ModeWorktree, superqode.ModeSnapshot) {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s ended=%t", mode, ended), func(t *testing.T) {
				t.Parallel()
				f := gittest.Dirty(t)
				a := openApply(t, f, mode, everyChange)
				want := gittest.In(t, t.TempDir())
				if out, err := exec.Command("cp", "-a", a.ws.Dir+"/.", want.Dir).CombinedOutput(); err != nil {
					t.Fatal(err, string(out))
				}
				want.Remove(".git")
				for _, ignored := range []string{"debug.log", "build/out/result.o", "build/secret"} { // stays behind in worktree mode
					want.Write(ignored, f.Read(ignored))
				}
				if err := os.Chmod(want.Path("build/secret"), 0o600); err != nil {
					t.Fatal(err)
				}
				if ended {
					a.end()
				}
				gitBefore, outside := gittest.Fingerprint(t, f.Path(".git"), "worktrees"), f.Fingerprint(".git", ".superqode")
				times := gittest.Times(t, f.Dir, ".git", ".superqode")
				res := a.mustApply(apply.Options{})
				sameFiles(t, f, want)
				gittest.Same(t, gitBefore, gittest.Fingerprint(t, f.Path(".git"), "worktrees"))
				if _, err := os.Lstat(f.Path("src/deep")); err == nil {
					t.Error("a folder in which nothing is left stayed")
				}
				touched := map[superqode.RelPath]bool{}
				for _, p := range res.Applied {
					touched[p.Path], touched[p.OldPath] = true, true
				}
				after := gittest.Times(t, f.Dir, ".git", ".superqode")
				for path := range outside {
					if !touched[superqode.RelPath(path)] && after[path] != times[path] && times[path] != "dir" {
						t.Errorf("%q was written to", path)
					}
				}
				again := a.mustApply(apply.Options{})
				if len(again.Applied) > 0 || len(again.Already) != len(res.Applied) {
					t.Errorf("applied again: %+v", again.Applied)
				}
			})
		}
	}
}

// Where nothing conflicts, a salvage holds everything that was overwritten.
func TestApplySalvages(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	a := openApply(t, f, superqode.ModeWorktree, everyChange)
	before := f.Fingerprint(".git", ".superqode")
	res := a.mustApply(apply.Options{})
	to := filepath.Join(t.TempDir(), "back")
	if _, err := gc.Restore(t.Context(), a.m.Host, f.Dir, res.Salvage, to); err != nil {
		t.Fatal(err)
	}
	back := gittest.Fingerprint(t, to)
	after := f.Fingerprint(".git", ".superqode")
	for path, facts := range before {
		if strings.HasPrefix(facts, "d") || after[path] == facts {
			continue
		}
		if back[path] != facts && !strings.Contains(path, "mode.sh") { // only its bits changed
			t.Errorf("%q was %s and is in the salvage as %q", path, facts, back[path])
		}
	}
}

// randomEdits changes files of a folder that all have contents of their own.
func randomEdits(rnd *rand.Rand, f *gittest.Fixture, side string, renames bool) {
	for i := range 10 {
		path := fmt.Sprintf("d%d/f%d", i%3, i)
		switch n := rnd.IntN(28); {
		case n < 3: // an edit at one of four places
			lines := strings.SplitAfter(f.Read(path), "\n")
			at := 5 + 10*rnd.IntN(4)
			lines[at] = "edited by " + side + "\n"
			f.Write(path, strings.Join(lines, ""))
		case n == 3:
			f.Remove(path)
		case n == 4:
			_ = os.Chmod(f.Path(path), 0o755)
		case n == 5 && renames:
			text := f.Read(path)
			f.Remove(path)
			f.Write(fmt.Sprintf("r%d/f%d", i%2, i), strings.Replace(text, "line 35", "renamed 35", 1))
		case n == 6:
			f.Remove(path)
			f.Symlink("to-"+side, path)
		case n == 7:
			f.Write(fmt.Sprintf("d%d/made%d", i%3, i), fmt.Sprintf("made by %s or another %d\n", []string{side, "both"}[rnd.IntN(2)], i))
		case n == 8:
			f.Remove(path)
			f.Write(path+"/inner", fmt.Sprintf("in a folder, by %s %d\n", side, i))
		}
	}
}

// TestApplyAgainstMerge lets git merge the same two sides: what it merges we
// apply, to the same result; what conflicts there conflicts here and changes
// nothing.
func TestApplyAgainstMerge(t *testing.T) {
	t.Parallel()
	clean, conflicts := 0, 0
	for round := range 18 {
		rnd := rand.New(rand.NewPCG(uint64(round), 7))
		f := gittest.Repo(t)
		for i := range 10 {
			text := ""
			for l := range 50 {
				text += fmt.Sprintf("file %d has line %d, %d\n", i, l, rnd.IntN(1<<30))
			}
			f.Write(fmt.Sprintf("d%d/f%d", i%3, i), text)
		}
		f.Commit("base")
		a := openApply(t, f, superqode.ModeWorktree, func(ws *gittest.Fixture) { randomEdits(rnd, ws, "session", true) })
		ends := rnd.IntN(2) == 0
		theirs := mergeSide(t, f, a.ws.Dir)
		if ends {
			a.end()
		}
		randomEdits(rnd, f, "origin", false)
		before := f.Fingerprint(".git/worktrees", ".superqode")
		merged, tree := gitMerge(t, f, theirs)
		res, err := a.apply(apply.Options{})
		a.checkClean()
		switch {
		case merged && err != nil:
			t.Errorf("round %d: git merges, we do not: %v %v", round, err, res.Conflicts)
		case !merged && !errors.Is(err, superqode.ErrConflict):
			t.Errorf("round %d: git has conflicts, we do not: %v\n%s", round, err, tree.Dir)
		case merged:
			clean++
			sameFiles(t, f, tree)
		default:
			conflicts++
			gittest.Same(t, before, f.Fingerprint(".git/worktrees", ".superqode"))
		}
	}
	if clean < 3 || conflicts < 3 {
		t.Errorf("%d rounds were clean and %d had conflicts: the test tests little", clean, conflicts)
	}
}

// mergeSide commits what a folder holds as a child of the origin's HEAD, in a
// clone, and returns the clone.
func mergeSide(t *testing.T, f *gittest.Fixture, dir string) *gittest.Fixture {
	t.Helper()
	c := gittest.In(t, t.TempDir())
	c.Git("clone", "-q", f.Dir, ".")
	takeOver(t, c, dir)
	c.Git("branch", "theirs")
	c.Git("reset", "-q", "--hard", "origin/main")
	return c
}

// takeOver commits the files of dir in the clone c.
func takeOver(t *testing.T, c *gittest.Fixture, dir string) {
	t.Helper()
	c.Git("rm", "-rq", ".")
	cmd := exec.Command("sh", "-c", `cd "$1" && find . -path ./.git -prune -o -path ./.superqode -prune -o \( -type f -o -type l \) -print0 | tar -cf - --null -T - | tar -xf - -C "$2"`, "sh", dir, c.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	c.Commit("side")
}

// gitMerge merges the session's side into the origin's files in the clone.
func gitMerge(t *testing.T, f, c *gittest.Fixture) (bool, *gittest.Fixture) {
	t.Helper()
	takeOver(t, c, f.Dir)
	_, err := c.Try(c.Dir, "-c", "merge.directoryRenames=false", "merge", "-q", "-m", "m", "theirs")
	return err == nil, c
}

// Two applies at once: one does it, the other finds it done.
func TestApplyTwiceAtOnce(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	a := openApply(t, f, superqode.ModeWorktree, everyChange)
	type result struct {
		res *artifacts.Applied
		err error
	}
	results := make(chan result)
	for range 4 {
		go func() {
			m := NewManager(Config{Home: a.m.Home, Env: f.Env(), Log: zerolog.Nop()})
			res, _, err := m.Apply(t.Context(), f.Dir, a.id, apply.Options{})
			results <- result{res, err}
		}()
	}
	did := 0
	for range 4 {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		} else if len(r.res.Applied) > 0 {
			did++
		}
	}
	if did != 1 {
		t.Errorf("%d of 4 applied it", did)
	}
	a.checkClean()
	sameFiles(t, f, a.ws, "README.md", "new/dir/file", "both.txt/inner", "moved/lib.go", "link", "mode.sh")
}

// A read-only folder refuses the whole, before anything is touched.
func TestApplyReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere; see the script")
	}
	f := gittest.Dirty(t)
	a := openApply(t, f, superqode.ModeWorktree, everyChange)
	if err := os.Chmod(f.Path("odd"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.Path("odd"), 0o755) })
	before := f.Fingerprint(".git/worktrees", ".superqode")
	times := gittest.Times(t, f.Dir, ".git/worktrees", ".superqode")
	if _, err := a.apply(apply.Options{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v", err)
	}
	gittest.Same(t, before, f.Fingerprint(".git/worktrees", ".superqode"))
	gittest.Same(t, times, gittest.Times(t, f.Dir, ".git/worktrees", ".superqode"))
	a.checkClean()
}

// Many files, some of them merged.
func TestApplyMany(t *testing.T) {
	t.Parallel()
	const n = 2000
	f := gittest.Plain(t)
	for i := range n {
		f.Write(fmt.Sprintf("d%d/f%d", i%50, i), fmt.Sprintf("%d\n2\n3\n4\n5\n6\n7\n", i))
	}
	a := openApply(t, f, superqode.ModeSnapshot, func(ws *gittest.Fixture) {
		for i := range n {
			ws.Write(fmt.Sprintf("d%d/f%d", i%50, i), fmt.Sprintf("%d\n2\n3\n4\n5\n6\nseven\n", i))
		}
	})
	for i := range 20 {
		f.Write(fmt.Sprintf("d%d/f%d", i, i), fmt.Sprintf("%d by origin\n2\n3\n4\n5\n6\n7\n", i))
	}
	res := a.mustApply(apply.Options{})
	merged := 0
	for _, p := range res.Applied {
		if p.Merged {
			merged++
		}
	}
	if len(res.Applied) != n || merged != 20 {
		t.Errorf("%d applied, %d merged", len(res.Applied), merged)
	}
	if got := f.Read("d3/f3"); got != "3 by origin\n2\n3\n4\n5\n6\nseven\n" {
		t.Errorf("merged to %q", got)
	}
}

// TestApplyHunksAgainstGit brings in random hunks, with ours and, as a patch of
// just these, with git apply.
func TestApplyHunksAgainstGit(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		rnd := rand.New(rand.NewPCG(uint64(round), 11))
		f := gittest.Repo(t)
		for i := range 10 {
			text := ""
			for l := range 50 {
				text += fmt.Sprintf("file %d has line %d, %d\n", i, l, rnd.IntN(1<<30))
			}
			f.Write(fmt.Sprintf("d%d/f%d", i%3, i), text)
		}
		f.Commit("base")
		a := openApply(t, f, superqode.ModeWorktree, func(ws *gittest.Fixture) {
			for range 4 {
				editMore(rnd, ws)
			}
			randomEdits(rnd, ws, "session", true)
		})
		var patch, numbered strings.Builder
		s, err := a.m.Attach(t.Context(), f.Dir, a.id)
		if err == nil {
			err = errors.Join(s.Diff(t.Context(), &patch, attach.DiffOptions{}), s.DiffNumbered(t.Context(), &numbered, attach.DiffOptions{}), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		part, hunks, total := somePatch(rnd, patch.String())
		if n := strings.Count(numbered.String(), fmt.Sprintf("[%d]", total)); n == 0 || strings.Contains(numbered.String(), fmt.Sprintf("[%d]", total+1)) {
			t.Errorf("round %d: %d hunks, and the diff numbers others", round, total)
		}
		if len(hunks) == 0 {
			continue
		}
		c := gittest.In(t, t.TempDir())
		c.Git("clone", "-q", f.Dir, ".")
		c.GitInput(part, "apply", "-")
		if rnd.IntN(2) == 0 {
			a.end()
		}
		a.mustApply(apply.Options{Hunks: hunks})
		sameFiles(t, f, c)
		a.mustApply(apply.Options{}) // what is left goes on top
		again := a.mustApply(apply.Options{Check: true})
		if len(again.Applied) > 0 {
			t.Errorf("round %d: something is left: %+v", round, again.Applied)
		}
	}
}

// editMore edits one place of some files that are still there.
func editMore(rnd *rand.Rand, f *gittest.Fixture) {
	i := rnd.IntN(10)
	path := fmt.Sprintf("d%d/f%d", i%3, i)
	lines := strings.SplitAfter(f.Read(path), "\n")
	lines[2+12*rnd.IntN(4)] = "edited more\n"
	f.Write(path, strings.Join(lines, ""))
}

// somePatch picks hunks of a patch, at random, and makes a patch of them. What
// changes its type stays whole.
func somePatch(rnd *rand.Rand, patch string) (part string, hunks []merge.HunkRange, total int) {
	var reader merge.HunkReader
	var out, header strings.Builder
	take, whole, written := false, false, false
	last, lastTook, first := "", false, false // of the file before: its first line, and whether any of it was taken
	flush := func() {                         // a file without hunks
		if header.Len() > 0 && whole {
			total++
			if rnd.IntN(2) == 0 {
				hunks = append(hunks, merge.HunkRange{First: total, Last: total})
				out.WriteString(header.String())
			}
		}
		header.Reset()
	}
	for line := range strings.SplitAfterSeq(patch, "\n") {
		if line == "" {
			continue
		}
		switch reader.Next([]byte(strings.TrimSuffix(line, "\n"))) {
		case merge.LineFile:
			flush()
			header.WriteString(line)
			whole, written, take, first = true, false, false, true
		case merge.LineHunk:
			whole = false
			total++
			head, _, _ := strings.Cut(header.String(), "\n")
			if take = rnd.IntN(2) == 0; first && head == last {
				take = lastTook
			}
			last, lastTook, first = head, take, false
			if take {
				hunks = append(hunks, merge.HunkRange{First: total, Last: total})
				if !written {
					out.WriteString(header.String())
					written = true
				}
				out.WriteString(line)
			}
		case merge.LineBody:
			if take {
				out.WriteString(line)
			}
		default:
			header.WriteString(line)
		}
	}
	flush()
	return out.String(), hunks, total
}
