package kernel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Wrap changes how a program starts, so that the helper makes what this process
// may not: a user namespace, in which the program has its own mounts. path and
// argv are the program's; attr has its streams and no further files.
func (k *Confiner) Wrap(path string, argv []string, attr *os.ProcAttr) (string, []string) {
	attr.Files = append(slices.Clone(attr.Files), k.rulesFile())
	ownNamespaces(attr.Sys)
	return k.helper, append(append(k.helperArgs(), path), argv...)
}

// Wraps reports whether programs start by Wrap, and not on a thread that
// Confine has confined.
func (k *Confiner) Wraps() bool { return k.Layer.Applied && k.wraps }

func (k *Confiner) helperArgs() []string {
	return append(append([]string{k.helper, ConfineCommand}, k.Plan.ReadOnly...), "--")
}

// rulesFile returns a copy of the ruleset's descriptor for the child.
func (k *Confiner) rulesFile() *os.File {
	if k.lent == nil {
		k.lent = os.NewFile(uintptr(k.rules), "ruleset")
	}
	return k.lent
}

// ownNamespaces asks for a user namespace that keeps all user ids, and for the
// one capability that mounting needs. The helper drops it before it starts the
// program.
func ownNamespaces(sys *syscall.SysProcAttr) {
	sys.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

// tryWrapped checks what the helper can do, and the rules by themselves.
func (k *Confiner) tryWrapped() error {
	err := k.tryHelper()
	if err == nil {
		k.binds = false
		err = onThread(k.Confine)
		k.binds = true
	}
	k.wraps = err == nil
	return err
}

// tryHelper lets the helper do everything but start the program.
func (k *Confiner) tryHelper() error {
	args := k.helperArgs()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.ExtraFiles = []*os.File{k.rulesFile()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ownNamespaces(cmd.SysProcAttr)
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(out)), "superqode: "))
	}
	if err != nil {
		return fmt.Errorf("a user namespace was refused (%w)", err)
	}
	return nil
}

// ConfineProgram is the helper: args are the words after ConfineCommand. It
// returns only if the program could not be started.
func ConfineProgram(args, env []string, errOut io.Writer) int {
	runtime.LockOSThread() // all of this belongs to the thread that executes the program
	end := slices.Index(args, "--")
	if end < 0 || len(args) == end+2 {
		fmt.Fprintf(errOut, "superqode: only superqode calls %s\n", ConfineCommand)
		return 125
	}
	// Gaining a capability may have undone it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		fmt.Fprintf(errOut, "superqode: %v\n", err)
		return 125
	}
	k := &Confiner{Layer: Layer{Applied: true}, Plan: Confinement{ReadOnly: args[:end]}, rules: confineRules,
		binds: true, ownMounts: true}
	err := k.Confine()
	if err == nil {
		err = giveUpRights()
	}
	if err != nil {
		fmt.Fprintf(errOut, "superqode: %v\n", err)
		return 125
	}
	if args = args[end+1:]; len(args) == 0 {
		return 0
	}
	unix.CloseOnExec(confineRules)
	err = unix.Exec(args[0], args[1:], env)
	fmt.Fprintf(errOut, "superqode: cannot run %q: %v\n", args[1], err)
	if errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// giveUpRights drops all capabilities of the program in its user namespace.
func giveUpRights() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up the right to mount: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("give up the right to mount: %w", err)
	}
	return nil
}
