//go:build !linux

package doctor

import "runtime"

// checkFileSystem says what is not probed here.
func checkFileSystem(home, origin string) []check {
	return []check{{"reflink", checkNote, "not probed on " + runtime.GOOS + ": files are copied byte by byte", ""}}
}

// checkProcesses says what this platform does not have.
func checkProcesses() check {
	return check{"cgroup", checkNote, "not on " + runtime.GOOS + ": processes are found by their environment", ""}
}
