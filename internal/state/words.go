package state

import (
	"time"

	"github.com/seed-2d964004/superqode"
)

// GuardRecord is what a session's record holds about shim and hooks.
type GuardRecord struct {
	Off    bool     `json:"allow_git_operations"`
	Policy string   `json:"policy,omitempty"` // guard.PolicyName
	Allow  []string `json:"allow"`
	Deny   []string `json:"deny"`
	// Shim and Hooks are the layers' states as they were found when the session
	// was opened: active, off or "unavailable: " with the reason.
	Shim  string `json:"shim"`
	Hooks string `json:"hooks"`
	// HooksPath is the user's own core.hooksPath, see guard.SessionState.
	HooksPath HostPath `json:"hooks_path"`
	// Nested are the git directories of other repositories that lay in the origin
	// when a session in place was opened.
	Nested []HostPath `json:"nested"`
}

// GivenSetup is setup that a person asked for on the command line; it comes after
// the configured one.
type GivenSetup struct {
	Bootstrap []string `json:"bootstrap"` // lines for sh
	Inputs    []string `json:"inputs"`    // see config.ParseInput
	Dir       HostPath `json:"dir"`       // what relative paths of Inputs count from
}

// AgentRecord is an agent of a session of several as session.json keeps it.
type AgentRecord struct {
	Agent     superqode.AgentID   `json:"agent_id"`
	Command   string              `json:"command"`
	Session   superqode.SessionID `json:"session_id,omitzero"` // of its own workspace
	ExitCode  *int                `json:"exit_code"`           // nil: it did not run, or how it ended is not known
	TimedOut  bool                `json:"timed_out"`
	StartedAt time.Time           `json:"started_at"`
	EndedAt   time.Time           `json:"ended_at"`
}

// WatcherOptions say how a session's workspace is watched while a program runs
// there. The times at which changes were first seen are all that comes of it:
// what changed is found out by a look at everything in the end, whether somebody
// watched or not.
type WatcherOptions struct {
	Enabled  bool          `json:"enabled"`
	Debounce time.Duration `json:"debounce"`
	Ignore   []string      `json:"ignore_patterns"`
}

// Defaults are what a session keeps for the programs that are run in it: what
// workspace create was given, and what the configuration said then. A zero field
// says nothing.
type Defaults struct {
	Env       []string      `json:"env,omitempty"`
	EnvAllow  []string      `json:"env_allow,omitempty"`
	CleanEnv  bool          `json:"clean_env,omitempty"`
	Cwd       HostPath      `json:"cwd,omitempty"`
	Timeout   time.Duration `json:"timeout,omitempty"` // nanoseconds
	MaxOutput int64         `json:"max_output,omitempty"`
	Memory    int64         `json:"memory,omitempty"`
	Pids      int           `json:"pids,omitempty"`
	CPUTime   time.Duration `json:"cpu_time,omitempty"` // nanoseconds
	MaxDisk   int64         `json:"max_disk,omitempty"`

	CollectTimeout time.Duration `json:"collect_timeout,omitempty"` // nanoseconds; of the session's end
}

// ExitUnknown stands for the exit code of a program of which superqode does not
// know how it ended: one that it could not run, or whose supervisor died.
const ExitUnknown = 125
