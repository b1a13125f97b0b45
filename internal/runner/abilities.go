package runner

// Ability is one thing that the platform lets the runner do, or not.
type Ability struct {
	Name   string // "reaper", "cgroup", "pidfd", "terminal"
	Have   bool
	Detail string // what it is good for, or what its lack means
}
