package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// command is a git process and what it was asked to do.
type command struct {
	proctable.Process
	argv []string // git, the global options that do not name a place, the command, its arguments
}

// name is the git command alone.
func (c command) name() string { return guard.CommandName(c.argv) }

// Bounds on the way up the process table.
const (
	maxShells   = 2
	maxCommands = 16
)

// commands returns the git commands that led to this call, the nearest first:
// the one that ran the hook, the git that runs that one, and so on. Git's own
// shell scripts count as the commands that they are. Anything else in between, a
// user's script or alias, ends the list. It is empty when the system does not
// tell.
func (a *answer) commands() []command {
	p, ok := a.caller()
	if !ok {
		return nil
	}
	list := []command{{p, stripPlace(gitArgs(p.Args))}}
	bin := p.Exe
	for len(list) < maxCommands {
		if p, ok = proctable.Read(p.Parent); !ok {
			break
		}
		args, ok := a.asGit(p, bin)
		if !ok {
			break
		}
		list = append(list, command{p, stripPlace(args)})
	}
	return list
}

// caller is the process that ran the hook. That is git, whatever it calls itself;
// only where git had to go through a shell to run the hook the shell is passed
// over.
func (a *answer) caller() (proctable.Process, bool) {
	p, ok := proctable.Read(parentPID())
	for range maxShells {
		if !ok || !isShell(p.Exe) || !slices.ContainsFunc(p.Args,
			func(w string) bool { return strings.Contains(w, filepath.Dir(a.Exe)) || strings.Contains(w, a.Name) }) {
			break
		}
		p, ok = proctable.Read(p.Parent)
	}
	return p, ok && len(p.Args) > 0
}

func isShell(exe string) bool {
	switch filepath.Base(exe) {
	case "sh", "dash", "bash", "ash", "busybox", "zsh", "ksh", "mksh":
		return true
	}
	return false
}

// asGit reports whether a process is git, by its file and not by what it calls
// itself, and returns its arguments as a git command.
func (a *answer) asGit(p proctable.Process, bin string) ([]string, bool) {
	if len(p.Args) == 0 {
		return nil, false
	}
	if isGit(p.Exe) || sameFile(p.Exe, bin) || a.st != nil && sameFile(p.Exe, string(a.st.Git.Bin)) {
		return gitArgs(p.Args), true
	}
	if isShell(p.Exe) && len(p.Args) > 1 && a.inExecPath(p.Args[1]) {
		return gitArgs(p.Args[1:]), true
	}
	return nil, false
}

// isGit goes by the name of the program's file. A program that is called so and is
// no git wins nothing: what it starts is let through in the exact form only in
// which git would start it, or where the user allows the whole command.
func isGit(exe string) bool { return filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "git" }

// sameFile reports whether two executables are the same one, under any of its
// links: git stands in PATH and in its own folder.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// inExecPath reports whether a script is one that git brought along: its own
// folder of commands, or the session's links to it.
func (a *answer) inExecPath(script string) bool {
	if a.st == nil || !strings.HasPrefix(filepath.Base(script), "git-") {
		return false
	}
	dir := filepath.Dir(script)
	return dir == string(a.st.Git.ExecPath) || dir == filepath.Join(a.st.Dir(), "exec")
}

// gitArgs writes the arguments of git, or of git-NAME, as "git NAME …".
func gitArgs(args []string) []string {
	if name, ok := strings.CutPrefix(filepath.Base(args[0]), "git-"); ok && guard.IsGitCommand(name) {
		return append([]string{"git", name}, args[1:]...)
	}
	return append([]string{"git"}, args[1:]...)
}

// stripPlace takes out the global options that say where git works: the hook is
// already there, and the variables that git set tell the rest.
func stripPlace(argv []string) []string {
	out := []string{"git"}
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if !strings.HasPrefix(w, "-") {
			return append(out, argv[i:]...)
		}
		switch name, _, glued := strings.Cut(w, "="); name {
		case "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix":
			if !glued || name == "-C" {
				i++
			}
		case "--bare":
		case "-c", "--config-env", "--attr-source", "--shallow-file":
			out = append(out, w)
			if i+1 < len(argv) && (!glued || name == "-c") {
				i++
				out = append(out, argv[i])
			}
		default:
			out = append(out, w)
		}
	}
	return out
}

// startDir is where the command was started, as far as its hook can tell: git
// goes to the root of the work tree and leaves the way back in GIT_PREFIX.
func (a *answer) startDir() string {
	if a.Dir == "" {
		return ""
	}
	return filepath.Join(a.Dir, superqode.Getenv(a.Env, "GIT_PREFIX"))
}
