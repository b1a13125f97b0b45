package codeexec_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/codeexec"
	"github.com/seed-2d964004/superqode/session"
)

// TestInitHooks: hooks run once for all who ask, before any of them, and one that fails
// leaves nothing behind, also where the caller has gone.
func TestInitHooks(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	var ran, undone atomic.Int32
	fails := errors.New("no network")
	failing := atomic.Bool{}
	hooks := []codeexec.InitHook{
		{Name: "deps", Run: func(ctx context.Context, w *codeexec.Workspace) error {
			ran.Add(1)
			res, err := w.Run(ctx, codeexec.Program{Args: []string{"sh", "-c", "echo >work/deps"}})
			if res.ExitCode != 0 {
				err = errors.Join(err, errors.New(res.Stderr))
			}
			return err
		}, Undo: func(ctx context.Context, _ *codeexec.Workspace) error { undone.Add(1); return context.Cause(ctx) }},
		{Name: "check", Run: func(context.Context, *codeexec.Workspace) error {
			if failing.Load() {
				return fails
			}
			return nil
		}},
	}
	one, two := registry(dir), registry(dir)
	one.Init, two.Init = hooks, hooks
	failing.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := one.Acquire(ctx, "a"); !errors.Is(err, fails) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := one.Acquire(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "init hook check: no network") {
		t.Errorf("%v", err)
	}
	if n := ran.Load(); n == 0 || n != undone.Load() {
		t.Errorf("run %d times, undone %d times", n, undone.Load())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "home", "working", "*", "qe", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	failing.Store(false)
	ran.Store(0)
	undone.Store(0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w, err := []*codeexec.Registry{one, two}[i%2].Acquire(t.Context(), "a")
			if err == nil {
				_, err = w.Dir.Stat(t.Context(), "work/deps")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w, err := one.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := w.Metadata(t.Context()); err != nil || len(m.Prepared) != 2 || ran.Load() != 1 {
		t.Errorf("%d, %+v, %v", ran.Load(), m, err)
	}
	if err := errors.Join(two.Close(t.Context(), "a"), one.Release(t.Context(), "a")); err != nil || undone.Load() != 1 {
		t.Errorf("%d, %v", undone.Load(), err)
	}
}

// TestMountedMode: a workspace that this process cannot reach is refused before it is made.
func TestMountedMode(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	r := codeexec.NewRegistry(session.NewManager(session.Config{Home: filepath.Join(dir, "home")}), session.OpenOptions{Dir: filepath.Join(dir, "origin"), Mode: superqode.ModeOverlay})
	if _, err := r.Acquire(t.Context(), "one"); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("%v", err)
	}
}

// TestProvidedEnv: a provider adds variables and replaces none, and none that loads code
// where the environment is to be clean.
func TestProvidedEnv(t *testing.T) {
	t.Parallel()
	r := registry(scratch(t))
	broken := errors.New("vault sealed")
	var fail atomic.Bool
	r.Env = func(context.Context) (map[string]string, error) {
		if fail.Load() {
			return nil, broken
		}
		return map[string]string{"TOKEN": "provided", "MINE": "provided", "WORK_DIR": "/", "BASH_ENV": "/evil", "LD_PRELOAD": ""}, nil
	}
	w, err := r.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	for clean, want := range map[bool]string{false: "provided own work /evil", true: "provided own work unset"} {
		res, err := w.Run(t.Context(), codeexec.Program{Args: []string{"sh", "-c", `echo $TOKEN $MINE ${WORK_DIR##*/} ${BASH_ENV-unset}`}, Env: map[string]string{"MINE": "own"}, CleanEnv: clean})
		if err != nil || strings.TrimSpace(res.Stdout) != want {
			t.Errorf("%+v, %v", res, err)
		}
	}
	fail.Store(true)
	if _, err := w.Run(t.Context(), codeexec.Program{Args: []string{"true"}}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := w.StartProgram(t.Context(), codeexec.Program{Args: []string{"true"}}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// recorder is a tracer that keeps the names of spans.
type recorder struct {
	embedded.Tracer
	mu    sync.Mutex
	names []string
}

func (r *recorder) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
	return ctx, noop.Span{}
}

// TestEvents: what is done is told to the tracer and in events.jsonl, without contents, words
// and values; and the engine does what the workspace does.
func TestEvents(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	r, seen := registry(dir), &recorder{}
	r.Tracer = seen
	e := codeexec.NewEngine(r)
	ctx := t.Context()
	w, err := e.Acquire(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if able := e.Describe(w); able.Kernel.Layer == "" || !able.Interactive || !able.Persistent || !able.Network {
		t.Errorf("%+v", able)
	}
	if err := e.Put(ctx, w, codeexec.File{Path: "work/a", Content: []byte("s3cret")}); err != nil {
		t.Fatal(err)
	}
	if err := e.StageDirectory(ctx, w, tree(t), "skills/a", false); err != nil {
		t.Fatal(err)
	}
	if _, err := e.StageInputs(ctx, w, codeexec.Input{From: "skill://none"}); err == nil {
		t.Error("a skill that is not there was staged")
	}
	if res, err := e.Run(ctx, w, codeexec.Program{Args: []string{"sh", "-c", "exit 3 # s3cret"}, Env: map[string]string{"KEY": "s3cret"}}); err != nil || res.ExitCode != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	if ran, err := e.RunBlocks(ctx, w, []codeexec.Block{{Code: "true", Language: "sh"}}, nil); err != nil || ran[0].ExitCode != 0 {
		t.Errorf("%+v, %v", ran, err)
	}
	p, err := e.StartProgram(ctx, w, codeexec.Program{Args: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Collect(ctx, w, "work/*"); err != nil {
		t.Error(err)
	}
	if _, err := e.CollectOutputs(ctx, w, codeexec.Spec{Globs: []string{"none"}}); err != nil {
		t.Error(err)
	}
	if err := e.Release(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	store, err := artifacts.Open(filepath.Join(dir, "origin"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := store.Get(ctx, codeexec.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(store.File(a))
	if err != nil || bytes.Contains(data, []byte("s3cret")) {
		t.Fatalf("%s, %v", data, err)
	}
	var names []string
	failed := 0
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var one struct {
			Name       string
			Seconds    float64
			Attributes map[string]any
			Error      string
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil || one.Seconds <= 0 || one.Attributes["workspace.id"] != "one" {
			t.Errorf("%s, %v", lines.Bytes(), err)
		}
		if one.Error != "" {
			failed++
		}
		names = append(names, one.Name)
	}
	want := []string{"workspace.create", "workspace.stage.files", "workspace.stage.dir", "workspace.stage.inputs", "workspace.run", "workspace.run", "workspace.run", "workspace.collect", "workspace.collect"}
	if strings.Join(names, " ") != strings.Join(want, " ") || failed != 1 {
		t.Errorf("%q, %d failed", names, failed)
	}
	if strings.Join(seen.names, " ") != strings.Join(append(want, "workspace.cleanup"), " ") {
		t.Errorf("%q", seen.names)
	}
}
