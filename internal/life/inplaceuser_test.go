package life

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	door "github.com/seed-2d964004/superqode/revert"
)

// rel makes paths of texts.
func rel(t *testing.T, names ...string) []superqode.RelPath {
	t.Helper()
	var list []superqode.RelPath
	for _, n := range names {
		p, err := superqode.ParseRelPath(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// restored writes a session's salvages out, the oldest first, one upon the other
// and returns the folder.
func restored(t *testing.T, m *Manager, f *gittest.Fixture, ids []string) string {
	t.Helper()
	all := t.TempDir()
	for _, id := range ids {
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := gc.Restore(t.Context(), m.Host, f.Dir, id, dir); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", dir+"/.", all).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return all
}

// What somebody else edits in the origin while the session is open is brought
// back with the rest, and kept.
func TestGitSnapshotSalvagesTheUsersEdits(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	b := remember(t, f)
	s := openSession(t, f, OpenOptions{Mode: superqode.ModeGitSnapshot, Guard: GuardOptions{Off: true}})
	f.Write("README.md", "what the user wrote meanwhile\n")
	f.Write("build/secret", "an ignored one\n")
	f.Write("fresh/idea.txt", "a new one\n")
	f.Remove("untracked.txt")
	f.Git("commit", "-q", "--no-verify", "-m", "the user's own")
	commit := f.Git("rev-parse", "HEAD")
	res, err := s.End(t.Context(), EndOptions{})
	if err != nil || !res.Revert.Verified || len(s.Salvages) == 0 {
		t.Fatalf("%v %+v %q", err, res, s.Salvages)
	}
	b.check(t, f)
	all := restored(t, managerOf(f), f, s.Salvages)
	for name, want := range map[string]string{"README.md": "what the user wrote meanwhile\n", "build/secret": "an ignored one\n", "fresh/idea.txt": "a new one\n"} {
		if got, err := os.ReadFile(filepath.Join(all, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q in the salvage (%v)", name, got, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(all, "git-dir/refs/heads/main")); err != nil || strings.TrimSpace(string(got)) != commit {
		t.Errorf("the branch is %q in the salvage, want %s (%v)", got, commit, err)
	}
	if _, err := os.Stat(filepath.Join(all, "git-dir/objects", commit[:2], commit[2:])); err != nil {
		t.Errorf("the commit is not in the salvage: %v", err)
	}
}

// Shared mode restores nothing and claims nothing; the patch tells what changed.
func TestSharedLeavesEverything(t *testing.T) {
	t.Parallel()
	for _, repository := range []bool{true, false} {
		f := gittest.Plain(t)
		if repository {
			f = gittest.Dirty(t)
		} else {
			f.Write("README.md", "# fixture\n")
			f.Write("tool.sh", "x")
		}
		res, out, err := runInPlace(t, f, OpenOptions{Mode: superqode.ModeShared}, "echo changed >> README.md; rm tool.sh; mkdir -p a/b; echo new > a/b/c; [ ! -d .git ] || git branch -q made")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if res.Revert.Verified || res.Revert.Method != "none" || res.OriginCheck.Unchanged || res.State != superqode.StateDone || res.Workspace.Preserved {
			t.Errorf("result %+v %+v %+v", res.Revert, res.OriginCheck, res.Workspace)
		}
		var got []string
		for _, c := range res.Changes {
			got = append(got, string(c.Type)+" "+c.Path.String())
		}
		if want := []string{"modified README.md", "created a/b/c", "deleted tool.sh"}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
		if !strings.HasSuffix(f.Read("README.md"), "changed\n") || f.Read("a/b/c") != "new\n" {
			t.Error("something was brought back")
		}
		if repository && f.Git("branch", "--list", "made") == "" {
			t.Error("the branch is gone")
		}
		patch := f.Path(".superqode/qe-artifacts/patches/" + res.SessionID.String() + ".patch")
		if out, err := exec.Command("git", "-C", f.Dir, "apply", "--check", "-R", patch).CombinedOutput(); err != nil {
			t.Errorf("the patch does not describe what changed: %v\n%s", err, out)
		}
	}
}

// With --no-revert, and with --keep always, a git_snapshot session leaves what the
// program did; kept ones can still be brought back.
func TestGitSnapshotLeftAsItIs(t *testing.T) {
	t.Parallel()
	t.Run("no revert", func(t *testing.T) {
		t.Parallel()
		f := gittest.Dirty(t)
		res, out, err := runInPlace(t, f, OpenOptions{NoRevert: true}, "echo changed >> README.md; git branch -q made; git config a.b c")
		if err != nil || res.Revert.Verified || res.Revert.Method != "none" || res.OriginCheck.Unchanged || res.State != superqode.StateDone {
			t.Fatalf("%v %+v\n%s", err, res, out)
		}
		for _, want := range []string{"README.md: modified", "refs/heads/made: created", "config: modified"} {
			if !slices.ContainsFunc(res.OriginCheck.Differences, func(d string) bool { return strings.HasSuffix(d, want) }) {
				t.Errorf("differences %q lack %q", res.OriginCheck.Differences, want)
			}
		}
		if !strings.HasSuffix(f.Read("README.md"), "changed\n") {
			t.Error("it was brought back")
		}
	})
	t.Run("keep", func(t *testing.T) {
		t.Parallel()
		f := gittest.Dirty(t)
		b := remember(t, f)
		res, out, err := runInPlace(t, f, OpenOptions{Keep: superqode.KeepAlways}, "echo changed >> README.md; git branch -q made")
		if err != nil || res.State != superqode.StatePreserved || !res.Workspace.Preserved {
			t.Fatalf("%v %+v\n%s", err, res, out)
		}
		if !strings.HasSuffix(f.Read("README.md"), "changed\n") {
			t.Error("it was brought back")
		}
		s, err := managerOf(f).Attach(t.Context(), f.Dir, res.SessionID.String())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if res, err = s.End(t.Context(), EndOptions{Keep: superqode.KeepNever}); err != nil || !res.Revert.Verified || len(res.Changes) != 1 {
			t.Fatalf("%v %+v", err, res)
		}
		b.check(t, f)
	})
}

// Only one session may work in the origin when one of them has to bring it back.
func TestInPlaceIsExclusive(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	m := managerOf(f)
	first := openSession(t, f, OpenOptions{Mode: superqode.ModeGitSnapshot})
	for _, mode := range []superqode.Mode{superqode.ModeGitSnapshot, superqode.ModeShared, superqode.ModeWorktree, superqode.ModeSnapshot} {
		_, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir, Mode: mode})
		if !errors.Is(err, superqode.ErrLocked) || !strings.Contains(err.Error(), first.Rec.ID.String()) || superqode.Hint(err) == "" {
			t.Errorf("%s beside git_snapshot: %v", mode, err)
		}
	}
	if _, err := first.End(t.Context(), EndOptions{}); err != nil {
		t.Fatal(err)
	}
	one, two := openSession(t, f, OpenOptions{Mode: superqode.ModeShared}), openSession(t, f, OpenOptions{Mode: superqode.ModeShared})
	worktree := openSession(t, f, OpenOptions{})
	if _, err := m.Open(t.Context(), OpenOptions{Dir: f.Dir, Mode: superqode.ModeGitSnapshot}); !errors.Is(err, superqode.ErrLocked) {
		t.Errorf("git_snapshot beside shared: %v", err)
	}
	for _, s := range []*Session{one, two, worktree} {
		if _, err := s.End(t.Context(), EndOptions{}); err != nil {
			t.Error(err)
		}
	}
	openSession(t, f, OpenOptions{Mode: superqode.ModeGitSnapshot})
}

// Ignored files above the budget are refused, with what can be done; left out
// ones are named, and stay as the program leaves them.
func TestGitSnapshotBudget(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	f.Write("build/big", strings.Repeat("0123456789abcdef", 1<<17)) // 2 MiB
	_, out, err := runInPlace(t, f, OpenOptions{IgnoredBudget: 1 << 20}, "true")
	switch {
	case err == nil: // clones cost nothing there
		t.Skip("this file system clones")
	case !errors.Is(err, superqode.ErrUsage), !strings.Contains(err.Error(), "build 2 MiB"), !strings.Contains(superqode.Hint(err), "--leave-out build"):
		t.Fatalf("%v (%s)\n%s", err, superqode.Hint(err), out)
	}
	if names, _ := managerOf(f).ProjectOf(&site.Origin{Top: f.Dir}).SessionNames(); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
	b := remember(t, f)
	res, out, err := runInPlace(t, f, OpenOptions{IgnoredBudget: 3 << 20}, "rm -rf build; rm README.md")
	if err != nil || !res.Revert.Verified {
		t.Fatalf("%v\n%s", err, out)
	}
	b.check(t, f)
	res, out, err = runInPlace(t, f, OpenOptions{IgnoredBudget: 1 << 20, LeaveOut: []string{"build/"}}, "rm -rf build/out; rm README.md; echo x > build/new")
	if err != nil || !res.Revert.Verified || !strings.Contains(out, "build is not protected") {
		t.Fatalf("%v\n%s", err, out)
	}
	if f.Read("build/new") != "x\n" || f.Read("README.md") == "" {
		t.Error("what was left out was touched, or the rest was not")
	}
	if _, err := os.Stat(f.Path("build/out")); !os.IsNotExist(err) {
		t.Error("what was left out came back")
	}
}

// Revert and Verify work in every mode but shared, whole and by path, and say
// what they would do.
func TestRevertInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []superqode.Mode{superqode.ModeWorktree, superqode.ModeSnapshot, superqode.ModeDirectory, superqode.ModeGitSnapshot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			opt := OpenOptions{Mode: mode, Guard: GuardOptions{Off: true}}
			if mode == superqode.ModeDirectory {
				opt.Template = f.Dir
			}
			s := openSession(t, f, opt)
			revertByPath(t, f, s)
			revertWhole(t, f, s)
			res, err := s.End(t.Context(), EndOptions{})
			if err != nil || len(res.Changes) > 0 || !res.OriginCheck.Unchanged {
				t.Errorf("%v %+v", err, res)
			}
			if mode != superqode.ModeWorktree { // there git wrote objects
				b.check(t, f)
			}
		})
	}
}

func revertByPath(t *testing.T, f *gittest.Fixture, s *Session) {
	ws := *f
	ws.Dir = string(s.Rec.Workspace)
	was := ws.Read("README.md")
	ws.Write("README.md", "other")
	ws.Write("src/new", "x")
	ws.Remove("src/deep")
	ws.Write("crlf.txt", "stays changed")
	for _, how := range []revert.Method{revert.Stat, revert.Full} {
		v, err := s.Verify(t.Context(), door.Method(how), nil)
		if want := []string{"README.md: modified", "crlf.txt: modified", "src/deep/er/lib.go: deleted", "src/deep/er: deleted", "src/deep: deleted", "src/new: created"}; !errors.Is(err, superqode.ErrVerification) || !slices.Equal(v.Differences, want) {
			t.Fatalf("verify %s: %v %+v", how, err, v)
		}
	}
	dry, err := s.Revert(t.Context(), mode.RevertOptions{Paths: rel(t, "README.md", "src"), DryRun: true})
	if want := []string{"README.md", "src/deep", "src/deep/er", "src/deep/er/lib.go", "src/new"}; err != nil || !slices.Equal(dry.Paths, want) || ws.Read("README.md") != "other" {
		t.Fatalf("dry run: %v %+v", err, dry)
	}
	res, err := s.Revert(t.Context(), mode.RevertOptions{Paths: rel(t, "README.md", "src")})
	if err != nil || !slices.Equal(res.Paths, dry.Paths) || !res.Verified || len(res.Salvages) == 0 {
		t.Fatalf("by path: %v %+v", err, res)
	}
	if ws.Read("README.md") != was || ws.Read("crlf.txt") != "stays changed" || ws.Read("src/deep/er/lib.go") == "" {
		t.Error("not what was asked for")
	}
	if v, err := s.Verify(t.Context(), "full", rel(t, "README.md", "src")); err != nil || v.Digest != res.Digest {
		t.Errorf("verify by path: %v %+v, reverted to %s", err, v, res.Digest)
	}
	if _, err := s.Revert(t.Context(), mode.RevertOptions{Paths: rel(t, "nothing/there")}); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("an unknown path: %v", err)
	}
	all := restored(t, s.m, f, res.Salvages)
	if got, err := os.ReadFile(filepath.Join(all, "README.md")); err != nil || string(got) != "other" {
		t.Errorf("the salvage has %q (%v)", got, err)
	}
}

func revertWhole(t *testing.T, f *gittest.Fixture, s *Session) {
	ws, in := string(s.Rec.Workspace), s.Rec.Mode
	script := "find . -mindepth 1 -maxdepth 1 ! -name .superqode ! -name .git -exec rm -rf {} +; echo x > planted"
	isRepo := in == superqode.ModeWorktree || in == superqode.ModeGitSnapshot
	status := ""
	if isRepo {
		if res, err := s.Revert(t.Context(), mode.RevertOptions{}); err != nil {
			t.Fatalf("%v %+v", err, res)
		}
		status = f.StatusIn(ws)
		script += "; git add -A; git commit -qm all --no-verify; git checkout -q --detach HEAD~1 || git checkout -qf --detach HEAD~1"
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = ws, f.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, how := range []revert.Method{revert.Stat, revert.Full} {
		res, err := s.Revert(t.Context(), mode.RevertOptions{How: how})
		if err != nil || !res.Verified || res.Digest != s.Rec.Base.Digest {
			t.Fatalf("whole, %s: %v %+v, base %s", how, err, res, s.Rec.Base.Digest)
		}
	}
	if v, err := s.Verify(t.Context(), "full", nil); err != nil || v.Digest != s.Rec.Base.Digest {
		t.Errorf("verify: %v %+v", err, v)
	}
	if isRepo && f.StatusIn(ws) != status {
		t.Errorf("git status is\n%s\nand was\n%s", f.StatusIn(ws), status)
	}
}

// A folder that held nothing but ignored files is not ignored itself: what the
// program makes there is in the patch, unless git ignores it too.
func TestGitSnapshotPatchBesideIgnoredFiles(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	f.Write("logs/old.log", "x")
	b := remember(t, f)
	res, out, err := runInPlace(t, f, OpenOptions{}, "echo a > logs/new.txt; echo b > logs/new.log; echo c >> logs/old.log; echo d > build/new; mkdir odd.log; echo e > odd.log/f")
	if err != nil || len(res.Changes) != 1 || res.Changes[0].Path.String() != "logs/new.txt" {
		t.Fatalf("%v %+v\n%s", err, res.Changes, out)
	}
	b.check(t, f)
}

// A file that somebody writes to all the time, a log of the user's server, is left
// alone and named; all else comes back.
// Where the writer pauses for long enough the file is salvaged and comes back like
// any other, so there are more rounds than one.
func TestGitSnapshotBesideBusyFile(t *testing.T) {
	t.Parallel()
	for round := 0; !besideBusyFile(t); round++ {
		if round == 20 {
			t.Fatal("the writer was never quick enough")
		}
	}
}

// besideBusyFile reports whether the writer kept the file from coming back.
func besideBusyFile(t *testing.T) bool {
	t.Helper()
	f := gittest.Dirty(t)
	f.Write("busy.log", "0\n")
	b := remember(t, f)
	busy, err := os.OpenFile(f.Path("busy.log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = busy.WriteString("more\n") // the test fails when it does not come
			}
		}
	}()
	res, out, err := runInPlace(t, f, OpenOptions{}, "echo x > README.md; rm -rf src untracked.txt .git/hooks; mkdir zz; echo x > aa")
	close(stop)
	<-stopped
	if err := busy.Close(); err != nil {
		t.Error(err)
	}
	if err == nil && res.Revert.Verified {
		return false
	}
	if !errors.Is(err, superqode.ErrVerification) || res.Revert.Verified || res.State != superqode.StatePreserved || len(res.Revert.Differences) != 1 || !strings.HasPrefix(res.Revert.Differences[0], "busy.log: modified") {
		t.Fatalf("%v %+v\n%s", err, res, out)
	}
	delete(b.print, "busy.log")
	now := f.Fingerprint(".superqode", "busy.log")
	gittest.Same(t, b.print, now)
	s, err := managerOf(f).Attach(t.Context(), f.Dir, res.SessionID.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rev, err := s.Revert(t.Context(), mode.RevertOptions{}) // as the hint says
	if err != nil || !rev.Verified {
		t.Fatalf("%v %+v", err, rev)
	}
	res, err = s.End(t.Context(), EndOptions{})
	if err != nil || !res.Revert.Verified || len(res.Changes) != 5 {
		t.Errorf("%v %+v", err, res)
	}
	return true
}
