//go:build !linux

package runner

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Subreaper does nothing: only Linux can give orphans to a process other than
// init.
func Subreaper() error { return nil }

// StartApart starts a command in a session of its own, and waits for it in the background.
func StartApart(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _, _ = cmd.Process.Wait() }() // or it would stay a zombie; its pipes are the caller's
	return nil
}

// tree is a running program with its process group, whose number is the
// program's.
type tree struct {
	pid     int
	exited  chan struct{}
	stopped chan struct{} // nil: nobody tells
	hold    *hold
	process *os.Process
	state   *os.ProcessState
	err     error
}

func startTree(path string, spec Spec, files []*os.File, ctty bool) (*tree, error) {
	if spec.Confine != nil || spec.Wrap != nil {
		return nil, &ConfineError{errors.New("this system cannot confine programs")}
	}
	hold, err := newHold(spec.Limits, spec.noCgroup)
	if err != nil {
		return nil, err
	}
	attr := &os.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: ctty, Ctty: 0}}
	p, err := startProcess(path, spec.Args, attr)
	if err != nil {
		return nil, err
	}
	t := &tree{hold: hold, pid: p.Pid, process: p, exited: make(chan struct{})}
	go func() {
		t.state, t.err = p.Wait()
		close(t.exited)
	}()
	return t, nil
}

func (t *tree) group(sig syscall.Signal)  { _ = unix.Kill(-t.pid, sig) }
func (t *tree) signal(sig syscall.Signal) { t.group(sig) }
func (t *tree) kill()                     { t.group(syscall.SIGKILL) }

// empty reports whether the group has no members; EPERM means that it has.
func (t *tree) empty() bool { return unix.Kill(-t.pid, 0) == unix.ESRCH }

func (t *tree) doubtful() bool { return false }

func (t *tree) stuck() bool { return unix.Kill(-t.pid, 0) == unix.EPERM }

// survivors has one entry for the whole group: its members have no names here.
func (t *tree) survivors() []Process {
	if t.empty() {
		return nil
	}
	return []Process{{PID: t.pid, Args: []string{"[process group]"}}}
}

func (t *tree) alive(int) bool { return !t.empty() }

func (t *tree) finish() (syscall.WaitStatus, error) {
	if t.err != nil {
		return 0, t.err
	}
	return t.state.Sys().(syscall.WaitStatus), nil
}

func (t *tree) abandon() {}

// leavesCtrlZ is not known: this system hides what a program does about signals.
func leavesCtrlZ(*os.File, int) bool { return false }

// EndMarked finds nothing: this system hides the environment of other
// processes.
func EndMarked(string) ([]Process, error) { return nil, nil }
