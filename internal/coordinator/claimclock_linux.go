package coordinator

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the machine's own clock, which runs while it sleeps and which
// nobody sets, and which start of the machine it counts from ("" when that is
// not known).
func uptime() (boot string, up time.Duration) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return "", 0
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(ts.Nano())
}
