package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// view is what the decision about a confinement asks the file system.
type view interface {
	// resolve follows the links in an absolute path. hops are the folders of
	// the links, resolved. The part of the path that does not exist stays as it
	// is.
	resolve(path string) (real string, hops []string, err error)
	// kind returns a path's type without following a last link.
	kind(path string) kind
	// names lists a folder without links.
	names(dir string) []string
	// read returns a small file, or "".
	read(path string) string
	// mounts lists what is mounted where.
	mounts() []mount
	// writable reports whether names in a folder can be changed.
	writable(dir string) bool
	// disks lists the devices through which root reaches what lies below the file
	// systems.
	disks() []string
}

type kind int

const (
	missing kind = iota
	file         // anything that is not a folder
	folder
	link
)

// maxHops is the kernel's own limit of links in one path.
const maxHops = 40

// maxNames bounds how many entries of one folder a narrowed default becomes.
const maxNames = 5000

// disk is the file system as it is. One decision asks where a hundred paths lead, most
// of them below HOME: links is what it knows of them already.
type disk struct{ links map[string]string }

func diskView() view { return disk{map[string]string{}} }

func (d disk) resolve(path string) (string, []string, error) {
	return follow(path, func(p string) (string, error) {
		if target, known := d.links[p]; known {
			return target, nil
		}
		target, err := os.Readlink(p)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			target, err = "", nil
		}
		if err == nil {
			d.links[p] = target
		}
		return target, err
	})
}

// follow answers where p, whose folder is resolved, leads to; "" is nowhere.
func follow(path string, readlink func(p string) (string, error)) (string, []string, error) {
	var hops []string
	real, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		target, err := readlink(next)
		if err != nil {
			return "", nil, err
		}
		if target == "" {
			real = next
			continue
		}
		if hops = append(hops, real); len(hops) > maxHops {
			return "", nil, &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, hops, nil
}

func (disk) kind(path string) kind {
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return missing
	case st.IsDir():
		return folder
	case st.Mode()&fs.ModeSymlink != 0:
		return link
	}
	return file
}

func (disk) names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxNames) // what could be read is what there is
	var names []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

func (disk) read(path string) string {
	data, err := atomicfile.ReadThrough(path)
	if err != nil || len(data) > 1<<16 {
		return ""
	}
	return string(data)
}

func (disk) mounts() []mount {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(data))
}

func (disk) writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

func (disk) disks() []string {
	var list []string
	_ = filepath.WalkDir("/dev", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.IsDir() && slices.Contains([]string{"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/hugepages"}, path):
			return fs.SkipDir
		case isDisk(path, d.Type()):
			list = append(list, path)
		}
		return nil // what cannot be read cannot be opened either
	})
	return list
}

// raw are the devices that are no block devices and lead below the file systems all the
// same: memory, and those that pass commands and data to a disk.
var raw = []string{"mem", "kmem", "port", "sg[0-9]*", "bsg/*", "nvme*", "ng[0-9]*", "mtd[0-9]*", "ubi[0-9]*", "raw/*"}

func isDisk(path string, is fs.FileMode) bool {
	if is&fs.ModeCharDevice == 0 {
		return is&fs.ModeDevice != 0
	}
	return slices.ContainsFunc(raw, func(pattern string) bool {
		ok, _ := filepath.Match("/dev/"+pattern, path)
		return ok
	})
}

// mount is one line of mountinfo: the folder root of file system dev is mounted
// at point.
type mount struct{ dev, root, point string }

// parseMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)): fields 3 to 5
// are device, root and mount point, with octal escapes.
func parseMounts(text string) []mount {
	var list []mount
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		list = append(list, mount{f[2], unescapeOctal(f[3]), unescapeOctal(f[4])})
	}
	return list
}

func unescapeOctal(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// aliases returns the other names that mounts give to the folder at path, or to
// a part of it: a bind mount of the folder, of one above it, or of one in it.
func aliases(mounts []mount, path string) []string {
	var home mount
	for _, m := range mounts { // of two at one point the later one covers the earlier
		if superqode.Within(path, m.point) && len(m.point) >= len(home.point) {
			home = m
		}
	}
	if home.point == "" {
		return nil
	}
	inner := rebase(path, home.point, home.root)
	var names []string
	for _, m := range mounts {
		if m.dev != home.dev {
			continue
		}
		name := ""
		switch {
		case superqode.Within(inner, m.root):
			name = rebase(inner, m.root, m.point)
		case superqode.Within(m.root, inner):
			name = m.point
		}
		if name != "" && !superqode.Within(name, path) {
			names = append(names, name)
		}
	}
	return names
}

// rebase maps path, which is within from, to the same place below to.
func rebase(path, from, to string) string {
	return filepath.Join(to, strings.TrimPrefix(path, from))
}
