// Package config reads superqode.yaml and the layers above and below it.
//
// A key's value comes from the strongest layer that sets it: flag, SUPERQODE_*
// variable, superqode.local.yaml, superqode.yaml of the origin, config.yaml of
// the user, default. A value replaces a weaker one completely, lists included;
// only agents are merged, by name. Each value remembers where it came from.
//
// Nothing is guessed: an unknown key, a value of the wrong type or outside its
// choices is an *Error with file, line and column, and wraps
// superqode.ErrUsage. One table (keys.go) holds the keys, their types, defaults
// and descriptions; the checks, the JSON Schema and the text of `config init`
// come from it.
//
// The commands in setup and agents are data here: this package runs nothing,
// and package session decides whether a committed file's commands may run.
package config

import (
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/outputs"
)

// Config is the effective configuration. Load makes it; the zero value is not
// valid, Default is.
type Config struct {
	Workspace Workspace
	Guard     Guard
	Inputs    []Input                      // in the order of the file
	Setup     []SetupEntry                 // in the order of the file
	Agents    map[superqode.AgentID]string // name → shell command
	Limits    Limits
	Artifacts Artifacts
	Claims    string // advisory or enforced

	values []Value
}

// Workspace says how a session's workspace is made and how long it stays.
type Workspace struct {
	DefaultMode     superqode.Mode
	Template        string // a folder; absolute or begins with ~/, "" for none
	Case            string // "" for none
	Cwd             string // in the workspace; "" for the folder that a session was opened from
	PreserveOnError bool
	CleanupAfter    time.Duration
	MaxSize         int64    // bytes
	SizeSet         bool     // somebody has set MaxSize; see Bound
	ExcludePatterns []string // doublestar patterns, snapshot mode only
	Include         []string // gitignore syntax: ignored files to bring along
	Watcher         Watcher
}

// Bound is what worktrees and the growth of a workspace are held to, in bytes: MaxSize
// where somebody has set it, else 0, nothing. Repositories above the default are common.
func (w Workspace) Bound() int64 {
	if w.SizeSet {
		return w.MaxSize
	}
	return 0
}

// Watcher says how changes are watched while a session runs.
type Watcher struct {
	Enabled        bool
	Debounce       time.Duration
	IgnorePatterns []string // doublestar patterns
}

// Enforce says whether sessions use the guard's kernel layer.
type Enforce string

// The choices of guard.enforce: if the machine supports it, never, or always.
const (
	EnforceAuto     Enforce = "auto"
	EnforceRequired Enforce = "required"
	EnforceOff      Enforce = "off"
)

// Guard adds to the guard's rules.
type Guard struct {
	Enforce Enforce
	Policy  string // qe, contained or destructive
	Allow   []string
	Deny    []string
}

// Artifacts says what is kept of a session.
type Artifacts struct {
	Outputs      []string // doublestar patterns in the workspace
	Limits       outputs.Limits
	KeepSessions int
}

// Values returns every key in the order of the table with its effective value
// and where that came from.
func (c *Config) Values() []Value { return c.values }
