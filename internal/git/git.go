// Package git runs the user's git and reads its plumbing formats.
//
// Every command is an argument list, never a shell line. Calls are made with
// LC_ALL=C, without the GIT_* variables that would point git at another
// repository, without hooks and without a file system monitor, so that asking a
// question never runs a program that the repository configures. Locks that are
// only an optimisation are not taken (GIT_OPTIONAL_LOCKS=0).
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
)

// MinVersion is the oldest git that superqode is written for.
var MinVersion = Version{2, 28, 0}

// Version is a git version's first three numbers.
type Version [3]int

// String returns "2.39.5".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Before reports whether v is older than o.
func (v Version) Before(o Version) bool { return slices.Compare(v[:], o[:]) < 0 }

var versionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^git version (\d+)\.(\d+)(?:\.(\d+))?`)
})

// ParseVersion reads the output of "git version", vendors' suffixes included.
func ParseVersion(s string) (Version, error) {
	m := versionPattern().FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("cannot read a git version from %q", s)
	}
	var v Version
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // digits by the pattern, or empty for a missing third number
	}
	return v, nil
}

// Git is one git binary and the environment in which it is run.
type Git struct {
	Bin     string
	Version Version
	// Trace is told of each call that has ended, and how; may be nil.
	Trace  func(args []string, took time.Duration, err error)
	env    []string
	config []string
}

// Find looks git up in env's PATH and checks its version once. env is the
// caller's whole environment (KEY=VALUE); what could redirect git is taken out. A
// program that lies in a folder of avoid, origins and superqode's own state, is not
// taken, not by git either: a session's program could have left it there.
func Find(ctx context.Context, env []string, avoid ...string) (*Git, error) {
	g, err := Locate(env, avoid...)
	if err != nil {
		return nil, err
	}
	return g, g.CheckVersion(ctx)
}

// Locate is Find without the check, for a caller that goes on with Discover, which
// checks the version, or knows that it was checked before.
func Locate(env []string, avoid ...string) (*Git, error) {
	dirs, left := searched(env, avoid)
	bin, err := lookPath("git", dirs)
	if err != nil {
		if bin, lerr := lookPath("git", left); lerr == nil {
			err = fmt.Errorf("%s is not run: it lies where a session's program could have put it, and no other git is in PATH", bin)
		} else {
			err = errors.New("git is not in PATH")
		}
		return nil, superqode.WithHint(err,
			"install git %d.%d or newer, for example: apt-get install git", MinVersion[0], MinVersion[1])
	}
	env = append(slices.Clip(env), "PATH="+strings.Join(dirs, string(filepath.ListSeparator)))
	g := &Git{Bin: bin, env: ownEnv(superqode.Override(nil, env))}
	if !HasLFS(env) {
		for _, e := range WithoutLFS() {
			g.config = append(g.config, "-c", e[0]+"="+e[1])
		}
	}
	return g, nil
}

// HasLFS reports whether git-lfs can be found: in env's PATH, or where distributions
// put git's own programs.
func HasLFS(env []string) bool {
	dirs, _ := searched(env, nil)
	_, err := lookPath("git-lfs", append(dirs, "/usr/lib/git-core", "/usr/libexec/git-core"))
	return err == nil
}

// WithoutLFS is the configuration (key and value) for machines without git-lfs whose
// user's configuration names it: its files stay the pointers that they are. Git ends
// with an error when a filter that is required cannot be run; an empty one is none.
func WithoutLFS() [][2]string {
	return [][2]string{{"filter.lfs.smudge", ""}, {"filter.lfs.clean", ""}, {"filter.lfs.process", ""},
		{"filter.lfs.required", "false"}}
}

// At is the git whose binary is known already; nothing is looked at or started.
// Version stays zero.
func At(bin string, env []string) *Git { return &Git{Bin: bin, env: ownEnv(env)} }

// CheckVersion asks git for its version, sets Version and refuses one that is
// too old.
func (g *Git) CheckVersion(ctx context.Context) error {
	out, err := g.Output(ctx, Cmd{Args: []string{"version"}})
	if err != nil {
		return err
	}
	v, err := ParseVersion(string(out))
	if err != nil {
		return err
	}
	return g.setVersion(v)
}

func (g *Git) setVersion(v Version) error {
	if v.Before(MinVersion) {
		err := fmt.Errorf("%s is git %s, superqode needs %d.%d or newer", g.Bin, v, MinVersion[0], MinVersion[1])
		return superqode.WithHint(err, "install a newer git and put it first in PATH")
	}
	g.Version = v
	return nil
}

// searched are the folders of env's PATH that programs are taken from, and those in
// avoid that are left out. A relative one would find a program that the repository
// brought along.
func searched(env, avoid []string) (dirs, left []string) {
	var roots []os.FileInfo
	for _, a := range avoid {
		if st, err := os.Stat(a); err == nil && a != filepath.Dir(a) { // in the root is every git
			roots = append(roots, st)
		}
	}
	for _, dir := range filepath.SplitList(superqode.Getenv(env, "PATH")) {
		switch {
		case !filepath.IsAbs(dir):
		case leadsInto(dir, roots) || leadsInto(filepath.Join(dir, "git"), roots):
			left = append(left, dir)
		default:
			dirs = append(dirs, dir)
		}
	}
	return dirs, left
}

// leadsInto reports whether path, as it is written or where its links lead, lies in
// one of the folders.
func leadsInto(path string, folders []os.FileInfo) bool {
	if len(folders) == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, p := range []string{path, real} {
		for up := ""; p != up; p, up = filepath.Dir(p), p {
			st, err := os.Stat(p)
			if err == nil && slices.ContainsFunc(folders, func(f os.FileInfo) bool { return os.SameFile(f, st) }) {
				return true
			}
		}
	}
	return false
}

// lookPath finds a program in folders. The shim of an enclosing session (a folder
// that holds the marker file .superqode-shim) is passed over.
func lookPath(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, ".superqode-shim")); err == nil {
			continue
		}
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", exec.ErrNotFound
}

// IsRedirect reports whether an environment variable could point git at another
// repository or add configuration to it.
func IsRedirect(key string) bool {
	switch key {
	case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
		"GIT_NAMESPACE", "GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_INDEX_VERSION",
		"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
		"GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS", "GIT_IMPLICIT_WORK_TREE", "GIT_LITERAL_PATHSPECS",
		"GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_QUARANTINE_PATH", "GIT_EXEC_PATH",
		"GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_ATTR_SOURCE", "GIT_DEFAULT_HASH",
		"GIT_DEFAULT_REF_FORMAT", "GIT_REFERENCE_BACKEND", "GIT_SUPER_PREFIX", "GIT_INTERNAL_SUPER_PREFIX",
		"GIT_REFLOG_ACTION", "GIT_REDIRECT_STDIN", "GIT_REDIRECT_STDOUT", "GIT_REDIRECT_STDERR",
		"GIT_NO_LAZY_FETCH", "GIT_FORCE_UNTRACKED_CACHE":
		return true
	}
	return strings.HasPrefix(key, "GIT_CONFIG_") &&
		key != "GIT_CONFIG_GLOBAL" && key != "GIT_CONFIG_SYSTEM" && key != "GIT_CONFIG_NOSYSTEM" ||
		strings.HasPrefix(key, "GIT_PUSH_OPTION_") || key == "GIT_CONFIG"
}

// CleanEnv returns env without the variables for which IsRedirect holds.
func CleanEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return IsRedirect(k)
	})
}

// ownEnv is the environment of our own calls. With GIT_FLUSH=0 git would keep the
// answers that we wait for.
func ownEnv(env []string) []string {
	env = slices.DeleteFunc(CleanEnv(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(k, "GIT_TRACE") || k == "GIT_FLUSH" || k == "LANGUAGE" || k == "LC_ALL" ||
			k == "GIT_OPTIONAL_LOCKS" || k == "GIT_PAGER" || k == "GIT_TERMINAL_PROMPT"
	})
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat")
}

// Cmd is one call of git. Dir is the folder to run in ("" keeps the caller's),
// Env is added to git's environment (for example GIT_DIR=…).
type Cmd struct {
	Dir    string
	Args   []string
	Env    []string
	Stdin  io.Reader
	Stdout io.Writer
	events *os.File // git's file descriptor 3; nil for none
}

// ExitError tells which git command failed and what it printed.
type ExitError struct {
	Args   []string
	Code   int
	Stderr string
}

// Error returns git's own last words.
func (e *ExitError) Error() string {
	msg := strings.TrimSpace(e.Stderr)
	msg = strings.TrimPrefix(msg, "fatal: ")
	if msg == "" {
		msg = fmt.Sprintf("exit status %d", e.Code)
	}
	return fmt.Sprintf("git %s: %s", e.subcommand(), msg)
}

func (e *ExitError) subcommand() string {
	for i := 0; i < len(e.Args); i++ {
		switch a := e.Args[i]; {
		case a == "-c" || a == "-C":
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// outputDelay is how long the output of a git that has ended is waited for: longer
// than a busy machine takes to hand it over, or a call that succeeded would fail, and
// not for ever, since a program that git left running may hold the pipe.
const outputDelay = 5 * time.Second

// Command prepares a call that the caller starts. No file system monitor is asked: an
// empty value is none in every version, and "false" a program before git 2.36. No
// background maintenance is begun: it would outlive the call. When ctx ends git is
// interrupted, and killed two seconds later.
func (g *Git) Command(ctx context.Context, c Cmd) *exec.Cmd {
	args := append([]string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "-c", "advice.detachedHead=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false",
	}, g.config...)
	args = append(args, c.Args...)
	cmd := exec.CommandContext(ctx, g.Bin, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout = c.Dir, c.Stdin, c.Stdout
	cmd.Env = append(slices.Clip(g.env), c.Env...)
	if c.events != nil {
		cmd.ExtraFiles = []*os.File{c.events}
	}
	cmd.Cancel = func() error {
		time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Kill() }) // fails when git has ended, which is well
		return cmd.Process.Signal(syscall.SIGINT)
	}
	cmd.WaitDelay = outputDelay
	return cmd
}

// Run runs git and returns an *ExitError when it fails.
func (g *Git) Run(ctx context.Context, c Cmd) error {
	cmd := g.Command(ctx, c)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	err := cmd.Run()
	if g.Trace != nil {
		g.Trace(c.Args, time.Since(began), err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &ExitError{Args: c.Args, Code: exit.ExitCode(), Stderr: stderr.String()}
	}
	return err
}

// Output runs git and returns what it printed on stdout.
func (g *Git) Output(ctx context.Context, c Cmd) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := g.Run(ctx, c)
	return out.Bytes(), err
}

// QuoteConfig writes a value in git's configuration syntax.
func QuoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
