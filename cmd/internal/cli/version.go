package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
func (*versionCmd) Run(a *app) error {
	v := a.version()
	if a.flags.JSON {
		return a.printJSON(versionJSON{1, v, runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}
	_, err := fmt.Fprintf(a.Out, "superqode %s (%s, %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the build's stamp or, without one, what the Go tool recorded.
func (a *app) version() string {
	if a.Version != "" {
		return a.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
