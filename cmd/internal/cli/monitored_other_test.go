//go:build !linux

package cli_test

// monitored has nothing to compare: there are no overlays here.
func monitored() {}
