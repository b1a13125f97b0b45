package config

import (
	"time"

	"github.com/seed-2d964004/superqode/internal/text"
)

// Limits bound each program that runs in a session, with everything that it
// starts. A zero field is no limit.
type Limits struct {
	Memory    int64 // bytes
	Pids      int
	CPUTime   time.Duration
	MaxDisk   int64 // bytes
	MaxOutput int64 // bytes to pass on of each stream
	Timeout   time.Duration

	CollectTimeout time.Duration // of a session's end
}

func limitFields() []field {
	return []field{
		{name: "memory", kind: textKind, def: "", check: size, flag: "--memory",
			doc: "Memory of the program and everything that it starts, for example 2G; empty for no limit."},
		{name: "pids", kind: integer, def: int64(0), max: 1 << 22, flag: "--pids",
			doc: "Processes and threads at one time; 0 for no limit."},
		{name: "cpu_time", kind: textKind, def: "", check: period, flag: "--cpu-time",
			doc: "Processor time of all processes together, for example 10m."},
		{name: "max_disk", kind: textKind, def: "", check: size, flag: "--max-disk",
			doc: "By how much the workspace and the session's temporary folders may grow, for example 1G."},
		{name: "max_output", kind: textKind, def: "", check: size, flag: "--max-output",
			doc: "How much of each output stream to pass on; the log has all of it."},
		{name: "timeout", kind: textKind, def: "", check: period, flag: "--timeout",
			doc: "End the program after this time, for example 30m."},
		{name: "collect_timeout", kind: textKind, def: "2m", check: period, flag: "--collect-timeout",
			doc: "Stop collecting what a session left after this time; what is not collected is kept."},
	}
}

// By default a limit is empty: none.
func size(s string) error {
	if s == "" {
		return nil
	}
	_, err := text.ParseSize(s)
	return err
}

func period(s string) error {
	if s == "" {
		return nil
	}
	_, err := text.ParseDuration(s)
	return err
}

// sizeOf is a size that was checked, 0 for an empty one.
func sizeOf(size string) int64 {
	n, _ := text.ParseSize(size)
	return n
}

// limits builds the section; the texts have been checked.
func limits(str func(string) string, num func(string) int64) Limits {
	span := func(key string) time.Duration {
		d, _ := text.ParseDuration(str(key))
		return d
	}
	return Limits{
		Memory: sizeOf(str("limits.memory")), Pids: int(num("limits.pids")), CPUTime: span("limits.cpu_time"),
		MaxDisk: sizeOf(str("limits.max_disk")), MaxOutput: sizeOf(str("limits.max_output")), Timeout: span("limits.timeout"), CollectTimeout: span("limits.collect_timeout"),
	}
}
