package life

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// managerOf makes a Manager whose home and environment are the fixture's.
func managerOf(f *gittest.Fixture) *Manager { return managerIn(f, "") }

// managerIn is for sessions of one mode.
func managerIn(f *gittest.Fixture, as superqode.Mode) *Manager {
	cfg := Config{Home: superqode.Getenv(f.Env(), "SUPERQODE_HOME"), Env: f.Env(), Log: zerolog.Nop()}
	if mode.Of(as).Mounted {
		cfg.Shim = shim
	}
	return NewManager(cfg)
}

// withOverlay adds overlay mode to a list where this machine has it.
func withOverlay(modes ...superqode.Mode) []superqode.Mode {
	if shim != "" {
		modes = append(modes, superqode.ModeOverlay)
	}
	return modes
}

// openSession opens a session on the fixture and ends nothing.
func openSession(t *testing.T, f *gittest.Fixture, opt OpenOptions) *Session {
	t.Helper()
	opt.Dir = f.Dir
	s, err := managerIn(f, opt.Mode).Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// partOf scans a folder into a part.
func partOf(t *testing.T, dir string, prefix superqode.RelPath) salvage.Part {
	t.Helper()
	sn, problems, err := snapshot.Scan(t.Context(), dir, snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return salvage.Part{Dir: dir, Prefix: prefix, Entries: sn.Entries}
}

func TestSalvageKeepsEverything(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := openSession(t, f, OpenOptions{})
	f.Mkdir("nested/.git")
	f.Write("nested/.git/config", "planted\n")
	f.Write("git-dir", "a file where the prefix would be\n")
	f.WriteMode("build/odd-mode", "x", 0o751)
	work, state := partOf(t, f.Dir, ""), partOf(t, f.Path(".git"), "git-dir")
	work.Entries = slices.DeleteFunc(work.Entries, func(e snapshot.Entry) bool {
		return e.Path == ".git" || strings.HasPrefix(string(e.Path), ".git/") || strings.HasPrefix(string(e.Path), ".superqode")
	})
	sv, err := s.Salvage(t.Context(), "test", work, state)
	if err != nil {
		t.Fatal(err)
	}
	if sv.ID != s.Rec.ID.String()+"/1" || sv.Commit == "" || len(sv.LeftOut) > 0 || sv.Files == 0 {
		t.Errorf("salvage %+v", sv)
	}
	list, err := snapshot.Load(sv.ListPath(salvage.Dir(s.Folder)))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Entries) != len(work.Entries)+len(state.Entries) {
		t.Errorf("%d entries kept, %d given", len(list.Entries), len(work.Entries)+len(state.Entries))
	}
	if e := list.Find("build/odd-mode"); e == nil || e.Perm != 0o751 {
		t.Errorf("odd-mode is %+v", e)
	}
	if e := list.Find("empty-folder/inner"); e == nil || e.Kind != snapshot.Dir {
		t.Error("the empty folder is not in the list")
	}
	for _, e := range list.Entries {
		if e.Kind != snapshot.File {
			continue
		}
		from := e.Path.In(f.Dir)
		if rest, ok := strings.CutPrefix(string(e.Path), "git-dir~/"); ok {
			from = filepath.Join(f.Dir, ".git", rest)
		}
		want, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := s.Store.ReadBlob(t.Context(), e.ID, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%q: %v", e.Path, err)
		}
	}
	// The commit alone is enough: all that is in it is reachable.
	git := func(args ...string) string { return f.Git(append([]string{"--git-dir", s.Store.Dir()}, args...)...) }
	git("fsck", "--full", "--strict")
	if got := git("show", sv.Ref+":README.md"); got != strings.TrimSuffix(f.Read("README.md"), "\n") {
		t.Errorf("README.md in the commit is %q", got)
	}
	if got := git("cat-file", "-t", sv.Ref+"^:"+salvage.ListName); got != "blob" {
		t.Errorf("the list is a %s", got)
	}
	planted := list.Find("nested/.git/config")
	if got := git("show", sv.Ref+"^:"+salvage.ContentsName+"/"+planted.ID.String()); got != "planted" {
		t.Errorf("what no tree holds is %q", got)
	}
}

func TestSalvageNumbersAreNeverReused(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := openSession(t, f, OpenOptions{})
	one := func() *salvage.Record {
		t.Helper()
		sv, err := s.Salvage(t.Context(), "test", partOf(t, f.Path("src"), ""))
		if err != nil {
			t.Fatal(err)
		}
		return sv
	}
	if sv, err := s.Salvage(t.Context(), "nothing", salvage.Part{Dir: f.Dir}, salvage.Part{Dir: "/nowhere"}); sv != nil || err != nil {
		t.Errorf("nothing gave %+v, %v", sv, err)
	}
	first := one()
	if again := one(); again.N != 1 || again.Commit != first.Commit {
		t.Errorf("the same again gave %+v", again)
	}
	f.Write("src/main.go", "changed\n")
	if sv := one(); sv.N != 2 {
		t.Errorf("number %d, want 2", sv.N)
	}
	// The record is gone, the ref stands; then the other way round.
	dir := salvage.Dir(s.Folder)
	for _, name := range []string{"2.json", "2.snap"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if sv := one(); sv.N != 3 {
		t.Errorf("number %d, want 3", sv.N)
	}
	put(t, filepath.Join(dir, "7.snap"), "cut short")
	put(t, filepath.Join(dir, "99999999999.json"), "planted")
	put(t, filepath.Join(dir, "08.json"), "planted")
	f.Write("src/main.go", "changed again\n")
	if sv := one(); sv.N != 8 {
		t.Errorf("number %d, want 8", sv.N)
	}
}

// What changes, vanishes or turns into something else between the scan and the
// salvage is stored as it is found, or named; nothing is stored under a wrong id.
func TestSalvageOfWhatMoves(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := openSession(t, f, OpenOptions{})
	for i := range 5 {
		f.Write(fmt.Sprintf("many/same%d", i), "all the same\n")
	}
	part := partOf(t, f.Path("many"), "")
	full := &snapshot.Snapshot{Root: part.Dir, Format: snapshot.SHA1, Entries: part.Entries}
	if _, err := snapshot.HashMissing(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	f.Write("many/same0", "not the same any more\n")
	f.Remove("many/same1")
	f.Remove("many/same2")
	f.Symlink("/etc/passwd", "many/same2")
	f.Remove("many/same3")
	f.Mkdir("many/same3")
	sv, err := s.Salvage(t.Context(), "moving", part)
	if err != nil {
		t.Fatal(err)
	}
	list, err := snapshot.Load(sv.ListPath(salvage.Dir(s.Folder)))
	if err != nil {
		t.Fatal(err)
	}
	var kept []superqode.RelPath
	for _, e := range list.Entries {
		kept = append(kept, e.Path)
		var got bytes.Buffer
		if err := s.Store.ReadBlob(t.Context(), e.ID, &got); err != nil || got.String() != f.Read("many/"+string(e.Path)) {
			t.Errorf("%s holds %q, %v", e.Path, got.String(), err)
		}
	}
	if !slices.Equal(kept, []superqode.RelPath{"same0", "same4"}) {
		t.Errorf("kept %q", kept)
	}
	var left []string
	for _, l := range sv.LeftOut {
		left = append(left, string(l.Path))
	}
	if !slices.Equal(left, []string{"same1", "same2", "same3"}) {
		t.Errorf("left out %q", left)
	}
	if !slices.ContainsFunc(s.Rec.Warnings, func(w string) bool { return strings.Contains(w, "same1") }) {
		t.Errorf("nobody was warned: %q", s.Rec.Warnings)
	}
}

func TestSalvageRecordsWhatIsNoFile(t *testing.T) {
	t.Parallel()
	f := gittest.Dirty(t)
	s := openSession(t, f, OpenOptions{})
	entries := []snapshot.Entry{{Path: "broken-\xff\n", Kind: snapshot.Link, Link: "no\nwhere\xfe"}, {Path: "pipe", Kind: snapshot.Other, Perm: 0o644}, {Path: "room", Kind: snapshot.Dir, Perm: 0o700}}
	sv, err := s.Salvage(t.Context(), "odd\x1b\n\xff", salvage.Part{Dir: f.Dir, Prefix: "p", Entries: entries})
	if err != nil || sv.Files != 1 || len(sv.LeftOut) != 0 {
		t.Fatalf("%+v, %v", sv, err)
	}
	sv.LeftOut = []salvage.LeftOut{{Path: "not utf \xff", Reason: "why"}}
	data, err := json.Marshal(sv)
	if err != nil {
		t.Fatal(err)
	}
	back, err := salvage.Parse(data, s.Rec.ID, 1)
	if err != nil || back.LeftOut[0] != sv.LeftOut[0] {
		t.Errorf("%+v, %v", back, err)
	}
	for _, n := range []int{2, 0, -1} {
		if _, err := salvage.Parse(data, s.Rec.ID, n); !errors.Is(err, state.ErrBroken) {
			t.Errorf("record 1 was taken for %d: %v", n, err)
		}
	}
}

func shell(t *testing.T, line string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-c", line, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}
