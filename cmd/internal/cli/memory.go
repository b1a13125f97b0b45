package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// startLimit is how much memory superqode takes before it collects garbage. A
// repository of 100,000 files fits, and a short command never collects at all.
const startLimit = 58 << 20

// LimitMemory trades a collection now and then for a small footprint: none below
// startLimit and, in repositories where more is alive than that, one each time
// half as much again is in use. GOGC and GOMEMLIMIT in the environment win.
func LimitMemory(getenv func(string) string) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(startLimit)
	runtime.SetFinalizer(&gcMark{limit: startLimit}, afterGC)
}

// gcMark is an object that nobody holds: each collection finds it.
type gcMark struct{ limit int64 }

// afterGC raises the limit when the last collection left it little room, for the
// next one would follow at once.
func afterGC(m *gcMark) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindUint64 {
		if live := int64(sample[0].Value.Uint64()); live > m.limit/8*7 {
			m.limit = live + live/2
			debug.SetMemoryLimit(m.limit)
		}
	}
	runtime.SetFinalizer(m, afterGC)
}
