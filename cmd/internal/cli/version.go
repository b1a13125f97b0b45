package cli

import (
	"runtime"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// versionCmd prints the version; it opens nothing.
type versionCmd struct{}

// Run prints one line.
func (*versionCmd) Run(a *app.App) error {
	v := a.BuildVersion()
	if a.Flags.JSON {
		return a.PrintFields("version", v, "go", runtime.Version(), "os", runtime.GOOS, "arch", runtime.GOARCH)
	}
	return a.Line("superqode %s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
