package guard

import ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

// ExpectKernel tells what the kernel layer would be here, by the kernel's version
// alone: nothing is tried, and nothing touched. OpenKernel knows better.
func ExpectKernel() (state string) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return unavailableState(noLandlock(err))
	}
	state, _ = kernelState(abi)
	return state
}
