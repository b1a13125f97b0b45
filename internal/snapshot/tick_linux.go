package snapshot

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is one step of the clock that stamps files, which the kernel tells as
// the resolution of CLOCK_REALTIME_COARSE: 1 to 10 ms. It never changes while
// the kernel runs.
var clockTick = sync.OnceValue(func() time.Duration {
	var res unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_REALTIME_COARSE, &res); err != nil || res.Nano() <= 0 || res.Nano() > int64(maxTick) {
		return maxTick
	}
	return time.Duration(res.Nano())
})
