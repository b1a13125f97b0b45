//go:build !linux

package doctor

import (
	"context"
	"runtime"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// fileSystem says what is not probed here.
func fileSystem(home, origin string) []check {
	return []check{{"reflink", note, "not probed on " + runtime.GOOS + ": files are copied byte by byte", ""}}
}

// processes says what this platform does not have.
func processes(context.Context, *app.App) []check {
	return []check{{"cgroup", note, "not on " + runtime.GOOS + ": processes are found by their environment", ""}}
}
