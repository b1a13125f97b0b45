package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// Mount is an overlay that this process has open.
type Mount struct {
	conn int // to the mounter; -1 is closed
	root *os.File
	mu   sync.Mutex // of asking on conn
}

// Open joins the mount of the layers that another process has open, or makes it.
// helper is superqode-shim. An error wraps ErrBusy or ErrLost, or says what the system
// refused.
func Open(ctx context.Context, helper string, l Layers) (*Mount, error) {
	unlock, err := lockfile.Lock(ctx, l.Socket+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	for began := time.Now(); ; {
		m, err := dial(l.Socket)
		if err == nil {
			return m, nil
		}
		if !gone(err) {
			return nil, fmt.Errorf("ask for the workspace's mount: %w", err)
		}
		if err = prepare(l); err == nil {
			err = start(helper, l)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrBusy) {
			return nil, err
		}
		if time.Since(began) > patience {
			return nil, superqode.WithHint(err, "end what still uses it: ps -p %s", cmp.Or(users(l.Upper), "PID"))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// users names the processes that have an upper folder's mount in their namespace.
func users(upper string) string {
	var list []string
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, file := range tables {
		table, err := os.ReadFile(file) // of those that this user may look into
		if err == nil && strings.Contains(string(table), " - overlay "+Source(upper)+" ") {
			list = append(list, strings.Split(file, "/")[2])
		}
	}
	return strings.Join(list, ",")
}

// gone reports that nobody answers at a socket.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ECONNRESET) ||
		errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
}

// dial joins the mounter at a socket, and proves to it that this process is outside of
// every session.
func dial(socket string) (*Mount, error) {
	conn, err := connect(socket)
	if err != nil {
		return nil, err
	}
	m := &Mount{conn: conn}
	peer, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil {
		var proof *os.File
		if proof, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", peer.Pid)); err == nil {
			m.root, err = m.ask(unix.UnixRights(int(proof.Fd())))
			err = errors.Join(err, proof.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(conn))
	}
	return m, nil
}

// Copy returns a mount of its own of the same overlay, that hangs nowhere.
func (m *Mount) Copy() (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.ask(nil)
	if err != nil {
		return nil, fmt.Errorf("copy the workspace's mount: %w", err)
	}
	return f, nil
}

func (m *Mount) ask(rights []byte) (*os.File, error) {
	if m.conn < 0 {
		return nil, os.ErrClosed
	}
	if err := unix.Sendmsg(m.conn, []byte{0}, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, err
	}
	switch text, fd, err := receive(m.conn); {
	case err != nil:
		return nil, err
	case text == "":
		return nil, io.EOF
	case fd < 0:
		return nil, errors.New(text)
	default:
		return os.NewFile(uintptr(fd), "overlay"), nil
	}
}

// Dir is the overlay's root, for this process and those that it starts. Nothing may
// resolve its links: it is one.
func (m *Mount) Dir() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.root.Fd()) }

// Close gives the mount up. Programs that have it as theirs keep it. Closing again does
// nothing.
func (m *Mount) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn < 0 {
		return nil
	}
	err := errors.Join(m.root.Close(), unix.Close(m.conn))
	m.conn = -1
	return err
}

// prepare makes the folders, and refuses an upper one that may lack what was written.
func prepare(l Layers) error {
	for _, dir := range []string{l.Upper, l.Work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	note := bootNote(l.Work)
	noted, err := os.ReadFile(note)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return atomicfile.Loose.Write(note, []byte(boot), 0o600) // an empty one would be another boot's
	case err != nil:
		return err
	case string(noted) != boot:
		return superqode.WithHint(ErrLost, "superqode workspace cleanup --force")
	}
	return nil
}

// Lost reports whether the machine was started anew since the upper folder was last
// written to, and before it was waited for: see ErrLost.
func Lost(l Layers) bool {
	noted, err := os.ReadFile(bootNote(l.Work))
	boot, berr := bootID()
	return err == nil && berr == nil && string(noted) != boot
}

func bootNote(work string) string { return filepath.Join(work, "boot") }

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// Sync waits until what the upper folder holds is on the disk. Call it when nothing
// writes there any more: after the machine's next start the folder is then as it was.
func Sync(l Layers) error {
	dir, err := os.Open(l.Upper)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("wait for the workspace to be on the disk: %w", err)
	}
	if err := os.Remove(bootNote(l.Work)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// start starts a mounter and waits until it is ready.
func start(helper string, l Layers) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(helper, append([]string{MounterCommand, l.Socket, l.Upper, l.Work}, l.Lower...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{}, []*os.File{w}
	// In its own group no key of the terminal reaches it, and in our session nobody
	// takes it for something that a program left.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = kernel.OwnNamespaces(cmd.SysProcAttr, unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN)
	if err == nil {
		err = cmd.Start()
	}
	_ = w.Close()
	if err != nil {
		return fmt.Errorf("a user namespace was refused (%w)", err)
	}
	go func() { _ = cmd.Wait() }() // it outlives us where others have the mount open
	answer, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	code, text, _ := strings.Cut(string(answer), " ")
	switch n, _ := strconv.Atoi(code); {
	case code == "ready":
		return nil
	case syscall.Errno(n) == unix.EBUSY:
		return ErrBusy
	case n > 0:
		return fmt.Errorf("%s: %w", text, syscall.Errno(n))
	case text != "":
		return errors.New(text)
	}
	return errors.New("superqode-shim ended before the workspace was mounted")
}
