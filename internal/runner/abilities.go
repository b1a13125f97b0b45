package runner

// Ability is one thing that the runner can or cannot do on this platform.
type Ability struct {
	Name   string // "reaper", "cgroup", "pidfd", "terminal"
	Have   bool
	Detail string // what it is for, or what its lack means
}
