package hooks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// userHook runs the hook of the same name that the user has, as git would: the one
// in core.hooksPath as it is without the session, else in the common directory's
// hooks; not if it is not executable. input is what was read from the input, nil
// when nothing was: then this process becomes the hook.
func (a *answer) userHook(ctx context.Context, input []byte) int {
	path := ""
	if a.installed != nil {
		path = a.installed.next(a)
	} else {
		path = a.userHookPath(ctx)
	}
	if path == "" {
		return 0
	}
	args := append([]string{path}, a.Args...)
	if a.Name == "pre-push" && len(args) > 2 {
		args[2] = strings.TrimPrefix(args[2], BlockedScheme) // the address as the user wrote it
	}
	if input == nil {
		err := syscall.Exec(path, args, a.Env)
		if errors.Is(err, syscall.ENOEXEC) { // no "#!" line: git gives it to the shell, too
			err = syscall.Exec("/bin/sh", append([]string{"sh"}, args...), a.Env)
		}
		fmt.Fprintf(a.Err, "superqode: cannot run the hook %s: %v\n", path, err)
		return exitFailed
	}
	code, err := a.run(ctx, args, input)
	if errors.Is(err, syscall.ENOEXEC) {
		code, err = a.run(ctx, append([]string{"/bin/sh"}, args...), input)
	}
	if err != nil {
		fmt.Fprintf(a.Err, "superqode: cannot run the hook %s: %v\n", path, err)
		return exitFailed
	}
	return code
}

// run starts a hook with the input that git had sent and returns its exit code.
func (a *answer) run(ctx context.Context, argv []string, input []byte) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = a.Dir, a.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), a.Out, a.Err
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	if cmd.ProcessState != nil { // it ran; that it did not read all of its input is its own affair
		return cmd.ProcessState.ExitCode(), nil
	}
	return exitFailed, err
}

// userHookPath is the user's hook, "" when there is none that git would run.
func (a *answer) userHookPath(ctx context.Context) string {
	dir := ""
	if a.st != nil && a.guarded() || a.st != nil && a.st.Off && a.ofSession() {
		dir = string(a.st.HooksPath)
	} else {
		dir = a.configuredHooks(ctx)
	}
	switch {
	case dir == "":
		if a.repo.GitDir == "" {
			return ""
		}
		dir = filepath.Join(a.repo.CommonDir, "hooks")
	case strings.HasPrefix(dir, "~/"):
		dir = filepath.Join(superqode.Getenv(a.Env, "HOME"), dir[2:])
	case !filepath.IsAbs(dir):
		dir = inside(a.gitsDir(), dir)
	}
	if own := a.repo.CommonDir; own != "" && superqode.Within(dir, own) { // an overlay has the session's in its place
		dir = a.usersRepository() + dir[len(own):]
	}
	path := filepath.Join(dir, a.Name)
	if err := unix.Access(path, unix.X_OK); err != nil {
		return ""
	}
	if sameFile(path, a.Exe) {
		return "" // this very helper
	}
	return path
}

// next is the user's hook of this name, "" when git would run none.
func (i *installedCall) next(a *answer) string {
	if i.hook == "" || unix.Access(inside(a.Dir, i.hook), unix.X_OK) != nil {
		return ""
	}
	if st, err := os.Stat(inside(a.Dir, i.hook)); err != nil || st.IsDir() {
		return ""
	}
	return i.hook
}

// usersRepository is the common directory in which the user's own hooks lie: the
// session's own git directory stands for the user's.
func (a *answer) usersRepository() string {
	if a.st != nil && a.st.Private != nil && superqode.Within(a.repo.CommonDir, string(a.st.Private.Dir)) {
		return string(a.st.Private.Repository)
	}
	return a.repo.CommonDir
}

// gitsDir is where git itself stands, and from where it looks for hooks. It starts
// them there, too, except for those of a new worktree.
func (a *answer) gitsDir() string {
	if dir, ok := workingDir(parentPID()); ok {
		return dir
	}
	return a.Dir
}

// ofSession reports whether this is a repository of the session's, guarded or not.
func (a *answer) ofSession() bool {
	return a.repo.GitDir != "" && a.st.Guards(a.repo.CommonDir, a.repo.WorkTree)
}

// configuredHooks asks git for core.hooksPath without what the session's
// environment adds. It is for repositories that came here by another way than
// the session's own configuration.
func (a *answer) configuredHooks(ctx context.Context) string {
	env := git.CleanEnv(a.Env)
	if a.repo.GitDir != "" {
		env = append(env, "GIT_DIR="+a.repo.GitDir)
	}
	cmd := exec.CommandContext(ctx, cmp.Or(a.gitBin(), "git"), "config", "--type=path", "--get", "core.hooksPath")
	cmd.Dir, cmd.Env = a.Dir, env
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

// inside makes a path absolute; "" stays "".
func inside(dir, path string) string {
	if path == "" {
		return ""
	}
	return superqode.Under(dir, path)
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
