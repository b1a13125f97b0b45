//go:build !linux

package snapshot

import "time"

// clockTick is one step of the clock that stamps files, at its longest.
func clockTick() time.Duration { return maxTick }
