package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// defaultPath is what execvp uses without a PATH (confstr _CS_PATH).
const defaultPath = "/bin:/usr/bin"

var errNotInPath = errors.New("command not found in PATH")

// childEnv returns spec's environment with one entry for each key, PWD and the
// marker.
func childEnv(spec Spec) []string {
	env := slices.Clone(spec.Env)
	if spec.Marker != "" {
		env = append(env, spec.Marker)
	}
	if spec.Dir != "" {
		env = append(env, "PWD="+spec.Dir)
	}
	return superqode.Override([]string{}, env) // not nil, which would be our own
}

// lookPath finds the path to execute for a program's name as execvp does, but
// in the program's own environment and directory. The result may be relative to
// dir: the child changes its directory first, and a script then sees the same
// $0 as from a shell.
func lookPath(spec Spec) (string, *StartError) {
	name, at := spec.Args[0], func(p string) string { return spec.Outside(under(spec.Dir, p)) }
	if strings.IndexByte(name, 0) >= 0 {
		return "", &StartError{name, exitNotFound, syscall.EINVAL}
	}
	if strings.Contains(name, "/") {
		if err := executable(at(name)); err != nil {
			return "", startError(name, err)
		}
		return name, nil
	}
	path, ok := superqode.LookupEnv(spec.Env, "PATH")
	if !ok {
		path = defaultPath
	}
	var denied error
	for d := range strings.SplitSeq(path, ":") {
		if name == "" {
			break
		}
		p := "./" + name // POSIX: an empty element is the working directory
		if d != "" {
			p = strings.TrimSuffix(d, "/") + "/" + name
		}
		err := executable(at(p))
		switch {
		case err == nil:
			return p, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && denied == nil &&
			searchable(at(p)):
			denied = fmt.Errorf("%s: %w", p, err)
		}
	}
	if denied != nil {
		return "", &StartError{name, exitNoExec, denied}
	}
	return "", &StartError{name, exitNotFound, errNotInPath}
}

// searchable reports whether the folder of p can be searched. An unsearchable
// folder in PATH says nothing about the program: a shell goes on, and finally
// reports "not found".
func searchable(p string) bool {
	_, err := os.Lstat(p)
	return !errors.Is(err, fs.ErrPermission)
}

// under joins without cleaning: "a/../b" is not "b" where a is a link.
func under(dir, p string) string {
	if dir == "" || strings.HasPrefix(p, "/") {
		return p
	}
	return dir + "/" + p
}

// executable returns the bare errno that explains why p cannot be executed.
func executable(p string) error {
	st, err := os.Stat(p)
	if err != nil {
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			return errno
		}
		return err
	}
	if st.IsDir() {
		return syscall.EISDIR
	}
	if !st.Mode().IsRegular() {
		return syscall.EACCES
	}
	return unix.Access(p, unix.X_OK)
}

// startError sorts the errors of execve and of the look-up into 126 and 127.
func startError(name string, err error) *StartError {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return &StartError{name, exitNoExec, err}
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		return &StartError{name, exitNotFound, errno}
	case syscall.ENOEXEC:
		return &StartError{name, exitNoExec, fmt.Errorf("%w (a script needs a first line such as #!/bin/sh)", errno)}
	}
	return &StartError{name, exitNoExec, errno}
}

// execError turns the error of os.StartProcess into a *StartError, unless the
// program is not to blame (no memory, no more processes).
func execError(name string, err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return fmt.Errorf("start %q: %w", name, err)
	}
	switch errno {
	case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		return fmt.Errorf("start %q: %w", name, errno)
	case syscall.ENOENT:
		// The file itself existed a moment ago.
		return &StartError{name, exitNotFound, fmt.Errorf("its interpreter was not found: %w", errno)}
	}
	return startError(name, errno)
}

// startProcess is os.StartProcess that retries after ETXTBSY: a file that was
// just written cannot be executed while a child that another goroutine is
// forking at the same moment still holds it open for writing (Go issue 22315).
func startProcess(path string, argv []string, attr *os.ProcAttr) (p *os.Process, err error) {
	for i := range 6 {
		p, err = os.StartProcess(path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) {
			return p, err
		}
		time.Sleep(5 * time.Millisecond << i)
	}
	return p, err
}
