package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-2d964004/superqode/cmd/internal/cli"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/overlay"
	"github.com/seed-2d964004/superqode/internal/runner"
)

// TestMain installs this test binary as "superqode" for the scripts, with a shim
// that is built for them.
func TestMain(m *testing.M) {
	testscript.Main(withShim{m}, map[string]func(){"superqode": superqode, "gogit": goGit, "scribble": scribble, "monitored": monitored})
}

type withShim struct{ m *testing.M }

func (w withShim) Run() int {
	gittest.LeaveSession()
	return gittest.WithShim(func(shim string) int {
		scriptShim = shim
		return w.m.Run()
	})
}

// scriptShim is the helper binary of the scripts' sessions.
var scriptShim string

// superqode is main.go again.
func superqode() {
	cli.LimitMemory(os.Getenv)
	dir, _ := os.Getwd()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(context.Background(), cli.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Dir: dir, Signals: signals, Version: "v0.0.0-test", Shim: os.Getenv("SUPERQODE_TEST_SHIM"),
	}, os.Args[1:]...))
}

// scribble appends lines to its first argument, many in every moment, until its second exists.
func scribble() {
	f, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_WRONLY, 0)
	for err == nil {
		if _, err = os.Lstat(os.Args[2]); err == nil {
			return
		}
		_, err = f.WriteString("more\n")
		time.Sleep(50 * time.Microsecond)
	}
	fmt.Fprintln(os.Stderr, "scribble:", err)
	os.Exit(1)
}

// TestScripts runs testdata/script. Each script has its own HOME,
// SUPERQODE_HOME and git configuration. Beside testscript's own commands there
// are:
//
//	exits CODE PROGRAM [ARG…]   runs PROGRAM, which must end with CODE
//	peak MB PROGRAM [ARG…]      runs PROGRAM, which must end with 0 and never hold that much memory
//	repo DIR                    makes a repository with two commits in DIR
//	remember NAME DIR           fingerprints DIR, git dir included, without .superqode
//	same NAME DIR               DIR must have the fingerprint NAME
//	field VAR N                 sets VAR to the N-th field of stdout's first line
//	json PATH VALUE             stdout is JSON and PATH ("a.0.b", "a.len" is a length) has VALUE
//	until FILE                  waits until FILE exists
//	interrupt NAME SIGNAL       sends INT, TERM, HUP or KILL to the background program NAME (a file with its pid)
func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts()
	p.Dir = filepath.Join("testdata", "script")
	testscript.Run(t, p)
}

// TestOverlayScripts runs scripts once more, with sessions that name no mode in overlay mode.
func TestOverlayScripts(t *testing.T) {
	t.Parallel()
	if err := overlay.Check(t.Context(), scriptShim, os.TempDir()); err != nil {
		t.Skip("there is no overlay mode here:", err)
	}
	p := scripts()
	for _, name := range overlayScripts {
		p.Files = append(p.Files, filepath.Join("testdata", "script", name+".txtar"))
	}
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("SUPERQODE_WORKSPACE_DEFAULT_MODE", "overlay")
		return setupScript(env)
	}
	testscript.Run(t, p)
}

func scripts() testscript.Params {
	return testscript.Params{
		Setup: setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "peak": cmdPeak, "repo": cmdRepo, "remember": cmdRemember, "same": cmdSame,
			"field": cmdField, "json": cmdJSON, "until": cmdUntil, "interrupt": cmdInterrupt,
		},
		Condition: scriptCondition,
	}
}

// overlayScripts are those about what programs do to a session and a session to the origin, but
// for those that ask for the path of a workspace that is a folder of its own, and those whose
// programs read what a script put beside the origin: a session has a /tmp of its own.
var overlayScripts = []string{
	"artifacts-add", "artifacts-changed", "bad-apply", "bad-changing", "bad-diskfull", "bad-endless", "bad-git",
	"bad-modes", "bad-names", "bad-origin", "bad-results", "bad-session", "bad-setup", "bad-sparse",
	"bad-special", "bad-turned", "claim-enforced", "claim-session", "exec-code", "exec-detach",
	"exec-limits", "git-processes", "guard-commits", "guard-matrix", "large-files",
	"origin-files", "redact", "run-agents", "run-apply", "run-exit", "run-killed", "run-signals", "run-unruly",
	"track", "track-hooks", "trust", "verify-fix", "watch-session", "workspace-apply", "workspace-apply-conflict",
	"workspace-blame", "workspace-cleanup", "workspace-fs", "workspace-list", "workspace-restore",
	"workspace-revert", "workspace-shell",
}

// userScripts are about what the kernel, or a file's mode, keeps from a program.
var userScripts = []string{
	"bad-apply", "bad-modes", "bad-unreadable", "exec-detach", "exec-limits", "guard-install", "guard-kernel", "guard-places",
	"origin-files", "overlay", "run-git-snapshot", "run-git-snapshot-killed", "run-git-snapshot-signals", "run-git-snapshot-user", "run-unruly",
}

// TestUserScripts runs some scripts and tests once more where root runs them, as a user who
// is bound by modes, and whose mounts the helper makes. It is by itself: the scripts
// fill the machine.
func TestUserScripts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("TestScripts runs as a user")
	}
	dir, err := os.MkdirTemp("", "superqode-user-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{self: "cli.test", scriptShim: "superqode-shim"}
	for _, name := range userScripts {
		file := filepath.Join("testdata", "script", name+".txtar")
		files[file] = file
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "testdata", "script"), 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for from, to := range files {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const user = 1000
	if err := errors.Join(os.Chown(dir, user, user), os.Chown(filepath.Join(dir, "tmp"), user, user)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "cli.test"), "-test.run=^Test(Scripts|AKilledProgramStopsNoJob)$")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=" + os.Getenv("PATH"), "SUPERQODE_TEST_SHIM=" + filepath.Join(dir, "superqode-shim")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		t.Errorf("as a user:\n%s", out)
	} else if err != nil {
		t.Skipf("the temporary folder is not for other users: %v", err)
	}
}

const gitConfig = "[user]\n\tname = Test Author\n\temail = author@example.com\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"

func setupScript(env *testscript.Env) error {
	work, err := filepath.EvalSymlinks(env.WorkDir)
	if err != nil {
		return err
	}
	home := filepath.Join(work, "home")
	if err := os.MkdirAll(filepath.Join(home, ".config"), 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	env.Setenv("SUPERQODE_HOME", filepath.Join(work, "sq"))
	env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("LC_ALL", "C")
	tmp, err := os.MkdirTemp("/tmp", "sq") // short, so that the sessions' own lie in it
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(tmp) })
	env.Setenv("TMPDIR", tmp)
	env.Setenv("TERM", "dumb")
	examples, err := filepath.Abs("../../../docs/examples")
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLES", examples)
	env.Setenv("SUPERQODE_SESSION_ID", "")
	env.Setenv("SUPERQODE_SOCKET", "")
	env.Setenv("SUPERQODE_TEST_SHIM", scriptShim)
	env.Values[printsKey{}] = map[string]gittest.Print{}
	return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitConfig), 0o600)
}

type printsKey struct{}

func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Getuid() == 0, nil
	case "shm":
		var a, b syscall.Stat_t
		return syscall.Stat("/dev/shm", &a) == nil && syscall.Stat(os.TempDir(), &b) == nil && a.Dev != b.Dev && syscall.Access("/dev/shm", 2) == nil, nil
	case "pids":
		_, err := runner.CheckLimits(runner.Limits{Pids: 1})
		return err == nil, nil
	case "overlay":
		return overlay.Check(context.Background(), scriptShim, os.TempDir()) == nil, nil
	case "python3":
		return exec.Command("python3", "-c", "import socket").Run() == nil, nil
	case "landlock", "landlock-tcp", "landlock-inplace":
		apart, inPlace, err := kernel.Probe(context.Background(), os.TempDir(), "")
		return apart.Active() && (cond == "landlock" || cond == "landlock-tcp" && apart.ABI >= 4 || cond == "landlock-inplace" && inPlace.Active()), err
	case "mounts":
		apart, _, err := kernel.Probe(context.Background(), os.TempDir(), scriptShim)
		return apart.By == kernel.Mounts, err
	case "mount":
		return exec.Command("unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt").Run() == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdPeak looks at what the program and all that it waited for held at most.
func cmdPeak(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: peak MB PROGRAM [ARG…]")
	}
	limit, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	if dir := ts.Getenv("PATH"); err != nil || args[1] == "superqode" { // testscript's own programs come first in its PATH
		path, err = filepath.Join(filepath.SplitList(dir)[0], args[1]), nil
	}
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	for _, key := range []string{"HOME", "XDG_CONFIG_HOME", "SUPERQODE_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "LC_ALL", "TERM"} {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "linux" {
		used *= 1024 // elsewhere it is in bytes
	}
	if used > limit<<20 {
		ts.Fatalf("it held %d MB, more than %d", used>>20, limit)
	}
}

func cmdRepo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	for name, text := range map[string]string{"README.md": "hello\n", "src/a.go": "package a\n\nfunc A() {}\n", "src/b.go": "package a\n", ".gitignore": "*.log\n"} {
		path := filepath.Join(dir, name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		ts.Check(os.WriteFile(path, []byte(text), 0o644))
	}
	run := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "GIT_CONFIG_GLOBAL="+ts.Getenv("GIT_CONFIG_GLOBAL"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	run("add", "README.md", ".gitignore")
	run("commit", "-q", "-m", "first")
	run("tag", "v1")
	run("add", "-A")
	run("commit", "-q", "-m", "second")
}

// tb lets a script use the fixtures' fingerprints.
type tb struct{ *testscript.TestScript }

func (tb) Helper()         {}
func (tb) TempDir() string { panic("not used") }

func cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remember NAME DIR")
	}
	ts.Value(printsKey{}).(map[string]gittest.Print)[args[0]] = gittest.Fingerprint(tb{ts}, ts.MkAbs(args[1]), ".superqode")
}

func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same NAME DIR")
	}
	before, ok := ts.Value(printsKey{}).(map[string]gittest.Print)[args[0]]
	if !ok {
		ts.Fatalf("nothing was remembered as %s", args[0])
	}
	gittest.Same(tb{ts}, before, gittest.Fingerprint(tb{ts}, ts.MkAbs(args[1]), ".superqode"))
}

func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field VAR N")
	}
	line, _, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	fields := strings.Fields(line)
	if n < 1 || n > len(fields) {
		ts.Fatalf("stdout has no field %d: %q", n, line)
	}
	ts.Setenv(args[0], fields[n-1])
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] json PATH VALUE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("stdout is no JSON: %v", err)
	}
	for _, key := range strings.Split(args[0], ".") {
		v = step(ts, v, key)
	}
	got := fmt.Sprint(v)
	if v == nil {
		got = "null"
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %q", args[0], got)
	}
}

func step(ts *testscript.TestScript, v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		next, ok := v[key]
		if !ok {
			ts.Fatalf("no key %q", key)
		}
		return next
	case []any:
		if key == "len" {
			return len(v)
		}
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return v[i]
		}
	}
	ts.Fatalf("%q leads nowhere", key)
	return nil
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: until FILE")
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && len(bytes.TrimSpace(data)) > 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not come", args[0])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: interrupt PIDFILE SIGNAL")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP}[args[1]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[1])
	}
	ts.Check(syscall.Kill(pid, sig))
}
