package cli_test

import (
	"fmt"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestCtrlZBetweenVforkAndExec: a child that was stopped before its execve keeps its parent from
// stopping, so Ctrl-Z stops the parent first. A shell is there for a moment at each command; the
// program here, which is this test again, nearly always.
func TestCtrlZBetweenVforkAndExec(t *testing.T) {
	if os.Getenv("SUPERQODE_TEST_VFORK") != "" {
		vforks(t)
		return
	}
	t.Parallel()
	s := openShell(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.types(t, "superqode -q run --mode shared -- env SUPERQODE_TEST_VFORK=1 "+quote(self)+
		" -test.run '^TestCtrlZBetweenVforkAndExec$'\r")
	s.sees(t, "ready\r\n")
	for range 3 {
		s.suspends(t)
		s.sees(t, "prompt>")
		s.stopped(t, "pid", true)
		s.types(t, "fg; echo code $?\r")
		s.leaves(t)
		s.stopped(t, "pid", false)
	}
	s.Write("stop", "")
	s.sees(t, "over")
	s.sees(t, "\ncode 0")
}

// vforks starts one child after the other, and waits for each to make its execve. None does.
func vforks(t *testing.T) {
	moment := unix.NsecToTimespec(int64(200 * time.Millisecond))
	if err := os.WriteFile("pid", fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	for {
		if _, err := os.Lstat("stop"); err == nil {
			fmt.Println("over")
			return
		}
		child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		if child == 0 { // a copy of one thread: nothing but calls of the kernel
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&moment)), 0, 0, 0)
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if _, err := unix.Wait4(int(child), nil, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
}
