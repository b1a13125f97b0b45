package superqode_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// installer is a small source tree with the real install.sh, a home folder and
// the environment to run it in.
type installer struct {
	*gittest.Fixture
	t   *testing.T
	env []string
}

// newInstaller makes a tree without .git, in a folder with a space in its name,
// whose superqode builds in no time.
func newInstaller(t *testing.T) *installer {
	t.Helper()
	f := gittest.In(t, filepath.Join(t.TempDir(), "source tree"))
	script, err := os.ReadFile("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	f.WriteMode("install.sh", string(script), 0o755)
	f.Write("go.mod", "module "+module+"\n\ngo 1.26.0\n")
	f.Write("cmd/superqode/main.go", "package main\n\nimport \"os\"\n\nvar version string\n\nfunc main() { os.Stdout.WriteString(\"superqode \" + version + \"\\n\") }\n")
	f.Write("cmd/internal/cli/cli.go", "package cli\n")
	return &installer{f, t, f.Env(goCaches(t)...)}
}

// goCaches hands the Go tool's caches to a process with another home.
func goCaches(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, mod, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{"GOCACHE=" + cache, "GOMODCACHE=" + mod, "SHELL=/bin/bash"}
}

func (i *installer) run(dir string, env []string, args ...string) (out string, code int) {
	i.t.Helper()
	cmd := exec.Command("sh", append([]string{i.Path("install.sh")}, args...)...)
	var buf bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &buf, &buf
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		i.t.Fatal(err)
	}
	return buf.String(), cmd.ProcessState.ExitCode()
}

func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(out, l) {
			t.Errorf("output lacks %q:\n%s", l, out)
		}
	}
}

// tools makes a PATH with the real tools except those named, which are replaced
// by scripts, or left out for an empty one.
func (i *installer) tools(replaced map[string]string) string {
	i.t.Helper()
	dir := i.t.TempDir()
	for _, name := range []string{"sh", "sed", "uname", "dirname", "basename", "mkdir", "mv", "rm", "cp", "chmod", "grep", "cat", "git", "go"} {
		if _, ok := replaced[name]; ok {
			continue
		}
		p, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(p, filepath.Join(dir, name))
		}
		if err != nil {
			i.t.Fatal(err)
		}
	}
	for name, script := range replaced {
		if script != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				i.t.Fatal(err)
			}
		}
	}
	return "PATH=" + dir
}

func TestInstall(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	bin := filepath.Join(i.Home, ".local", "bin")
	target := filepath.Join(bin, "superqode")

	out, code := i.run("/", i.env)
	if code != 0 {
		t.Fatalf("code %d:\n%s", code, out)
	}
	wantLines(t, out, "installed "+target, bin+" is not in PATH", "~/.bashrc", "    export PATH='"+bin+"':\"$PATH\"")
	if got, err := exec.Command(target).Output(); err != nil || string(got) != "superqode v0.0.0-source\n" {
		t.Errorf("the binary prints %q, %v", got, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	out, code = i.run(i.Dir, append(i.env, "PATH="+bin+":"+os.Getenv("PATH")))
	after, err := os.Stat(target)
	if code != 0 || err != nil || os.SameFile(before, after) {
		t.Errorf("code %d, %v, replaced in place %v:\n%s", code, err, os.SameFile(before, after), out)
	}
	if strings.Contains(out, "PATH") || strings.Contains(out, "kept") {
		t.Errorf("said too much:\n%s", out)
	}

	out, code = i.run("/", i.env, "--uninstall")
	wantLines(t, out, "removed "+target)
	if entries, err := os.ReadDir(bin); code != 0 || err != nil || len(entries) != 0 {
		t.Errorf("code %d, left %v, %v", code, entries, err)
	}
	out, code = i.run("/", i.env, "--uninstall")
	if wantLines(t, out, "nothing to remove in "+bin); code != 0 {
		t.Errorf("code %d", code)
	}
}

// TestInstallStamp holds which version a checkout gets, and that a tree inside
// somebody else's repository does not get that one's.
func TestInstallStamp(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	check := func(when, pattern string) {
		t.Helper()
		out, code := i.run("/", i.env, "--stamp")
		if code != 0 || !regexp.MustCompile("^"+pattern+"\n$").MatchString(out) {
			t.Errorf("%s: code %d, stamp %q, want %s", when, code, out, pattern)
		}
	}
	check("no checkout", `v0\.0\.0-source`)
	i.Git("init", "-q")
	check("no commit", `v0\.0\.0-source`)
	i.Commit("first")
	check("commit", `v0\.0\.0-20240102030405-[0-9a-f]{12}`)
	i.Git("tag", "-a", "-m", "x", "v1.2.0")
	i.Git("tag", "other")
	check("tag", `v1\.2\.0\+20240102030405`)
	i.Write("new.go", "package superqode\n")
	i.Commit("second")
	i.Write("new.go", "package changed\n")
	check("dirty", `v1\.2\.0-1-g[0-9a-f]{12}-dirty\+20240102030405`)
	inner := i.Path("vendored/superqode")
	for _, name := range []string{"install.sh", "go.mod"} {
		i.Write("vendored/superqode/"+name, i.Read(name))
	}
	cmd := exec.Command("sh", filepath.Join(inner, "install.sh"), "--stamp")
	cmd.Env = i.env
	if out, err := cmd.Output(); err != nil || string(out) != "v0.0.0-source\n" {
		t.Errorf("inside another repository: %q, %v", out, err)
	}
}

// TestInstallKeepsOthers holds that a superqode of other making is kept when it
// is replaced and left when ours is taken away.
func TestInstallKeepsOthers(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	prefix := filepath.Join(i.Home, "it's a prefix")
	bin := filepath.Join(prefix, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(bin, "superqode")
	if err := os.WriteFile(target, []byte("somebody else's"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(i.env, "PREFIX="+prefix)
	if out, code := i.run("/", env, "--uninstall"); code != 1 || !strings.Contains(out, "was not installed by this script") {
		t.Errorf("uninstall: code %d:\n%s", code, out)
	}
	out, code := i.run("/", env)
	if code != 0 {
		t.Fatalf("code %d:\n%s", code, out)
	}
	wantLines(t, out, "kept the superqode that was there as "+target+".saved-1", `export PATH='`+strings.ReplaceAll(bin, "'", `'\''`)+`':"$PATH"`)
	if got, err := os.ReadFile(target + ".saved-1"); err != nil || string(got) != "somebody else's" {
		t.Errorf("saved %q, %v", got, err)
	}
	if entries, err := os.ReadDir(bin); err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		tools map[string]string
		env   []string
		args  []string
		want  []string
	}{
		{"no go", map[string]string{"go": ""}, nil, nil, []string{"go is not in PATH; superqode needs Go 1.26.0 or newer", "hint: install Go from https://go.dev/dl/"}},
		{"old go", map[string]string{"go": `case $1 in env) exit 1;; *) echo go version go1.24.7 linux/amd64;; esac`}, nil, nil, []string{"is Go 1.24.7, superqode needs Go 1.26.0 or newer", "hint: install a newer Go"}},
		{"very old go", map[string]string{"go": `case $1 in env) echo go1.9;; esac`}, nil, nil, []string{"is Go 1.9, superqode needs Go 1.26.0"}},
		{"strange go", map[string]string{"go": `echo hello`}, nil, nil, []string{"cannot read a version from"}},
		{"no git", map[string]string{"git": ""}, nil, nil, []string{"git is not in PATH; superqode needs git 2.28 or newer", "hint: install it"}},
		{"old git", map[string]string{"git": `echo git version 2.20.1`}, nil, nil, []string{"is git 2.20.1, superqode needs git 2.28 or newer"}},
		{"strange git", map[string]string{"git": `echo hello`}, nil, nil, []string{"cannot read a version from"}},
		{"windows", map[string]string{"uname": `echo MINGW64_NT-10.0`}, nil, nil, []string{"superqode does not run on Windows", "WSL 2"}},
		{"no home", nil, []string{"HOME="}, nil, []string{"neither PREFIX nor HOME is set", "hint: PREFIX=/usr/local"}},
		{"no home to clean", nil, []string{"HOME="}, []string{"--uninstall"}, []string{"neither PREFIX nor HOME is set"}},
		{"prefix is a file", nil, []string{"PREFIX=/dev/null"}, nil, []string{"cannot make /dev/null/bin", "hint: choose another place"}},
		{"build fails", map[string]string{"go": `case $1 in env) echo go1.26.0;; *) echo no luck >&2; exit 1;; esac`}, nil, nil, []string{"no luck", "building superqode failed"}},
		{"unknown argument", nil, nil, []string{"--prefix=x"}, []string{"unknown argument --prefix=x", "--help"}},
		{"too many", nil, nil, []string{"--uninstall", "now"}, []string{"too many arguments"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t)
			i.t = t
			before := i.Fingerprint()
			out, code := i.run(i.Dir, append(append(i.env, i.tools(tt.tools)), tt.env...), tt.args...)
			if code != 1 {
				t.Errorf("code %d", code)
			}
			wantLines(t, out, tt.want...)
			gittest.Same(t, before, i.Fingerprint())
			if entries, err := os.ReadDir(filepath.Join(i.Home, ".local", "bin")); err == nil && len(entries) != 0 {
				t.Errorf("half-made things stay: %v", entries)
			}
		})
	}
}

func TestInstallHelp(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	out, code := i.run("/", append(i.env, i.tools(map[string]string{"go": "", "git": ""}), "HOME="), "--help")
	if code != 0 {
		t.Errorf("code %d", code)
	}
	wantLines(t, out, "usage: sh install.sh", "Go 1.26.0 or newer", "PREFIX")
}

// TestInstallRealTree builds the real superqode once, statically.
func TestInstallRealTree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the whole program")
	}
	f := gittest.Plain(t)
	cmd := exec.Command("sh", "install.sh")
	cmd.Env = f.Env(append(goCaches(t), "PREFIX="+f.Home)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stamp, err := exec.Command("sh", "install.sh", "--stamp").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(filepath.Join(f.Home, "bin", "superqode"), "version")
	run.Env = f.Env()
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("superqode "+strings.TrimSpace(string(stamp)), strings.Join(strings.Fields(string(out))[:2], " ")); d != "" {
		t.Error(d)
	}
}
