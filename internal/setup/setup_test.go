package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/setup"
)

// bench is a workspace with an origin beside it.
type bench struct {
	t       *testing.T
	dir, ws string
	ran     []string
	fail    map[string]int
	kept    []string
}

func newBench(t *testing.T) *bench {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, ws: filepath.Join(dir, "ws"), fail: map[string]int{}}
	for _, d := range []string{"ws", "origin", "state", "home"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(data)
}

func (b *bench) host() setup.Host {
	return setup.Host{
		Workspace: b.ws, Origin: filepath.Join(b.dir, "origin"), State: filepath.Join(b.dir, "state", "setup.json"), Home: filepath.Join(b.dir, "home"),
		Forbidden: []string{filepath.Join(b.dir, "state")},
		Artifact: func(_ context.Context, name string, version int) (string, artifacts.Named, error) {
			return "", artifacts.Named{}, superqode.Errorf(superqode.ErrNotFound, "no artifact %q", name)
		},
		Run: func(_ context.Context, c setup.Command) (setup.Outcome, error) {
			b.ran = append(b.ran, c.Line)
			if code := b.fail[c.Line]; code != 0 {
				return setup.Outcome{ExitCode: code, Output: "sorry"}, nil
			}
			return setup.Outcome{}, nil
		},
		Keep: func(_ context.Context, path superqode.RelPath) error {
			b.kept = append(b.kept, string(path))
			return nil
		},
		Protected: func(string) (string, bool) { return "nothing protects it", false },
	}
}

// reconcile returns what became of each entry.
func (b *bench) reconcile(spec setup.Spec, opt setup.Options) (string, error) {
	steps, err := setup.Reconcile(b.t.Context(), b.host(), spec, opt)
	var out []string
	for _, s := range steps {
		out = append(out, s.State+" "+s.Name)
	}
	return strings.Join(out, ", "), err
}

func (b *bench) want(spec setup.Spec, want string) {
	b.t.Helper()
	got, err := b.reconcile(spec, setup.Options{})
	if err != nil || got != want {
		b.t.Errorf("%s (%v), want %s", got, err, want)
	}
}

func rel(t *testing.T, s string) superqode.RelPath {
	t.Helper()
	p, err := superqode.ParseRelPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func file(t *testing.T, target, content string, mode uint32) config.SetupEntry {
	return config.SetupEntry{Key: "setup[f]", File: &config.SetupFile{Target: rel(t, target), Content: content, Mode: mode}}
}

func run(line string, change ...func(*config.SetupRun)) config.SetupEntry {
	r := &config.SetupRun{Command: line, Line: line}
	for _, f := range change {
		f(r)
	}
	return config.SetupEntry{Key: "setup[r]", Run: r}
}

// TestOrder holds that inputs come before files and files before commands.
func TestOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("origin/data", "d")
	spec := setup.Spec{
		Inputs:  []config.Input{{Key: "inputs[0]", Path: filepath.Join(b.dir, "origin/data"), To: rel(t, "in/data")}},
		Entries: []config.SetupEntry{run("one"), file(t, ".env", "A=1\n", 0o600), run("two"), file(t, "deep/x", "", 0)},
	}
	b.want(spec, "applied in/data, applied .env, applied deep/x, applied one, applied two")
	b.want(spec, "skipped in/data, skipped .env, skipped deep/x, skipped one, skipped two")
	if d := cmp.Diff([]string{"one", "two"}, b.ran); d != "" {
		t.Error(d)
	}
	if st, err := os.Stat(filepath.Join(b.ws, ".env")); err != nil || st.Mode().Perm() != 0o600 || b.read("ws/.env") != "A=1\n" {
		t.Errorf("%v, %v", st, err)
	}
	if b.read("ws/in/data") != "d" {
		t.Error("no input")
	}
}

// TestHeals holds that what drifted, and only that, is brought back.
func TestHeals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/src/a", "1")
	marked := func(r *config.SetupRun) { r.Marker = ".m" }
	reads := func(r *config.SetupRun) { r.FingerprintInputs = []string{"src/**"} }
	spec := setup.Spec{Entries: []config.SetupEntry{file(t, "f", "x", 0), run("marked", marked), run("reads", reads), run("plain"), run("plain")}}
	b.want(spec, "applied f, applied marked, applied reads, applied plain, applied plain")
	b.write("ws/f", "y")
	b.want(spec, "applied f, skipped marked, skipped reads, skipped plain, skipped plain")
	if b.read("ws/f") != "x" || len(b.kept) != 1 {
		t.Errorf("%s, kept %q", b.read("ws/f"), b.kept)
	}
	if err := os.Remove(filepath.Join(b.ws, ".m")); err != nil {
		t.Fatal(err)
	}
	b.write("ws/src/b", "2")
	if err := os.Chmod(filepath.Join(b.ws, "f"), 0o640); err != nil {
		t.Fatal(err)
	}
	b.want(spec, "applied f, applied marked, applied reads, skipped plain, skipped plain")
	got, err := b.reconcile(spec, setup.Options{Force: true, DryRun: true})
	if err != nil || strings.Contains(got, "skipped") || len(b.ran) != 6 {
		t.Errorf("%s, %v, ran %q", got, err, b.ran)
	}
	spec.Entries[3].Run.Salt = "1"
	b.want(spec, "skipped f, skipped marked, skipped reads, applied plain, skipped plain")
}

// TestFailures holds that a required entry ends the work, an optional one does
// not, and that what had succeeded before is not repeated.
func TestFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	optional := func(r *config.SetupRun) { r.Optional = true }
	spec := setup.Spec{Entries: []config.SetupEntry{run("one"), run("maybe", optional), run("two"), run("three")}}
	b.fail["maybe"], b.fail["two"] = 1, 7
	got, err := b.reconcile(spec, setup.Options{})
	failed, ok := errors.AsType[*setup.Error](err)
	if !ok || got != "applied one, optional_failed maybe, failed two" || failed.Step.ExitCode != 7 || failed.Step.Output != "sorry" || err.Error() != "setup[r] (two): it failed with exit code 7" {
		t.Errorf("%s, %v", got, err)
	}
	clear(b.fail)
	b.want(spec, "skipped one, applied maybe, applied two, applied three")
	if d := cmp.Diff([]string{"one", "maybe", "two", "maybe", "two", "three"}, b.ran); d != "" {
		t.Error(d)
	}
	st, err := setup.Load(filepath.Join(b.dir, "state", "setup.json"))
	if err != nil || len(st.Steps) != 4 || len(st.Records) != 4 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestNothingOutside holds that no way leads out of the workspace or into git's
// folder.
func TestNothingOutside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("outside/keep", "k")
	b.write("ws/.git/config", "c")
	b.write("ws/folder/x", "1")
	b.write("ws/plain", "p")
	b.write("origin/data/y", "d")
	for name, to := range map[string]string{"out": "../outside", "abs": filepath.Join(b.dir, "outside"), "g": ".git", "gone": "nowhere", "chain": "out"} {
		if err := os.Symlink(to, filepath.Join(b.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(b.dir, "origin/data")
	for _, target := range []string{"out/x", "abs/x", "g/config", "g/hooks/pre-commit", "gone/x", "chain/keep", "plain/x"} {
		for what, spec := range map[string]setup.Spec{
			"file":   {Entries: []config.SetupEntry{file(t, target, "evil", 0)}},
			"copy":   {Inputs: []config.Input{{Key: "inputs[0]", Path: data, To: rel(t, target)}}},
			"link":   {Inputs: []config.Input{{Key: "inputs[0]", Path: data, To: rel(t, target), Link: true}}},
			"marker": {Entries: []config.SetupEntry{run("r", func(r *config.SetupRun) { r.Marker = target })}},
		} {
			if got, err := b.reconcile(spec, setup.Options{}); !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), target) {
				t.Errorf("%s %s: %s, %v", what, target, got, err)
			}
		}
	}
	if got, err := b.reconcile(setup.Spec{Entries: []config.SetupEntry{file(t, "folder", "evil", 0)}}, setup.Options{}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("%s, %v", got, err)
	}
	// links in a target's own place are replaced, not followed
	for _, name := range []string{"out", "chain", "gone"} {
		b.want(setup.Spec{Entries: []config.SetupEntry{file(t, name, "in", 0)}}, "applied "+name)
	}
	b.want(setup.Spec{Inputs: []config.Input{{Key: "i", Path: data, To: rel(t, "abs"), ReadOnly: true}}}, "applied abs")
	b.want(setup.Spec{Inputs: []config.Input{{Key: "i", Path: data, To: rel(t, "folder")}}}, "applied folder")
	b.want(setup.Spec{Inputs: []config.Input{{Key: "i", Path: filepath.Join(data, "y"), To: rel(t, "abs")}}}, "applied abs")
	if b.read("outside/keep") != "k" || b.read("ws/.git/config") != "c" || b.read("ws/out") != "in" || b.read("ws/folder/y") != "d" || b.read("ws/abs") != "d" {
		t.Error("something is not as it should be")
	}
	left, err := os.ReadDir(b.ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), ".superqode-") {
			t.Errorf("%s was left", e.Name())
		}
	}
	if outside, err := os.ReadDir(filepath.Join(b.dir, "outside")); err != nil || len(outside) != 1 {
		t.Errorf("%v, %v", outside, err)
	}
}

func TestInputSources(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/only/here", "w")
	b.write("home/secret", "s")
	b.write("origin/data", "d")
	one := func(in config.Input) setup.Spec {
		in.Key = "inputs[0]"
		if in.To.IsZero() {
			in.To = rel(t, "to")
		}
		return setup.Spec{Inputs: []config.Input{in}}
	}
	b.want(one(config.Input{Path: "~/secret", To: rel(t, "a")}), "applied a")
	b.want(one(config.Input{Workspace: "only/here", To: rel(t, "b")}), "applied b")
	b.want(one(config.Input{Path: filepath.Join(b.dir, "origin/only"), To: rel(t, "c"), ReadOnly: true}), "applied c") // the workspace's
	b.want(one(config.Input{Path: filepath.Join(b.dir, "origin/data"), To: rel(t, "d"), Link: true}), "applied d")
	b.want(one(config.Input{Path: filepath.Join(b.dir, "origin/none"), Optional: true}), "optional_failed to")
	if link, err := os.Readlink(filepath.Join(b.ws, "d")); err != nil || link != filepath.Join(b.dir, "origin/data") {
		t.Errorf("%s, %v", link, err)
	}
	if st, err := os.Stat(filepath.Join(b.ws, "c/here")); err != nil || st.Mode().Perm()&0o222 != 0 {
		t.Errorf("%v, %v", st, err)
	}
	for _, in := range []config.Input{
		{Path: "/", To: rel(t, "x")}, {Path: b.dir, To: rel(t, "x")}, {Path: filepath.Join(b.dir, "state"), To: rel(t, "x")}, {Path: "/dev/null", To: rel(t, "x")},
		{Workspace: "only", To: rel(t, "only/x")}, {Workspace: "only/here", To: rel(t, "only")}, {Path: filepath.Join(b.dir, "origin/data"), Link: true, ReadOnly: true},
	} {
		if got, err := b.reconcile(one(in), setup.Options{}); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%+v: %s, %v", in, got, err)
		}
	}
	for _, in := range []config.Input{{Path: filepath.Join(b.dir, "none")}, {Workspace: "none"}, {Artifact: "none"}, {Path: filepath.Join(b.dir, "origin/none")}} {
		if got, err := b.reconcile(one(in), setup.Options{}); !errors.Is(err, superqode.ErrNotFound) {
			t.Errorf("%+v: %s, %v", in, got, err)
		}
	}
}

// A program outside of the workspace may be a link, as /bin/sh is. What it leads to counts.
func TestLinkedProgram(t *testing.T) {
	b := newBench(t)
	b.write("bin/dash", "1")
	link := filepath.Join(b.dir, "bin/sh")
	if err := errors.Join(os.Chmod(filepath.Join(b.dir, "bin/dash"), 0o755), os.Symlink("dash", link)); err != nil {
		t.Fatal(err)
	}
	entry := config.SetupEntry{Key: "setup[0].run", Run: &config.SetupRun{Command: link, Line: link}}
	spec := setup.Spec{Entries: []config.SetupEntry{entry}}
	b.want(spec, "applied "+link)
	b.want(spec, "skipped "+link)
	b.write("bin/dash", "2")
	b.want(spec, "applied "+link)
}
