package cli

import (
	"fmt"
	"runtime"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// versionCmd prints the version; it opens nothing.
type versionCmd struct{}

// versionJSON is what version --json prints.
type versionJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
}

// Run prints one line.
func (*versionCmd) Run(a *app.App) error {
	v := a.BuildVersion()
	if a.Flags.JSON {
		return a.PrintJSON(versionJSON{1, v, runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}
	_, err := fmt.Fprintf(a.Out, "superqode %s (%s, %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
