package guard

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// gitsOwn reports whether a denied command is a step of another git command that
// may run: git starts itself, and finds the shim. Which command that is tells the
// parent process, by its file and not by what it calls itself.
func gitsOwn(ctx context.Context, st *SessionState, bin string, c ShimCall, policy Policy, op Operation) bool {
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
	argv := gitCommandOf(parent, st, bin)
	if argv == nil {
		return false
	}
	if Check(ctx, argv, Context{Dir: c.Dir, Env: c.Env, Policy: policy}).Denied() {
		return false // it went past the shim; what it starts is no better
	}
	if Check(ctx, argv, Context{Dir: c.Dir, Env: c.Env}).Denied() {
		// Only the configuration allows it: then what git makes it of is allowed, too.
		return IsStep(commandName(argv), commandName(c.command())) && !leaves(op) && op != "config.write" && op != "gitdir.write"
	}
	return stepOf(argv, st, c, op)
}

// gitCommandOf returns the command of a git process, or of a script that git
// brought along; nil for any other process.
func gitCommandOf(p proctable.Process, st *SessionState, bin string) []string {
	args := p.Args
	switch {
	case len(args) == 0:
		return nil
	case p.Exe == bin, sameProgram(p.Exe, bin):
	case len(args) > 1 && strings.HasPrefix(filepath.Base(args[1]), "git-") && slices.Contains([]string{string(st.Git.ExecPath), filepath.Join(st.dir, "exec")}, filepath.Dir(args[1])):
		args = args[1:] // sh /usr/lib/git-core/git-submodule …
	default:
		return nil
	}
	return (ShimCall{Argv: args}).command()
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
func stepOf(argv []string, st *SessionState, c ShimCall, op Operation) bool {
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
		return slices.Contains([]Operation{"reset.hard", "update-ref", "symbolic-ref.write"}, op) && freshWorktree(st, FindRepository(c.Dir, c.Env, "", "").GitDir)
	}
	if words[0] != "submodule" && words[0] != "submodule--helper" || op != "checkout.force" {
		return false
	}
	if !slices.Contains([]string{"add", "update", "clone", "update-clone", "run-update-procedure"}, words[1]) {
		return false
	}
	f := FindRepository(c.Dir, c.Env, "", "")
	return f.GitDir != "" && !slices.Contains(st.GitDirs, superqode.HostPath(f.CommonDir))
}

// freshWorktree reports whether a git directory is that of a linked worktree which
// is being made: it is one of the guarded repository's, not the session's own, and
// nothing was checked out there.
func freshWorktree(st *SessionState, gitDir string) bool {
	if filepath.Base(filepath.Dir(gitDir)) != "worktrees" || filepath.Base(gitDir) == st.ID.String() {
		return false
	}
	_, err := os.Lstat(filepath.Join(gitDir, "index"))
	return err != nil
}
