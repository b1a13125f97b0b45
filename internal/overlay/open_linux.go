package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// Mount is an overlay that this process has open.
type Mount struct {
	conn *net.UnixConn
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
		if !errors.Is(err, ErrBusy) || time.Since(began) > patience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// gone reports that nobody answers at a socket.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ECONNRESET) ||
		errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
}

func dial(socket string) (*Mount, error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := net.DialUnix("unixpacket", nil, within(dir, socket))
	if err != nil {
		return nil, err
	}
	m := &Mount{conn: conn}
	if m.root, err = m.Copy(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

// within names a socket by its open folder: an address has room for 107 bytes.
func within(dir *os.File, socket string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket))}
}

// Copy returns a mount of its own of the same overlay, that hangs nowhere.
func (m *Mount) Copy() (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.conn.Write([]byte{0}); err != nil {
		return nil, err
	}
	text, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	n, rn, _, _, err := m.conn.ReadMsgUnix(text, rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	case rn == 0:
		return nil, fmt.Errorf("copy the workspace's mount: %s", text[:n])
	}
	list, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil || len(list) != 1 {
		return nil, errors.Join(errors.New("the mounter answered without a mount"), err)
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("the mounter answered without a mount"), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "overlay"), nil
}

// Dir is the overlay's root, for this process and those that it starts. Nothing may
// resolve its links: it is one.
func (m *Mount) Dir() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.root.Fd()) }

// Close gives the mount up. Programs that have it as theirs keep it.
func (m *Mount) Close() error { return errors.Join(m.root.Close(), m.conn.Close()) }

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
		if err := os.WriteFile(note, []byte(boot), 0o600); err != nil {
			return err
		}
	case err != nil:
		return err
	case string(noted) != boot:
		return ErrLost
	}
	return nil
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
