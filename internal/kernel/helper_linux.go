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

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Wrap changes how a program starts on a thread that Confine has confined, so that
// nothing takes its mounts away. path and argv are the program's; attr has its streams
// and no further files.
func (k *Confiner) Wrap(path string, argv []string, attr *os.ProcAttr) (string, []string, error) {
	switch {
	case k.wraps:
		more, err := k.lend()
		if err != nil {
			return path, argv, err
		}
		attr.Files = append(slices.Clone(attr.Files), more...)
		if k.shared == nil {
			k.ownNamespaces(attr.Sys)
		}
		args := k.helperArgs()
		if k.overlay != nil { // the folder may be in the workspace alone
			args, attr.Dir = slices.Insert(args, 2, inFolder+attr.Dir), "/"
		}
		return k.helper, append(append(args, path), argv...), nil
	case k.locks:
		if err := lockNamespaces(attr.Sys); err != nil || attr.Files[0] == nil {
			return path, argv, err
		}
		again, err := reopened(attr.Files[0])
		if err != nil {
			return path, argv, err
		}
		if again != nil {
			attr.Files, k.input = slices.Clone(attr.Files), again
			attr.Files[0] = again
		}
	}
	return path, argv, nil
}

// The words before the mounts in the helper's command line.
const (
	withRules = "+rules"  // descriptor confineRules is a ruleset
	justCheck = "+check"  // the mounts have been made
	noNetwork = "+nonet"  // with a network namespace
	inNetwork = "+innet"  // the same, which the session's programs share and which was made
	joined    = "+joined" // the same, which may have got a way out since
	joinFirst = "+join"   // the network's namespaces are the last descriptors: enter them
	inFolder  = "@"       // where the program starts
)

func (k *Confiner) helperArgs() []string {
	args := []string{k.helper, ConfineCommand}
	if k.rules >= 0 && k.wraps {
		args = append(args, withRules)
	}
	if k.locks {
		args = append(args, justCheck)
	}
	switch {
	case k.wraps && k.shared != nil:
		args = append(args, joinFirst)
	case k.shared != nil:
		args = append(args, joined)
	case k.Plan.Shared: // ownNamespaces makes it, for who comes next and looks at once
		args = append(args, inNetwork)
	case k.Plan.NoNetwork:
		args = append(args, noNetwork)
	}
	for _, m := range k.Plan.Mounts {
		args = append(args, string(m.As)+m.Path)
		if m.As == another || m.As == placed {
			args = append(args, m.From)
		}
	}
	return append(args, "--")
}

// lend returns what the helper gets besides the streams: the ruleset and the overlay.
func (k *Confiner) lend() (list []*os.File, err error) {
	if k.rules >= 0 {
		if k.lent == nil {
			k.lent = os.NewFile(uintptr(k.rules), "ruleset")
		}
		list = append(list, k.lent)
	}
	if k.overlay != nil {
		if k.mount != nil {
			_ = k.mount.Close() // the helper before has its own
		}
		if k.mount, err = k.overlay(); err != nil {
			return nil, err
		}
		list = append(list, k.mount)
	}
	if k.shared != nil {
		list = append(list, k.shared.user, k.shared.net)
	}
	return list, nil
}

// ownNamespaces asks for the one capability that mounting needs, or the two with a
// network's. The helper drops them before it starts the program.
func (k *Confiner) ownNamespaces(sys *syscall.SysProcAttr) {
	caps := []uintptr{unix.CAP_SYS_ADMIN}
	if k.Plan.NoNetwork {
		caps = append(caps, unix.CAP_NET_ADMIN)
	}
	if ownUser(sys, caps); k.Plan.Shared {
		sys.Cloneflags |= unix.CLONE_NEWNET
	}
}

// OwnNamespaces asks for a process with a user namespace and mounts of its own, in which
// ids are what they are here, and for capabilities in it.
func OwnNamespaces(sys *syscall.SysProcAttr, caps ...uintptr) error {
	if os.Geteuid() == 0 && mayMount() {
		return lockNamespaces(sys) // root has every capability there
	}
	ownUser(sys, caps)
	return nil
}

// ownUser asks for a user namespace that keeps the user's own id.
func ownUser(sys *syscall.SysProcAttr, caps []uintptr) {
	sys.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	sys.AmbientCaps = caps
}

// lockNamespaces asks for a user namespace in which every user has the id that it has
// here, and for a mount namespace of it: the mounts in that are locked.
func lockNamespaces(sys *syscall.SysProcAttr) (err error) {
	sys.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	// Where it is denied, as in a container of a user's, nobody may allow it again.
	sys.GidMappingsEnableSetgroups = atomicfile.ReadLine("/proc/thread-self/setgroups") == "allow"
	if sys.UidMappings, err = sameIDs("/proc/thread-self/uid_map"); err == nil {
		sys.GidMappings, err = sameIDs("/proc/thread-self/gid_map")
	}
	return err
}

// sameIDs maps each id that a map of a process knows to itself. The lines are: first
// id in the namespace, first id outside, count (user_namespaces(7)).
func sameIDs(file string) (list []syscall.SysProcIDMap, err error) {
	data, err := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		var id, outside, n int
		if _, err := fmt.Sscan(line, &id, &outside, &n); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		list = append(list, syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: n})
	}
	return list, err
}

// tryWrapped checks what the helper can do, and the rules by themselves.
func (k *Confiner) tryWrapped() error {
	k.wraps = true
	err := k.tryHelper()
	if err == nil {
		k.binds, k.wraps = false, false
		err = onThread(k.Confine)
		k.binds = true
	}
	k.wraps = err == nil
	return err
}

// tryHelper lets the helper do everything but start the program.
func (k *Confiner) tryHelper() (err error) {
	runtime.LockOSThread() // PDEATHSIG fires when the thread that forked ends, and others spoil theirs
	defer runtime.UnlockOSThread()
	args := k.helperArgs()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if k.locks {
		err = lockNamespaces(cmd.SysProcAttr)
	} else {
		if cmd.ExtraFiles, err = k.lend(); k.shared == nil {
			k.ownNamespaces(cmd.SysProcAttr)
		}
	}
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	said := strings.TrimPrefix(strings.TrimSpace(string(out)), "superqode: ")
	switch _, ended := errors.AsType[*exec.ExitError](err); {
	case ended && said != "":
		return errors.New(said)
	case ended:
		return fmt.Errorf("superqode-shim ended early (%w)", err)
	case err != nil:
		return fmt.Errorf("a user namespace was refused (%w)", err)
	}
	return nil
}

// ConfineProgram is the helper: args are the words after ConfineCommand. It
// returns only if the program could not be started.
func ConfineProgram(args, env []string, errOut io.Writer) int {
	runtime.LockOSThread() // all of this belongs to the thread that executes the program
	k := &Confiner{Layer: Layer{Applied: true}, rules: -1, binds: true, ownMounts: true}
	all, joins, last := args, false, confineRules
	for len(args) > 0 && args[0] != "--" {
		switch word := args[0]; {
		case strings.HasPrefix(word, inFolder):
			k.folder = word[len(inFolder):]
		case word == withRules:
			k.rules, last = confineRules, last+1
		case word == justCheck:
			k.made = true
		case word == noNetwork:
			k.Plan.NoNetwork = true
		case word == inNetwork:
			k.Plan.NoNetwork, k.Plan.Shared = true, true
		case word == joined:
			k.Plan.Shared = true
		case word == joinFirst:
			joins = true
		case len(word) > 1 && word[1] == '/':
			m := Mount{Path: word[1:], As: word[0]}
			if (m.As == another || m.As == placed) && len(args) > 1 {
				args = args[1:]
				m.From = args[0]
			}
			if m.As == overlaid {
				k.overlay, last = k.lentOverlay, last+1
			}
			k.Plan.Mounts = append(k.Plan.Mounts, m)
		}
		args = args[1:]
	}
	if len(args) == 0 || len(args) == 2 {
		fmt.Fprintf(errOut, "superqode: only superqode calls %s\n", ConfineCommand)
		return 125
	}
	if joins {
		all = slices.Replace(slices.Clone(all), slices.Index(all, joinFirst), slices.Index(all, joinFirst)+1, joined)
		return join(last, last+1, append([]string{"superqode-shim", ConfineCommand}, all...), env, errOut)
	}
	if err := k.becomeProgram(); err != nil {
		fmt.Fprintf(errOut, "superqode: %v\n", err)
		return 125
	}
	if args = args[1:]; len(args) == 0 {
		return 0
	}
	if k.rules >= 0 {
		unix.CloseOnExec(confineRules)
	}
	err := unix.Exec(args[0], args[1:], env)
	fmt.Fprintf(errOut, "superqode: cannot run %q: %v\n", args[1], err)
	if errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// lentOverlay is the overlay that the helper was given, behind the ruleset.
func (k *Confiner) lentOverlay() (*os.File, error) {
	fd := confineRules
	if k.rules >= 0 {
		fd++
	}
	return os.NewFile(uintptr(fd), "overlay"), nil
}

// becomeProgram does everything but execute the program.
func (k *Confiner) becomeProgram() error {
	// Gaining a capability may have undone it.
	err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if err != nil || k.made {
		return errors.Join(err, k.check())
	}
	cwd, err := k.folder, error(nil)
	if cwd == "" {
		cwd, err = unix.Getwd() // of the mounts outside
	}
	if err == nil {
		err = k.confine()
	}
	if err == nil {
		err = unix.Chdir(cwd)
	}
	for fd := 0; fd < 3 && err == nil; fd++ {
		var again *os.File
		if again, err = reopened(os.NewFile(uintptr(fd), "stream")); err == nil && again != nil {
			err = unix.Dup3(int(again.Fd()), fd, 0)
		}
	}
	if err != nil {
		return err
	}
	return giveUpRights()
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
