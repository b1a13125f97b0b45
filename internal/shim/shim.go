package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// Exit codes of the shim, when git does not run.
const (
	exitDenied   = 3
	exitNotFound = 127
)

// Call is one call of the shim: the program that stands in PATH, and in git's
// own folder of commands, under the name git.
type Call struct {
	Exe  string   // the shim's own path, see guard.StateOf
	Argv []string // argv[0] may be git, a path to it, or git-NAME
	Env  []string
	Dir  string // the working directory; "" if it is not known
	Err  io.Writer
}

// Git decides on a git command. An allowed one replaces this process: git sees
// the same arguments, streams, directory and process number. Shim returns only
// when git did not start, with the exit code: 3 for a denial.
//
// Where the session's state cannot be read, what the default policy denies stays
// denied in every repository and everything else runs.
func Git(ctx context.Context, c Call) int {
	state, err := guard.StateOf(c.Exe)
	if err != nil {
		return c.broken(ctx, err)
	}
	st := session{state}
	bin, ok := realGit(string(st.Git.Bin), c)
	if !ok {
		return c.noGit()
	}
	if st.Off {
		return c.exec(bin, c.Env)
	}
	st.Git.Bin = superqode.HostPath(bin)
	c.Env = st.withoutPrivate(c.Env)
	find := func() guard.Resolver { r, _ := st.Resolver(c.Env); return r }
	in := guard.Context{Dir: c.Dir, Env: c.Env, Find: find, Guarded: st.GuardedName(),
		PushElsewhere: len(st.HookEnv) > 0}
	for _, p := range st.UserConfig {
		in.UserConfig = append(in.UserConfig, string(p))
	}
	policy, err := st.Policy()
	if err == nil {
		in.Policy, in.Own = policy, st.Own // a list that cannot be read leaves the default, which denies more
	}
	v := shelltext.CheckArgs(ctx, c.command(), in)
	if v.Denied() && !c.gitsOwn(ctx, st, in.Policy, v.Operation) {
		a := guard.Attempt{Operation: v.Operation, Command: c.command(), Layer: guard.LayerShim,
			Dir: superqode.HostPath(c.Dir), Agent: st.Agent, Process: os.Getpid()}
		if !st.Consume(c.Env, a) {
			_, _ = io.WriteString(c.Err, v.Block(st.SessionState)) // perhaps nobody listens
			if err := st.Report(c.Env, a); err != nil {
				fmt.Fprintf(c.Err, "superqode: this attempt could not be written down: %v\n", err)
			}
			return exitDenied
		}
	}
	return c.exec(bin, st.gitEnv(c, v))
}

// command is the argument list with git as its first word, and the command's name
// as the second where the program was called as git-NAME.
func (c Call) command() []string {
	if len(c.Argv) == 0 {
		return []string{"git"}
	}
	if name, ok := strings.CutPrefix(filepath.Base(c.Argv[0]), "git-"); ok && name != "" {
		return append([]string{"git", name}, c.Argv[1:]...)
	}
	return append([]string{"git"}, c.Argv[1:]...)
}

// broken is a shim without a session's state: it was moved, or the state was
// deleted.
func (c Call) broken(ctx context.Context, why error) int {
	bin, ok := realGit("", c)
	if !ok {
		return c.noGit()
	}
	v := shelltext.CheckArgs(ctx, c.command(), guard.Context{Dir: c.Dir, Env: c.Env,
		Resolver: guard.NewGitResolver(bin, c.Env)})
	if v.Denied() {
		_, _ = io.WriteString(c.Err, v.Block(nil))
		fmt.Fprintf(c.Err, "superqode: the session's state is not there, so the strictest rules hold: %v\n", why)
		return exitDenied
	}
	return c.exec(bin, c.Env)
}

func (c Call) noGit() int {
	fmt.Fprintln(c.Err, "superqode: the real git is not where it was when the session began, and not in PATH")
	return exitNotFound
}

// gitsOwn reports whether a denied command is a step of another git command that
// may run: git starts itself, and finds the shim. Which command that is tells the
// parent process, by its file and not by what it calls itself.
func (c Call) gitsOwn(ctx context.Context, st session, policy guard.Policy, op guard.Operation) bool {
	parent, ok := proctable.Read(os.Getppid())
	if !ok {
		return false
	}
	if a := parent.Args; len(a) > 2 && a[1] == "-c" && strings.HasPrefix(a[2], "git-receive-pack '") {
		// git reaches the other end through a shell, also on this machine.
		if parent, ok = proctable.Read(parent.Parent); !ok {
			return false
		}
	}
	argv := st.commandOf(parent)
	if argv == nil {
		return false
	}
	if shelltext.CheckArgs(ctx, argv, guard.Context{Dir: c.Dir, Env: c.Env, Policy: policy}).Denied() {
		return false // it went past the shim; what it starts is no better
	}
	if shelltext.CheckArgs(ctx, argv, guard.Context{Dir: c.Dir, Env: c.Env}).Denied() {
		// Only the configuration allows it: then what git makes it of is allowed, too.
		return guard.IsStep(guard.CommandName(argv), guard.CommandName(c.command())) && !op.Leaves() &&
			!strings.HasPrefix(string(op), "config.write") && op != "gitdir.write"
	}
	return c.stepOf(argv, st, op)
}

// commandOf returns the command of a git process, or of a script that git
// brought along; nil for any other process.
func (st session) commandOf(p proctable.Process) []string {
	args, bin := p.Args, string(st.Git.Bin)
	switch {
	case len(args) == 0:
		return nil
	case p.Exe == bin, sameProgram(p.Exe, bin):
	case len(args) > 1 && strings.HasPrefix(filepath.Base(args[1]), "git-") &&
		slices.Contains([]string{string(st.Git.ExecPath), filepath.Join(st.Dir(), "exec")}, filepath.Dir(args[1])):
		args = args[1:] // sh /usr/lib/git-core/git-submodule …
	default:
		return nil
	}
	return (Call{Argv: args}).command()
}

func sameProgram(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// stepOf knows the commands that are allowed by default and run a denied one by
// themselves (git 2.28 to 2.55): a new worktree gets its HEAD and its files, a
// submodule that was cloned a moment ago gets its commit.
func (c Call) stepOf(argv []string, st session, op guard.Operation) bool {
	words := slices.DeleteFunc(slices.Clone(argv[1:]), func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) > 0 && words[0] == "push" && len(c.command()) > 1 && c.command()[1] == "receive-pack" {
		return op == "push" // the other end of a dry run, on this machine
	}
	if len(words) < 2 {
		return false
	}
	switch words[0] + " " + words[1] {
	case "worktree add":
		if superqode.Getenv(c.Env, "GIT_DIR") == "" {
			return op == "branch.create" || op == "branch.force"
		}
		return slices.Contains([]guard.Operation{"reset.hard", "update-ref", "symbolic-ref.write"}, op) &&
			st.freshWorktree(guard.FindRepository(c.Dir, c.Env, "", "").GitDir)
	}
	if words[0] != "submodule" && words[0] != "submodule--helper" || op != "checkout.force" {
		return false
	}
	if !slices.Contains([]string{"add", "update", "clone", "update-clone", "run-update-procedure"}, words[1]) {
		return false
	}
	f := guard.FindRepository(c.Dir, c.Env, "", "")
	return f.GitDir != "" && !slices.Contains(st.GitDirs, superqode.HostPath(f.CommonDir))
}

// freshWorktree reports whether a git directory is that of a linked worktree which
// is being made: it is one of the guarded repository's, not the session's own, and
// nothing was checked out there.
func (st session) freshWorktree(gitDir string) bool {
	if filepath.Base(filepath.Dir(gitDir)) != "worktrees" || filepath.Base(gitDir) == st.ID.String() {
		return false
	}
	_, err := os.Lstat(filepath.Join(gitDir, "index"))
	return err != nil
}

// exec replaces this process by the real git.
func (c Call) exec(bin string, env []string) int {
	argv := append([]string{"git"}, c.command()[1:]...)
	err := syscall.Exec(bin, argv, env)
	for tries := 0; errors.Is(err, syscall.EINTR) && tries < 10; tries++ {
		err = syscall.Exec(bin, argv, env)
	}
	fmt.Fprintf(c.Err, "superqode: cannot run %s: %v\n", bin, err)
	if errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return 126
}

// realGit finds the git to run: the one that the session was opened with, else
// the first in PATH and in the usual places that is no shim.
func realGit(known string, c Call) (string, bool) {
	if known != "" && isProgram(known) {
		return known, true
	}
	self, err := os.Stat(c.Exe)
	if err != nil {
		self = nil
	}
	for _, dir := range append(filepath.SplitList(superqode.Getenv(c.Env, "PATH")), "/usr/bin", "/usr/local/bin",
		"/bin", "/opt/homebrew/bin") {
		bin := filepath.Join(dir, "git")
		if !filepath.IsAbs(dir) || !isProgram(bin) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, guard.ShimMarker)); err == nil {
			continue
		}
		if st, err := os.Stat(bin); err == nil && (self == nil || !os.SameFile(st, self)) {
			return bin, true
		}
	}
	return "", false
}

func isProgram(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// setEnv returns env with one variable set, or taken out when it is "".
func setEnv(env []string, key, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return len(kv) > len(key) && kv[len(key)] == '=' && kv[:len(key)] == key
	})
	if value == "" {
		return env
	}
	return append(env, key+"="+value)
}
