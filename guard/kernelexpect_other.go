//go:build !linux

package guard

// ExpectKernel tells what the kernel layer would be here.
func ExpectKernel() (state string) { return unavailableState("only Linux has it") }
