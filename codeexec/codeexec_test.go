package codeexec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/codeexec"
	"github.com/seed-2d964004/superqode/session"
	"github.com/seed-2d964004/superqode/workspace"
)

// child is the variable that makes the test binary acquire a workspace and print its path.
const child = "CODEEXEC_TEST_CHILD"

func TestMain(m *testing.M) {
	dir := os.Getenv(child)
	if dir == "" {
		os.Exit(m.Run())
	}
	if os.Getenv(programChild) != "" {
		startAndWait(dir)
	}
	w, err := registry(dir).Acquire(context.Background(), "shared")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(w.Dir.Root())
}

func registry(dir string) *codeexec.Registry {
	return codeexec.NewRegistry(session.NewManager(session.Config{Home: filepath.Join(dir, "home"),
		Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}}), session.OpenOptions{Dir: filepath.Join(dir, "origin"), Mode: superqode.ModeDirectory})
}

func scratch(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "origin"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func acquire(t *testing.T) (*codeexec.Registry, *codeexec.Workspace) {
	t.Helper()
	r := registry(scratch(t))
	w, err := r.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "origin"), 0o700); err != nil {
		panic(err)
	}
	ctx, reg := context.Background(), registry(dir)
	ws, err := reg.Acquire(ctx, "chat-7")
	if err != nil {
		panic(err)
	}
	blocks, err := codeexec.ExtractCodeBlocks("Do this:\n```sh\necho hello\necho x >$OUTPUT_DIR/a.txt\n```\n", codeexec.Markdown)
	if err != nil {
		panic(err)
	}
	ran, err := ws.RunBlocks(ctx, blocks, nil)
	if err != nil {
		panic(err)
	}
	made, err := ws.Collect(ctx, "out/**")
	if err != nil {
		panic(err)
	}
	fmt.Print(ran[0].Stdout)
	fmt.Println(made.Files[0].Name, made.Files[0].Size)
	if err := reg.Release(ctx, "chat-7"); err != nil {
		panic(err)
	}
	// Output:
	// hello
	// out/a.txt 2
}

// TestAcquireOnce holds that callers and processes that ask at once get one workspace, and
// that a first caller who gives up takes it from nobody.
func TestAcquireOnce(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	reg := registry(dir)
	gone, cancel := context.WithCancel(t.Context())
	paths := make([]string, 12)
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = reg.Acquire(gone, "shared") }) // what it returns depends on who is faster
	cancel()
	for i := range paths {
		wg.Go(func() {
			if i%3 == 0 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), child+"="+dir)
				out, err := cmd.Output()
				paths[i], errs[i] = string(out), err
				return
			}
			w, err := reg.Acquire(t.Context(), "shared")
			if errs[i] = err; err == nil {
				paths[i] = w.Dir.Root()
			}
		})
	}
	wg.Wait()
	for i := range paths {
		if errs[i] != nil || paths[i] == "" || paths[i] != paths[0] {
			t.Errorf("caller %d has %q, the first %q: %v", i, paths[i], paths[0], errs[i])
		}
	}
	if err := reg.Release(t.Context(), "shared"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(paths[0]); !os.IsNotExist(err) {
		t.Errorf("after the release: %v", err)
	}
}

// TestAcquireAfterFailure holds that a failure is not remembered.
func TestAcquireAfterFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reg := registry(dir)
	if _, err := reg.Acquire(t.Context(), "x"); err == nil {
		t.Fatal("acquired without an origin")
	}
	if err := os.Mkdir(filepath.Join(dir, "origin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Acquire(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := reg.Release(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Acquire(t.Context(), ""); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("no id: %v", err)
	}
}

func TestRunBlocks(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	ran, err := w.RunBlocks(t.Context(), []codeexec.Block{
		{Code: "exit 3", Language: "SH"}, {Code: "x", Language: "cobol"}, {Code: "echo $0", Language: "mine"},
		{Code: "head -c 11000000 /dev/zero", Language: "sh"},
	}, map[string][]string{"mine": {"sh", "-e"}})
	if err != nil || len(ran) != 4 {
		t.Fatal(ran, err)
	}
	if ran[0].ExitCode != 3 || ran[0].Err != nil {
		t.Errorf("exit 3: %+v", ran[0])
	}
	if !errors.Is(ran[1].Err, superqode.ErrUsage) || !strings.Contains(ran[1].Err.Error(), "blocks[1].language") {
		t.Errorf("an unknown language: %v", ran[1].Err)
	}
	if !strings.HasPrefix(ran[2].Stdout, "../runs/block-") {
		t.Errorf("an interpreter of the caller's: %+v", ran[2])
	}
	if !ran[3].Truncated || len(ran[3].Stdout) != codeexec.MaxOutput {
		t.Errorf("%d bytes, truncated %t", len(ran[3].Stdout), ran[3].Truncated)
	}
}

// TestNothingLeaves holds that no path and no link leads a call out of the workspace.
func TestNothingLeaves(t *testing.T) {
	t.Parallel()
	r, w := acquire(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"ln", "-s", secret, "out/link"}}); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	for _, name := range []string{"../x", "/tmp/x", "out/link"} {
		err := w.Put(t.Context(), codeexec.File{Path: "ok"}, codeexec.File{Path: name, Content: []byte("bad")})
		if !errors.Is(err, workspace.ErrPathTraversal) || !strings.HasPrefix(err.Error(), "files[1].path") {
			t.Errorf("put %s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "s" {
		t.Errorf("the secret is %q, %v", data, err)
	}
	c, err := w.Collect(t.Context(), "out/*")
	if err != nil || len(c.Files) != 0 || len(c.Skipped) != 1 {
		t.Errorf("collected %+v, %v", c, err)
	}
	if _, err := w.Run(t.Context(), codeexec.Program{Args: []string{"true"}, Cwd: "../.."}); !errors.Is(err, workspace.ErrPathTraversal) {
		t.Errorf("cwd: %v", err)
	}
	if _, err := w.Run(t.Context(), codeexec.Program{Args: []string{"true"}, Env: map[string]string{"SUPERQODE_SOCKET": "x"}}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("env: %v", err)
	}
	if err := r.Release(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context(), codeexec.Program{Args: []string{"true"}}); err == nil {
		t.Error("ran after the release")
	}
}

// TestModes holds that an executable file comes back as one, under its own name.
func TestModes(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	if err := w.Put(t.Context(), codeexec.File{Path: "out/bin/run.sh", Content: []byte("#!/bin/sh\n"), Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	c, err := w.Collect(t.Context(), "out/**")
	if err != nil || len(c.Files) != 1 || c.Files[0].Name != "out/bin/run.sh" || c.Files[0].Mode.Perm() != 0o755 || c.Files[0].MIME == "" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestRunDir holds that each run has a folder of its own, and the name of its skill.
func TestRunDir(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	seen := map[string]bool{}
	for range 5 {
		res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", `ls -A "$RUN_DIR"; echo x >"$RUN_DIR/x" && echo "$SKILL_NAME $RUN_DIR"`},
			Env: map[string]string{"RUN_DIR": "/elsewhere"}, Skill: "pdf"})
		if err != nil || !strings.HasPrefix(res.Stdout, "pdf "+w.Dir.Root()+"/runs/run_") || seen[res.Stdout] {
			t.Fatalf("%+v, %v", res, err)
		}
		seen[res.Stdout] = true
	}
	outside := t.TempDir()
	script := `rm -r runs && ln -s "$0" runs`
	if res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", script, outside}}); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if _, err := w.Run(t.Context(), codeexec.Program{Args: []string{"true"}}); err == nil {
		t.Error("ran with a folder outside the workspace")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside are %v, %v", left, err)
	}
}

// TestCleanEnv holds that what loads code into every program is left out where it is asked for.
func TestCleanEnv(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	r := codeexec.NewRegistry(session.NewManager(session.Config{Home: filepath.Join(dir, "home"),
		Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "BASH_ENV=/nowhere", "PERL5OPT=-w"}}), session.OpenOptions{Dir: filepath.Join(dir, "origin"), Mode: superqode.ModeDirectory})
	w, err := r.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	for clean, want := range map[bool]string{false: "/nowhere -w mine\n", true: "  mine\n"} {
		res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", `echo "$BASH_ENV $PERL5OPT $MINE"`},
			Env: map[string]string{"MINE": "mine"}, CleanEnv: clean})
		if err != nil || res.Stdout != want {
			t.Errorf("clean %t: %+v, %v", clean, res, err)
		}
	}
}

// TestLimits holds that what a limit keeps out is reported, and that an error names its field.
func TestLimits(t *testing.T) {
	t.Parallel()
	_, w := acquire(t)
	for i, size := range []int{1, 10, 100} {
		if err := w.Put(t.Context(), codeexec.File{Path: fmt.Sprintf("out/%d", i), Content: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	for want, spec := range map[int]codeexec.Spec{
		1: {MaxFiles: 1}, 2: {MaxFileBytes: 10}, 3: {},
	} {
		spec.Globs = []string{"out/*"}
		c, err := w.CollectOutputs(t.Context(), spec)
		if err != nil || len(c.Files) != want || (want < 3) != (len(c.LimitsHit) > 0) {
			t.Errorf("%+v: %+v, %v", spec, c, err)
		}
	}
	c, err := w.CollectOutputs(t.Context(), codeexec.Spec{Globs: []string{"out/*"}, MaxTotalBytes: 11})
	if err != nil || len(c.Files) != 2 || len(c.LimitsHit) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for field, spec := range map[string]codeexec.Spec{
		"globs": {Globs: []string{"["}}, "max_files": {MaxFiles: -1}, "max_file_bytes": {MaxFileBytes: -1}, "max_total_bytes": {MaxTotalBytes: -1},
	} {
		if _, err := w.CollectOutputs(t.Context(), spec); !errors.Is(err, superqode.ErrUsage) || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func FuzzExtractCodeBlocks(f *testing.F) {
	f.Add("```python\nprint(1)\n```\n```\nx\n```", "```", "```")
	f.Add("<code> ruby\nputs 1\n</code> ```", "<code>", "</code>")
	f.Add("```go\nnever closed", "```", "```")
	f.Fuzz(func(t *testing.T, text, start, end string) {
		blocks, err := codeexec.ExtractCodeBlocks(text, codeexec.Delimiters{Start: start, End: end})
		if bad := start == "" || end == "" || strings.Contains(start+end, "\n"); bad != (err != nil) {
			t.Fatalf("%q %q: %v", start, end, err)
		}
		for _, b := range blocks { // a block is a part of the text, and stops at the first end
			if strings.Contains(b.Language, "\n") || strings.Contains(b.Code, end) || !strings.Contains(text, "\n"+b.Code+end) {
				t.Fatalf("%q has %+v", text, b)
			}
		}
	})
}
