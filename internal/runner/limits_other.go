//go:build !linux

package runner

// hold enforces nothing: limits of a whole tree need Linux.
type hold struct{ holdings []Holding }

func newHold(l Limits, _ bool) (*hold, error) {
	const missing = "it needs Linux, with cgroups or /proc"
	switch {
	case l.Memory > 0:
		return nil, l.refuse(LimitMemory, missing)
	case l.Pids > 0:
		return nil, l.refuse(LimitPids, missing)
	case l.CPUTime > 0:
		return nil, l.refuse(LimitCPU, missing)
	case l.Disk > 0:
		return nil, l.refuse(LimitDisk, missing)
	}
	return &hold{}, nil
}

func (h *hold) release() {}

func (h *hold) list() []Holding { return nil }

func (h *hold) exceeded(*tree) string { return "" }

func (h *hold) hits() []string { return nil }
