// Package shim is the program that stands in a session's folders under the name
// git, and under the names of git's hooks: it finds out as what it was called and
// hands over to package guard or package hooks.
//
// It is linked into a small binary of its own, superqode-shim, since it starts
// with every git command of a session, and into superqode itself, which serves in
// its place where superqode-shim is not installed.
package shim

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/overlay"
)

// IO is what the process was started with.
type IO struct {
	In, Out, Err *os.File
	Exe          string // os.Executable
	Args         []string
	Env          []string
	Dir          string // "" if it is not known
}

// Serves reports whether the program at exe stands in a session's folder, under
// the name of git or of a hook.
func Serves(exe string) bool {
	name := filepath.Base(exe)
	if name != "git" && !strings.HasPrefix(name, "git-") && name != hooks.HelperFile && !hooks.Serves(name) {
		return false
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(exe), guard.ShimMarker)); err == nil {
		return true // though its state may have been deleted
	}
	_, err := os.Lstat(filepath.Join(filepath.Dir(filepath.Dir(exe)), guard.SessionStateFile))
	return err == nil
}

// Installed reports whether a hook that guard install wrote makes this call, or a
// session that confines its program: then the program is called by its own name,
// from wherever it is installed.
func Installed(args []string) bool {
	return len(args) > 1 && (args[1] == hooks.InstalledCommand || args[1] == kernel.ConfineCommand || args[1] == overlay.MounterCommand)
}

// Main answers one call and returns the exit code. For git it does not return
// when the command is allowed: the process becomes the real git.
func Main(ctx context.Context, io IO) int {
	if len(io.Args) > 0 {
		if len(io.Args) > 1 && !Serves(io.Exe) { // as git it has no commands
			switch io.Args[1] {
			case kernel.ConfineCommand:
				return kernel.ConfineProgram(io.Args[2:], io.Env, io.Err)
			case overlay.MounterCommand:
				return overlay.Serve(io.Args[2:])
			}
		}
		call := hooks.Call{Exe: io.Exe, Name: filepath.Base(io.Args[0]), Args: io.Args[1:], Env: io.Env, Dir: io.Dir,
			In: io.In, Out: io.Out, Err: io.Err}
		if Installed(io.Args) {
			call.Args = io.Args[2:]
			return hooks.AnswerInstalled(ctx, call)
		}
		if hooks.Serves(call.Name) {
			return hooks.Answer(ctx, call)
		}
	}
	return Git(ctx, Call{Exe: io.Exe, Argv: io.Args, Env: io.Env, Dir: io.Dir, Err: io.Err})
}
