package kernel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// The rights that a rule gives. None allows creating device nodes: through one,
// root would reach the disk below the file system.
const (
	fileRights   = ll.AccessFSWriteFile | ll.AccessFSTruncate
	folderRights = fileRights | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	handledRights = folderRights | ll.AccessFSMakeChar | ll.AccessFSMakeBlock
)

// erratumSignals is the bit of the fix without which a confined thread cannot
// signal its own process's other threads, as the Go runtime does (Linux 6.15
// and stable kernels, Documentation/userspace-api/landlock.rst).
const erratumSignals = 1 << 1

// Confiner confines a session's programs: by mounts that only they see (Mounts), or by
// Landlock. Who is root, or may mount, makes the mounts on the thread that starts the
// program, and the program gets a user namespace of its own, which locks them: neither
// umount(2) nor a bind of what holds them gets below (mount_namespaces(7)). For anybody
// else the helper makes them in a user namespace, and gives up the right to change
// them. Where Landlock holds the files as well, it forbids every change of mounts.
type Confiner struct {
	Layer Layer
	Plan  Confinement

	rules     int      // the ruleset's descriptor; -1: none
	lent      *os.File // the same for a child process
	binds     bool     // the plan's mounts are made
	wraps     bool     // the helper makes them, since this process may not
	locks     bool     // the program gets a user namespace
	ownMounts bool     // this process has mounts of its own already
	made      bool     // they have been made
	gitInside bool     // the origin is the workspace, and holds its git directory
	overlay   func() (*os.File, error)
	mount     *os.File // the overlay for the helper that was started last
	shared    *network // of another program of the session
	folder    string   // where the helper starts the program; "" is where it was started itself
	helper    string
	scratch   string
	input     *os.File // the program's, see reopened
}

// Open decides the confinement of a session's programs, prepares it, and tests
// it on a thread of its own. If it is not possible, the error says why if
// o.Enforce is EnforceRequired; otherwise Layer.State does. Open creates
// folders of tools that do not exist yet. Close releases what it holds.
//
// It applies Landlock to single threads: package landlock's functions would
// confine this whole process, which has to write the session's state.
func Open(o Options) (*Confiner, error) {
	k := &Confiner{rules: -1, scratch: o.Scratch, helper: o.Helper, overlay: o.Overlay, Layer: Layer{State: Off, By: None}}
	k.gitInside = o.InPlace && slices.ContainsFunc(o.GitDirs, func(d string) bool { return superqode.Within(d, o.Origin) })
	if o.Enforce == EnforceOff {
		if o.NoNetwork {
			return nil, superqode.Errorf(superqode.ErrUsage,
				"--no-network needs the kernel layer, which --enforce off switches off")
		}
		if o.Private.Tmp != "" {
			return nil, superqode.Errorf(superqode.ErrUsage, "--private-tmp needs the kernel layer, which --enforce off switches off")
		}
		if o.Shared {
			return nil, superqode.Errorf(superqode.ErrUsage, "--own-network needs the kernel layer, which --enforce off switches off")
		}
		if o.Overlay != nil {
			return nil, o.notPrivate(errors.New("--enforce off switches them off"))
		}
		return k, nil
	}
	keepOpened()
	err := k.open(o)
	if err == nil && o.Enforce == EnforceRequired && !k.Layer.Active() {
		err = superqode.WithHint(fmt.Errorf("the kernel layer is required and %s", k.Layer.State),
			"--enforce auto runs with the other layers of the guard; superqode doctor shows what this machine offers")
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Confiner) open(o Options) (err error) {
	if k.Layer.ABI, err = ll.LandlockGetABIVersion(); err != nil {
		k.Layer.ABI, k.Layer.State = 0, unavailableState(noLandlock(err))
	} else {
		k.Layer.State, k.Layer.Applied = stateOf(k.Layer.ABI)
	}
	root, look := os.Geteuid() == 0, diskView()
	if err := errors.Join(o.checkAllows(look), o.checkPrivate(look)); err != nil {
		return err
	}
	if o.Shared {
		k.shared = findNetwork(o.Beside, !root || !mayMount())
	}
	noMounts := errors.New("--confine")
	if !o.Confine {
		if noMounts = k.openMounts(o, root, look); noMounts == nil {
			return nil
		}
	}
	// Landlock would leave the origin where the overlay must be.
	if o.Overlay != nil || (o.Private.Tmp != "" || o.Shared) && !o.Confine {
		return o.notPrivate(noMounts)
	}
	if o.NoNetwork && k.Layer.ABI < abiTCP {
		return superqode.WithHint(fmt.Errorf("--no-network needs a network namespace (%w), or Landlock version %d (Linux 6.7), and this kernel has version %d", noMounts, abiTCP, k.Layer.ABI), "unshare --net superqode …, or leave --no-network out")
	}
	if !k.Layer.Applied {
		k.Layer.State += ", and " + noMounts.Error()
		return nil
	}
	if k.Plan, err = o.confinement(k.Layer.ABI, root, look, inPath(o.Env, look)); err != nil {
		return err
	}
	for _, dir := range k.Plan.Make {
		_ = os.MkdirAll(dir, 0o700) // if it cannot be created, the tool could not have created it either
	}
	if k.rules, err = k.Plan.ruleset(); err != nil {
		return err
	}
	k.Layer.By = Landlock
	if len(k.Plan.Closed) > 0 {
		k.Layer.Missing = []string{"nothing can be created, renamed or removed in " + strings.Join(k.Plan.Closed, ", ")}
	}
	if !o.Confine {
		k.Layer.Missing = append(k.Layer.Missing, fmt.Sprintf("no program can mount, and so no sandbox of its own starts (%s)", noMounts))
	}
	noMounts = k.try()
	switch {
	case (o.Private.Tmp != "" || o.Shared) && noMounts != nil:
		return o.notPrivate(noMounts)
	case o.NoNetwork && !k.Layer.Applied:
		return fmt.Errorf("--no-network needs the kernel layer, which is %s", k.Layer.State)
	case o.NoNetwork && k.binds:
		k.Layer.Network = OwnNetwork
	case o.NoNetwork:
		k.Layer.Network = OnlyTCP
		k.Layer.Missing = append(k.Layer.Missing, "--no-network stops TCP alone: UDP, raw and abstract sockets stay open")
	}
	if !k.binds {
		k.Layer.Missing = append([]string{"permission bits, owners, times and extended attributes are not covered"}, k.Layer.Missing...)
	}
	return nil
}

// openMounts is the first choice. It returns why it is not possible.
func (k *Confiner) openMounts(o Options, root bool, look view) (err error) {
	if o.Helper == "" {
		return errors.New("superqode-shim is not installed, which would make read-only mounts")
	}
	layer := k.Layer
	k.Plan = Confinement{ABI: k.Layer.ABI, NoNetwork: o.NoNetwork || o.Shared, Shared: o.Shared, Mounts: o.mounted(root, look)}
	if k.rules, err = k.Plan.ruleset(); err != nil {
		return err
	}
	k.Layer = Layer{State: Active, ABI: layer.ABI, Applied: true, By: Mounts}
	if !holdsSignals(k.Layer.ABI) {
		k.Layer.Missing = []string{"signals to processes outside of the session"}
	}
	if k.Plan.NoNetwork {
		k.Layer.Network = OwnNetwork
	}
	k.binds, k.locks = true, root && mayMount()
	k.wraps = !k.locks
	switch {
	case o.Tried == Mounts && !k.Plan.NoNetwork:
		return nil
	case k.wraps:
		err = k.tryHelper()
	default:
		err = onThread(func() error {
			if err := k.Confine(); err != nil {
				return err
			}
			return k.tryHelper()
		})
	}
	if err != nil {
		k.dropRules()
		k.Layer, k.Plan, k.binds, k.locks, k.wraps = layer, Confinement{}, false, false, false
	}
	return err
}

func (o Options) notPrivate(why error) error {
	flag, needs := "--private-tmp", "mounts that only the session sees"
	switch {
	case o.Overlay != nil:
		flag = "a workspace at the origin's own path"
	case o.Shared:
		flag, needs = "--own-network", "namespaces"
	}
	return superqode.WithHint(fmt.Errorf("%s needs %s, which are not possible: %w", flag, needs, why),
		"superqode doctor shows what this machine offers")
}

// try finds out on scratch threads what is possible with Landlock. It returns why there are
// no mounts.
func (k *Confiner) try() (noMounts error) {
	if len(k.Plan.Mounts) > 0 {
		k.binds = true
		err := onThread(k.Confine)
		if err != nil && k.helper != "" && os.Geteuid() != 0 {
			err = k.tryWrapped()
		}
		if err == nil {
			return nil
		}
		k.binds, noMounts = false, err
		if k.gitInside && k.Layer.Active() {
			k.Layer.State = unavailableState(fmt.Sprintf("Landlock cannot keep .git read-only inside a writable tree, and %s; everything else that is protected is read-only", err))
		}
	}
	if err := onThread(k.Confine); err != nil {
		k.Layer.State, k.Layer.Applied = unavailableState("the check failed: "+err.Error()), false
	}
	return noMounts
}

// noLandlock explains why the kernel gave no version.
func noLandlock(err error) string {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return "Landlock is built into this kernel and switched off (add landlock to lsm= on the kernel's command line)"
	}
	return fmt.Sprintf("this kernel offers no Landlock (%v), Linux 6.2 or newer does", err)
}

// holdsSignals reports whether Landlock can keep signals inside without harm.
func holdsSignals(abi int) bool {
	errata, err := ll.LandlockGetErrata()
	return err == nil && abi >= abiScope && errata&erratumSignals != 0
}

// ruleset makes the kernel's ruleset of what is writable and returns its
// descriptor, -1 where there is nothing to rule. Without Writable mounts hold, and it
// rules neither files nor the network.
func (c Confinement) ruleset() (fd int, err error) {
	mask := uint64(handledRights)
	switch {
	case len(c.Writable) == 0:
		if mask = 0; !holdsSignals(c.ABI) {
			return -1, nil
		}
	case c.ABI < abiTruncate:
		mask &^= ll.AccessFSTruncate
	}
	attr := ll.RulesetAttr{HandledAccessFS: mask}
	if c.NoNetwork && !c.Shared && mask != 0 {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if holdsSignals(c.ABI) {
		attr.Scoped = ll.ScopeSignal
	}
	if fd, err = ll.LandlockCreateRuleset(&attr, 0); err != nil {
		return -1, fmt.Errorf("make a Landlock ruleset: %w", err)
	}
	for _, w := range c.Writable {
		err := addRule(fd, w.Path, mask)
		if err != nil && w.Own {
			return -1, errors.Join(fmt.Errorf("let the program write to %s: %w", w.Path, err), unix.Close(fd))
		}
	}
	return fd, nil
}

// addRule makes path writable. The path is resolved already: a link in it was
// put there since.
func addRule(rules int, path string, mask uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := uint64(fileRights)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		rights = folderRights
	}
	return ll.LandlockAddPathBeneathRule(rules, &ll.PathBeneathAttr{AllowedAccess: rights & mask, ParentFd: fd}, 0)
}

// Confine confines the calling thread, for ever, and then checks that it cannot
// write where it must not. A process that this thread starts by Wrap is confined, with
// all its descendants. The caller has locked the thread and lets it end.
func (k *Confiner) Confine() error {
	if !k.Layer.Applied || k.wraps {
		return nil
	}
	return k.confine()
}

func (k *Confiner) confine() (err error) {
	if k.binds && !k.made {
		err := mountAll(k.Plan.Mounts, k.ownMounts, k.overlay)
		if err == nil && (k.Plan.NoNetwork || k.Plan.Shared) {
			err = k.network()
		}
		if err != nil {
			return err
		}
	}
	if k.rules >= 0 {
		if err = ll.LandlockRestrictSelf(k.rules, 0); errors.Is(err, unix.EPERM) {
			// Without CAP_SYS_ADMIN the kernel demands that set-user-id programs
			// gain nothing. For root, sudo and su keep working.
			if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
				err = ll.LandlockRestrictSelf(k.rules, 0)
			}
		}
	}
	if err == nil {
		err = keepLimits()
	}
	if err != nil {
		return fmt.Errorf("confine the program: %w", err)
	}
	return k.check()
}

// network gives the calling thread the network that it is to have.
func (k *Confiner) network() error {
	switch {
	case !k.Plan.Shared:
		return ownNetwork()
	case k.shared != nil && !k.wraps:
		return k.shared.enter()
	case k.ownMounts: // the helper, whose network it is
		return startLoopback()
	}
	return ownNetwork()
}

// check tries to write, on the confined thread.
func (k *Confiner) check() error {
	deny := k.Plan.Deny
	if k.binds {
		err := checkMounts(k.Plan.Mounts)
		if err == nil && k.Plan.NoNetwork && k.shared == nil {
			err = checkNetwork()
		}
		if err != nil {
			return err
		}
		deny = slices.Concat(deny, k.Plan.ReadOnly())
	}
	for _, dir := range deny {
		switch err := tryMake(dir); {
		case err == nil:
			return fmt.Errorf("%s is writable all the same", dir)
		case !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EPERM) &&
			!errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
			return fmt.Errorf("could not try to write to %s: %w", dir, err)
		}
	}
	if k.scratch == "" {
		return nil
	}
	if err := tryMake(k.scratch); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%s is not writable: %w", k.scratch, err)
	}
	return nil
}

// tryMake creates a folder in dir and removes it again. No property of a file
// system prevents that, and nothing is left behind if it is refused.
func tryMake(dir string) error {
	path := filepath.Join(dir, ".superqode-check-"+rand.Text())
	if err := unix.Mkdir(path, 0o700); err != nil {
		return err
	}
	return unix.Rmdir(path)
}

// GuardsGit reports whether the git directories are kept read-only, whatever else
// Layer.State finds missing.
func (k *Confiner) GuardsGit() bool {
	return k.Layer.Applied && (k.binds || !k.gitInside)
}

// Close closes the ruleset. Programs that are running stay confined.
func (k *Confiner) Close() error {
	err := k.dropRules()
	for _, f := range []*os.File{k.input, k.mount} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	err = errors.Join(err, k.shared.close())
	k.input, k.mount, k.shared = nil, nil, nil
	k.Layer.Applied = false
	return err
}

func (k *Confiner) dropRules() error {
	fd, lent := k.rules, k.lent
	k.rules, k.lent = -1, nil
	switch {
	case lent != nil:
		return lent.Close()
	case fd >= 0:
		return unix.Close(fd)
	}
	return nil
}

// onThread runs fn on a thread that ends with it, whatever fn did to it. It
// never uses the main thread, which cannot end and represents the whole process
// in /proc.
func onThread(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // a goroutine that ends locked ends its thread
		if unix.Gettid() != unix.Getpid() {
			done <- fn()
			return
		}
		err := onThread(fn) // while this goroutine holds the main thread
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}
