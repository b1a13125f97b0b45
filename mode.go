package superqode

import (
	"fmt"
	"strings"
)

// Mode says how a session's workspace is made; README.md has the table.
type Mode string

// The modes. ModeAuto is a request, never the mode of an open session.
const (
	ModeAuto        Mode = "auto"
	ModeOverlay     Mode = "overlay"
	ModeWorktree    Mode = "worktree"
	ModeSnapshot    Mode = "snapshot"
	ModeGitSnapshot Mode = "git_snapshot"
	ModeDirectory   Mode = "directory"
	ModeShared      Mode = "shared"
)

// Modes lists every mode in the order in which help prints them.
func Modes() []Mode {
	return []Mode{ModeAuto, ModeOverlay, ModeWorktree, ModeSnapshot, ModeGitSnapshot, ModeDirectory, ModeShared}
}

// ParseMode accepts a mode's name; an unknown one is an error, never a default.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if s == string(m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("%q is not a mode: expected %s", s, strings.Trim(strings.ReplaceAll(fmt.Sprint(Modes()), " ", ", "), "[]"))
}

// UnmarshalText accepts what ParseMode accepts.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMode(string(b))
	return err
}

// Keep says when a session's workspace outlives its end.
type Keep string

// The choices of --keep. KeepFailure is the default: the workspace of a program
// that failed stays for a look.
const (
	KeepAlways  Keep = "always"
	KeepFailure Keep = "failure"
	KeepNever   Keep = "never"
)

// State says how far a session has come.
type State string

// The states of a session: created → active → collecting → reverting → done, or
// preserved when its workspace was kept.
const (
	StateCreated    State = "created"
	StateActive     State = "active"
	StateCollecting State = "collecting"
	StateReverting  State = "reverting"
	StateDone       State = "done"
	StatePreserved  State = "preserved"
)

// Ended reports whether the session's program has run for the last time.
func (s State) Ended() bool { return s == StateDone || s == StatePreserved }

// UnmarshalText accepts the states' names only.
func (s *State) UnmarshalText(b []byte) error {
	switch t := State(b); t {
	case StateCreated, StateActive, StateCollecting, StateReverting, StateDone, StatePreserved:
		*s = t
		return nil
	}
	return fmt.Errorf("%q is not a session state", b)
}
