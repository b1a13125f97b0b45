package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode/internal/kernel"
)

// How often Believe looks at what seems to have been changed, and how long it waits: what a
// command has not finished writing is whole soon, what a program wrote stays.
const (
	settle      = 100
	settlePause = 5 * time.Millisecond
)

// Believe reads session.json as a supervisor may believe it: fields that other
// supervisors of the session write are taken from the file, all others from what
// the caller knows. tampered reports that the file could not be read or told something
// else about a field that never changes.
func Believe(sessionDir string, known Record) (rec Record, tampered bool) {
	rec = known
	disk, damaged, err := readRecord(sessionDir)
	for range settle { // a command that runs beside may be writing: the copy first
		if !damaged && err == nil {
			break
		}
		time.Sleep(settlePause)
		disk, damaged, err = readRecord(sessionDir)
	}
	if err != nil {
		return rec, true
	}
	rec.Command, rec.Runs, rec.ExitCode, rec.TimedOut = disk.Command, disk.Runs, disk.ExitCode, disk.TimedOut
	rec.Limit, rec.Truncated = disk.Limit, disk.Truncated
	rec.Pinned, rec.ChangeCount, rec.UpdatedAt = disk.Pinned, disk.ChangeCount, disk.UpdatedAt
	rec.Warnings, rec.Tampered = Merged(rec.Warnings, disk.Warnings), Merged(rec.Tampered, disk.Tampered)
	rec.HeldBy(*disk) // a lie can only make it less
	return rec, damaged || !sameFixed(rec, *disk)
}

// sameFixed compares two records in everything but what Believe takes over, by
// their JSON, so that a field added later is compared too.
func sameFixed(a, b Record) bool {
	b.Command, b.Runs, b.ExitCode, b.TimedOut = a.Command, a.Runs, a.ExitCode, a.TimedOut
	b.Limit, b.Truncated = a.Limit, a.Truncated
	b.Pinned, b.ChangeCount, b.UpdatedAt, b.Warnings, b.Tampered = a.Pinned, a.ChangeCount, a.UpdatedAt, a.Warnings, a.Tampered
	b.Kernel, b.KernelBy, b.KernelMissing = a.Kernel, a.KernelBy, a.KernelMissing
	return same(a, b)
}

func same(a, b Record) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// Merged returns a and what of b is not in it.
func Merged(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Weaker returns the state that promises less, for a session whose programs did
// not all run under the same one.
func Weaker(a, b string) string {
	promise := func(state string) int {
		switch state {
		case kernel.Off:
			return 0
		case kernel.Active:
			return 2
		}
		return 1 // unavailable: why
	}
	if b == "" || a != "" && promise(a) <= promise(b) {
		return a
	}
	return b
}

// HeldBy notes that programs also ran under the kernel layer that o has: the record
// has the weakest.
func (r *Record) HeldBy(o Record) {
	r.Kernel = Weaker(r.Kernel, o.Kernel)
	for _, by := range []string{kernel.None, kernel.Landlock} {
		if o.KernelBy == by || r.KernelBy == by {
			r.KernelBy = by
			break
		}
	}
	r.KernelMissing = Merged(r.KernelMissing, o.KernelMissing)
}
