package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

func sh(t testing.TB, r workspace.Runner, script string, opt workspace.Options) workspace.Result {
	t.Helper()
	res, err := r.Exec(context.Background(), "sh", []string{"-c", script}, opt)
	must(t, err)
	return res
}

func TestExec(t *testing.T) {
	dir := open(t)
	r := workspace.NewRunner(dir)
	res := sh(t, r, "cat; echo err >&2; exit 3", workspace.Options{Stdin: []byte("in")})
	if res != (workspace.Result{Stdout: "in", Stderr: "err\n", ExitCode: 3}) {
		t.Errorf("%+v", res)
	}
	if res := sh(t, r, "kill -9 $$", workspace.Options{}); res.ExitCode != 137 || res.Limit != "" {
		t.Errorf("%+v", res)
	}
	_, err := r.Exec(context.Background(), "no-such-command-anywhere", nil, workspace.Options{})
	is(t, err, superqode.ErrNotFound)
	must(t, dir.Write(context.Background(), "plain", []byte("x")))
	if _, err := r.Exec(context.Background(), "./plain", nil, workspace.Options{}); err == nil || errors.Is(err, superqode.ErrNotFound) {
		t.Error(err)
	}
	must(t, dir.Write(context.Background(), "bin/mine", []byte("#!/bin/sh\npwd\n")))
	must(t, os.Chmod(filepath.Join(dir.Root(), "bin/mine"), 0o755))
	for opt, want := range map[string]string{"": dir.Root(), "bin": dir.Root() + "/bin"} {
		name := "./bin/mine"
		if opt == "bin" {
			name = "./mine"
		}
		res, err := r.Exec(context.Background(), name, nil, workspace.Options{Dir: opt})
		if err != nil || res.Stdout != want+"\n" {
			t.Errorf("%+v %v", res, err)
		}
	}
	for _, f := range []workspace.FS{workspace.NewMem(), other{dir}, workspace.Sub(workspace.NewMem(), "x")} {
		is(t, second(workspace.NewRunner(f).Exec(context.Background(), "true", nil, workspace.Options{})), workspace.ErrNotAvailable)
	}
	if res, err := (workspace.Noop{}).Exec(context.Background(), "rm", []string{"-rf", "/"}, workspace.Options{}); err != nil || res != (workspace.Result{}) {
		t.Error(res, err)
	}
}

// TestExecDir holds that no command starts outside, whatever happens to the path.
func TestExecDir(t *testing.T) {
	dir, ctx := open(t), context.Background()
	away, _ := outside(t)
	must(t, dir.Write(ctx, "in/f", nil))
	must(t, dir.Write(ctx, "hid/f", nil))
	for name, target := range map[string]string{"out": away, "in/up": "../..", "rel": "in", "abs": filepath.Join(dir.Root(), "in"), "nowhere": "none", "key": "hid"} {
		must(t, os.Symlink(target, filepath.Join(dir.Root(), name)))
	}
	var told []string
	scoped := workspace.Scoped(dir, workspace.WithDenyRead("hid"), workspace.WithViolationLogger(func(_ context.Context, v workspace.Violation) {
		told = append(told, v.Operation+" "+v.Path+" "+v.Rule)
	}))
	for _, r := range []workspace.Runner{workspace.NewRunner(dir), workspace.NewRunner(scoped), workspace.NewRunner(workspace.Sub(dir, "."))} {
		for _, name := range []string{"in", "rel", "abs", filepath.Join(dir.Root(), "in"), "./in/"} {
			if res := sh(t, r, "pwd -P", workspace.Options{Dir: name}); res.Stdout != dir.Root()+"/in\n" {
				t.Errorf("%s: %+v", name, res)
			}
		}
		for _, name := range []string{"out", "in/up", "..", "/", "/tmp", away, "in/../..", filepath.Join(dir.Root(), "out"), dir.Root() + "/../x"} {
			is(t, second(r.Exec(ctx, "pwd", nil, workspace.Options{Dir: name})), workspace.ErrPathTraversal)
		}
		is(t, second(r.Exec(ctx, "pwd", nil, workspace.Options{Dir: "none"})), superqode.ErrNotFound)
		is(t, second(r.Exec(ctx, "pwd", nil, workspace.Options{Dir: "nowhere"})), superqode.ErrNotFound)
		if _, err := r.Exec(ctx, "pwd", nil, workspace.Options{Dir: "in/f"}); err == nil {
			t.Error("started in a file")
		}
	}
	told = nil
	is(t, second(workspace.NewRunner(scoped).Exec(ctx, "pwd", nil, workspace.Options{Dir: "key"})), workspace.ErrAccessDenied)
	if !slices.Equal(told, []string{"exec hid deny-read hid"}) {
		t.Error(told)
	}
	// the directory is swapped for a link that leads out, again and again
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Mkdir(filepath.Join(dir.Root(), "s"), 0o755)
				_ = os.Remove(filepath.Join(dir.Root(), "s"))
				_ = os.Symlink(away, filepath.Join(dir.Root(), "s"))
				_ = os.Remove(filepath.Join(dir.Root(), "s"))
			}
		}
	}()
	for range 40 {
		res, err := workspace.NewRunner(dir).Exec(ctx, "cat", []string{"secret"}, workspace.Options{Dir: "s"})
		if err == nil && res.Stdout != "" {
			t.Errorf("ran outside: %+v", res)
		}
	}
	close(stop)
	<-done
}

// TestExecEnv holds that nothing of this process's environment passes unless it is named.
func TestExecEnv(t *testing.T) {
	t.Setenv("KEEP_ME", "kept")
	t.Setenv("LC_MINE", "lc")
	t.Setenv("SECRET_TOKEN", secret)
	r := workspace.NewRunner(open(t))
	for name, tt := range map[string]struct {
		env        workspace.Env
		want, lack []string
	}{
		"nil":       {workspace.Env{}, nil, []string{"KEEP_ME", secret, "HOME="}},
		"empty":     {workspace.Env{Allow: []string{}}, nil, []string{"KEEP_ME", secret, "HOME="}},
		"unmatched": {workspace.Env{Allow: []string{"NO_SUCH", ""}}, nil, []string{"KEEP_ME", secret}},
		"named":     {workspace.Env{Allow: []string{"KEEP_ME", "PATH"}}, []string{"KEEP_ME=kept", "PATH="}, []string{secret, "LC_MINE"}},
		"pattern":   {workspace.Env{Allow: []string{"LC_*"}}, []string{"LC_MINE=lc"}, []string{secret, "KEEP_ME"}},
		"all":       {workspace.Env{Allow: []string{"*"}}, []string{"KEEP_ME=kept", secret}, nil},
		"inject":    {workspace.Env{Allow: []string{"KEEP_ME"}, Inject: map[string]string{"KEEP_ME": "mine", "NEW": "a=b\nc"}}, []string{"KEEP_ME=mine", "NEW=a=b\nc"}, []string{"kept", secret}},
	} {
		res, err := r.Exec(context.Background(), "env", nil, workspace.Options{Env: tt.env})
		must(t, err)
		for _, text := range tt.want {
			if !strings.Contains(res.Stdout, text) {
				t.Errorf("%s: no %q in %q", name, text, res.Stdout)
			}
		}
		for _, text := range tt.lack {
			if strings.Contains(res.Stdout, text) {
				t.Errorf("%s: %q in %q", name, text, res.Stdout)
			}
		}
	}
	for field, opt := range map[string]workspace.Options{
		"Env.Allow": {Env: workspace.Env{Allow: []string{"["}}}, "Env.Inject": {Env: workspace.Env{Inject: map[string]string{"A=B": "x"}}},
		"Timeout": {Timeout: -1}, "Memory": {Memory: -1}, "CPU": {CPU: -1}, "Pids": {Pids: -1}, "MaxOutput": {MaxOutput: -1}, "Net": {Net: "some"},
	} {
		if _, err := r.Exec(context.Background(), "true", nil, opt); !errors.Is(err, superqode.ErrUsage) || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestExecOutput(t *testing.T) {
	t.Parallel()
	r := workspace.NewRunner(open(t))
	for _, tt := range []struct{ n, most, want int64 }{{500, 100, 100}, {100, 100, 100}, {11 << 20, 0, workspace.DefaultMaxOutput}, {11 << 20, 12 << 20, 11 << 20}} {
		res := sh(t, r, fmt.Sprintf("head -c %d /dev/zero; head -c 3 /dev/zero >&2", tt.n), workspace.Options{MaxOutput: tt.most})
		if int64(len(res.Stdout)) != tt.want || res.Truncated != (tt.n > tt.want) || len(res.Stderr) != 3 || res.ExitCode != 0 {
			t.Errorf("%+v: %d bytes, %t, exit code %d", tt, len(res.Stdout), res.Truncated, res.ExitCode)
		}
	}
}

// gone waits until a process does not run any more.
func gone(t *testing.T, pidfile string) {
	t.Helper()
	data, err := os.ReadFile(pidfile)
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	must(t, err)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is alive: %v", pid, err)
	}
}

// TestExecEnds holds that on a time-out and on the end of the context the whole tree ends,
// what has left its session, too, and that the output until then is there.
func TestExecEnds(t *testing.T) {
	t.Parallel()
	const script = "echo begun; setsid sh -c 'echo $$ >far.tmp; mv far.tmp far; trap \"\" HUP INT; sleep 1000' & while ! [ -e far ]; do sleep 0.01; done; touch ready; sleep 1000"
	dir := open(t)
	r := workspace.NewRunner(dir)
	res, err := r.Exec(context.Background(), "sh", []string{"-c", script}, workspace.Options{Timeout: 700 * time.Millisecond, Env: workspace.Env{Allow: []string{"PATH"}}})
	if !errors.Is(err, context.DeadlineExceeded) || res.Stdout != "begun\n" || res.ExitCode != 124 {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir.Root(), "ready")); err == nil { // a machine that is too busy proves nothing
		gone(t, filepath.Join(dir.Root(), "far"))
	}
	must(t, dir.RemoveAll(context.Background(), "ready"))
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir.Root(), "ready")); err == nil {
				cancel(why)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	res, err = r.Exec(ctx, "sh", []string{"-c", script}, workspace.Options{Env: workspace.Env{Allow: []string{"PATH"}}})
	if !errors.Is(err, why) || res.Stdout != "begun\n" {
		t.Errorf("%+v %v", res, err)
	}
	gone(t, filepath.Join(dir.Root(), "far"))
}

// TestExecLimits holds that a limit is held or refused, and never forgotten.
func TestExecLimits(t *testing.T) {
	t.Parallel()
	r := workspace.NewRunner(open(t))
	for name, tt := range map[string]struct {
		opt    workspace.Options
		script string
	}{
		"memory":   {workspace.Options{Memory: 64 << 20}, "head -c 400000000 /dev/zero | tail -c 399999999 | wc -c"},
		"cpu_time": {workspace.Options{CPU: 300 * time.Millisecond}, "while :; do :; done"},
		"pids":     {workspace.Options{Pids: 8}, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; wait; exit 9"},
	} {
		res, err := r.Exec(context.Background(), "sh", []string{"-c", tt.script}, tt.opt)
		if !errors.Is(err, workspace.ErrNotAvailable) && (err != nil || res.Limit != name || res.ExitCode == 0) {
			t.Errorf("%s: %+v %v", name, res, err)
		}
	}
	res, err := r.Exec(context.Background(), "sh", []string{"-c", "cat /proc/net/dev"}, workspace.Options{Net: workspace.NetNone})
	if devices := strings.Count(res.Stdout, ":"); !errors.Is(err, workspace.ErrNotAvailable) && (err != nil || devices != 1 || !strings.Contains(res.Stdout, "lo:")) {
		t.Errorf("%+v %v", res, err)
	}
	if err != nil && res.Stdout != "" {
		t.Error("refused, and run all the same")
	}
}

// recorder is a Runner that remembers what it was asked for.
type recorder struct {
	cmd []string
	opt workspace.Options
}

func (r *recorder) Exec(_ context.Context, cmd string, _ []string, opt workspace.Options) (workspace.Result, error) {
	r.cmd, r.opt = append(r.cmd, cmd), opt
	return workspace.Result{Stdout: "ok"}, nil
}

func TestAllowCommands(t *testing.T) {
	t.Parallel()
	var told []workspace.Violation
	log := func(_ context.Context, v workspace.Violation) { told = append(told, v) }
	inner, ctx := &recorder{}, context.Background()
	names := []string{"ls", "cat"}
	r := workspace.AllowCommands(inner, names, log)
	names[0] = "rm"
	for _, cmd := range []string{"rm", "/bin/ls", "ls ", "", "LS", "./ls"} {
		_, err := r.Exec(ctx, cmd, nil, workspace.Options{})
		is(t, err, workspace.ErrAccessDenied)
	}
	if res, err := r.Exec(ctx, "ls", nil, workspace.Options{}); err != nil || res.Stdout != "ok" {
		t.Error(res, err)
	}
	for _, none := range [][]string{nil, {}} {
		is(t, second(workspace.AllowCommands(inner, none, nil).Exec(ctx, "ls", nil, workspace.Options{})), workspace.ErrAccessDenied)
	}
	if !slices.Equal(inner.cmd, []string{"ls"}) || len(told) != 6 || told[1].Path != "/bin/ls" || told[1].Operation != "exec" || told[1].Rule == "" || told[1].Time.IsZero() {
		t.Errorf("%q %+v", inner.cmd, told)
	}
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	inject := map[string]string{"ID": "default", "REGION": "eu"}
	defaults := workspace.Options{
		Dir: "d", Stdin: []byte("default"), Timeout: 5 * time.Second, Net: workspace.NetNone, Memory: 100, CPU: time.Second, Pids: 10, MaxOutput: 1000,
		Env: workspace.Env{Allow: []string{"PATH"}, Inject: inject},
	}
	inner := &recorder{}
	r := workspace.WithDefaults(inner, defaults)
	inject["ID"] = "changed behind its back"
	ask := func(opt workspace.Options) workspace.Options {
		t.Helper()
		_, err := r.Exec(context.Background(), "x", nil, opt)
		must(t, err)
		return inner.opt
	}
	got := ask(workspace.Options{})
	if got.Dir != "d" || string(got.Stdin) != "default" || got.Timeout != 5*time.Second || got.Net != workspace.NetNone || got.Memory != 100 || got.CPU != time.Second ||
		got.Pids != 10 || got.MaxOutput != 1000 || !slices.Equal(got.Env.Allow, []string{"PATH"}) || !maps.Equal(got.Env.Inject, map[string]string{"ID": "default", "REGION": "eu"}) {
		t.Errorf("%+v", got)
	}
	got = ask(workspace.Options{Dir: "e", Stdin: []byte{}, Timeout: time.Hour, Memory: 1 << 40, CPU: time.Hour, Pids: 99, MaxOutput: 1 << 40,
		Env: workspace.Env{Allow: []string{"PATH", "SECRET_TOKEN", "*"}, Inject: map[string]string{"ID": "mine", "RUN": "1"}}})
	if got.Dir != "e" || len(got.Stdin) != 0 || got.Timeout != 5*time.Second || got.Net != workspace.NetNone || got.Memory != 100 || got.CPU != time.Second ||
		got.Pids != 10 || got.MaxOutput != 1000 || !slices.Equal(got.Env.Allow, []string{"PATH"}) || !maps.Equal(got.Env.Inject, map[string]string{"ID": "mine", "REGION": "eu", "RUN": "1"}) {
		t.Errorf("%+v", got)
	}
	got = ask(workspace.Options{Timeout: time.Second, Memory: 50, Pids: -1})
	if got.Timeout != time.Second || got.Memory != 50 || got.Pids != -1 || got.Env.Inject["RUN"] != "" {
		t.Errorf("%+v", got)
	}
	r = workspace.WithDefaults(inner, workspace.Options{})
	if got = ask(workspace.Options{Net: workspace.NetNone, Env: workspace.Env{Allow: []string{"*"}}}); got.Net != workspace.NetNone || got.Env.Allow != nil || got.Env.Inject != nil {
		t.Errorf("%+v", got)
	}
	gated := workspace.WithDefaults(workspace.AllowCommands(inner, []string{"echo"}, nil), defaults)
	is(t, second(gated.Exec(context.Background(), "rm", nil, workspace.Options{})), workspace.ErrAccessDenied)
}
