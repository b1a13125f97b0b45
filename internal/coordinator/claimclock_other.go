//go:build !linux

package coordinator

import "time"

// uptime knows no clock that runs while the machine sleeps: the wall's has to do.
func uptime() (boot string, up time.Duration) { return "", 0 }
