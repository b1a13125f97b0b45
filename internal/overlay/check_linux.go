package overlay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// Checked is Check for a folder in home, and believes an earlier yes of the same boot,
// user, helper and device, from a process that the kernel restricted as it does this one. A
// no is never believed. Forget it where a mount fails.
func Checked(ctx context.Context, helper, dir, home string) error {
	key, kerr := checkKey(helper, dir)
	if kerr == nil && atomicfile.ReadLine(checkNote(home)) == key {
		return nil
	}
	if err := Check(ctx, helper, dir); err != nil || kerr != nil {
		return err
	}
	note := checkNote(home)
	_ = errors.Join(os.Mkdir(filepath.Dir(note), 0o700), atomicfile.Replace(note, []byte(key+"\n"), 0o600)) // else, as without a home, it is tried again
	return nil
}

// Forget has Checked try again. An error means that it may not.
func Forget(home string) error {
	if err := os.Remove(checkNote(home)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func checkNote(home string) string { return filepath.Join(home, "cache", "overlay") }

// checkKey names all that a check depends on, but for settings that are changed while the
// machine runs.
func checkKey(helper, dir string) (string, error) {
	boot, err := bootID()
	var bin, at unix.Stat_t
	err = errors.Join(err, unix.Stat(helper, &bin), unix.Stat(dir, &at))
	key := fmt.Sprintf("%s\x00%d\x00%s\x00%d\x00%d\x00%d\x00%v\x00%d", boot, os.Geteuid(), helper, bin.Dev, bin.Ino, bin.Size, bin.Ctim, at.Dev)
	for _, ns := range []string{"user", "mnt", "pid"} {
		name, lerr := os.Readlink("/proc/self/ns/" + ns)
		key, err = key+"\x00"+name, errors.Join(err, lerr)
	}
	status, rerr := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Seccomp") || strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
			key += "\x00" + line
		}
	}
	key += "\x00" + atomicfile.ReadLine("/proc/self/attr/current") // AppArmor's profile; none is none
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key))), errors.Join(err, rerr)
}

// Check tries in a scratch folder below dir, which is real, what a workspace needs. The
// error says why that is not possible and, as a hint, what helps.
func Check(ctx context.Context, helper, dir string) (err error) {
	if helper == "" {
		return superqode.WithHint(errors.New("superqode-shim is not installed, which would mount the workspace"), "superqode doctor")
	}
	scratch, err := os.MkdirTemp(dir, ".superqode-overlay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	l := Layers{Lower: []string{scratch + "/lower"}, Upper: scratch + "/upper", Work: scratch + "/work", Socket: scratch + "/socket"}
	if err := os.MkdirAll(l.Lower[0]+"/dir", 0o700); err != nil {
		return err
	}
	for _, name := range []string{"/a", "/dir/b"} {
		if err := os.WriteFile(l.Lower[0]+name, []byte("lower"), 0o600); err != nil {
			return err
		}
	}
	m, err := Open(ctx, helper, l)
	if err != nil {
		var st unix.Statfs_t
		onOverlay := unix.Statfs(dir, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
		return explain(err, dir, onOverlay, func(name string) string { return atomicfile.ReadLine("/proc/sys/" + name) })
	}
	err = use(m, l)
	return errors.Join(err, m.Close())
}

// use writes, renames and deletes, and looks at what the layers hold then.
func use(m *Mount, l Layers) error {
	at := m.Dir()
	err := errors.Join(os.WriteFile(at+"/a", []byte("upper"), 0o600), os.Rename(at+"/dir/b", at+"/c"), os.Mkdir(at+"/new", 0o700))
	if err != nil {
		return fmt.Errorf("an overlay cannot be written to here: %w", err)
	}
	var gone unix.Stat_t
	if err := unix.Lstat(l.Upper+"/dir/b", &gone); err != nil || gone.Mode&unix.S_IFMT != unix.S_IFCHR {
		return fmt.Errorf("an overlay does not note here what was deleted (%w)", err)
	}
	lower, err := os.ReadFile(l.Lower[0] + "/a")
	upper, uerr := os.ReadFile(l.Upper + "/a")
	if err = errors.Join(err, uerr); err != nil || string(lower) != "lower" || string(upper) != "upper" {
		return fmt.Errorf("an overlay does not keep apart here what it is made of (%w)", err)
	}
	return nil
}

// explain names what a machine lacks, from what it answered, from the file system of dir,
// and from its settings (sysctl(8)), "" for none.
func explain(err error, dir string, onOverlay bool, setting func(name string) string) error {
	switch denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES); {
	case onOverlay:
		return superqode.WithHint(fmt.Errorf("%s lies in an overlay itself, as a container's own files do, and can be no layer that is written: %w", dir, err),
			"superqode --home DIR … with a folder of a volume or a tmpfs")
	case errors.Is(err, unix.ENODEV):
		return superqode.WithHint(fmt.Errorf("this kernel has no overlay file system: %w", err), "modprobe overlay")
	case denied && setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return superqode.WithHint(fmt.Errorf("AppArmor takes from user namespaces what mounting needs: %w", err), "superqode doctor --fix")
	case denied && setting("kernel/unprivileged_userns_clone") == "0":
		return superqode.WithHint(fmt.Errorf("this system lets only root make user namespaces: %w", err), "sysctl kernel.unprivileged_userns_clone=1")
	case errors.Is(err, unix.ENOSPC) && setting("user/max_user_namespaces") == "0":
		return superqode.WithHint(fmt.Errorf("this system allows no user namespaces: %w", err), "sysctl user.max_user_namespaces=10000")
	case denied:
		return superqode.WithHint(fmt.Errorf("this machine, or the container around, lets nobody mount in a user namespace: %w", err), "docker run --security-opt seccomp=unconfined …")
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("this kernel, or the file system of %s, does not do (Linux 5.11 is needed): %w", dir, err)
	}
	return err
}
