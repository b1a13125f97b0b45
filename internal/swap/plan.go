// Package swap changes many paths of one directory, all or none.
//
// A Plan lists the steps. Stage writes every new file beside its place: only
// this needs disk space. Commit then only renames: one system call exchanges
// new and old file, and Commit checks the old one once more when it is out of
// the way. So whatever differs from the plan is back in its place before the
// error is returned, and Undo undoes the earlier steps, again by renames: the
// same files, with their times, owners and other names. Clean deletes what is
// left over.
//
//	d, err := swap.Open(dir)
//	err = d.Stage(ctx, plan, fill)   // plan is on disk with phase Staging before
//	err = d.Commit(ctx, plan)        // … Committing
//	if err != nil { d.Undo(plan) }   // … Undoing
//	err = d.Clean(plan, keep)        // … Cleaning
//
// Every step checks what is there before it does anything, so each of the four
// can be repeated after a crash in the middle of it; the caller keeps the plan
// and its phase on disk. No step follows a link below the directory.
package swap

import (
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Op is what a step does.
type Op string

// The operations. A Put creates or replaces a file or a link; Remove removes
// one; Chmod changes a file's permission bits and nothing else.
const (
	Put    Op = "put"
	Remove Op = "remove"
	Mkdir  Op = "mkdir"
	Rmdir  Op = "rmdir"
	Chmod  Op = "chmod"
)

// Phase says how far a plan has come. The zero value is invalid.
type Phase string

// The phases, in the order in which they are reached; Undoing replaces
// Committing when something is in the way.
const (
	Staging    Phase = "staging"
	Committing Phase = "committing"
	Undoing    Phase = "undoing"
	Cleaning   Phase = "cleaning"
)

// Plan is what Stage, Commit, Undo and Clean work on. It can be kept as JSON.
type Plan struct {
	Phase Phase  `json:"phase"`
	Nonce string `json:"nonce"` // part of the names of the files beside; lower-case letters and digits
	Steps []Step `json:"steps"` // carried out in this order
}

// Step is one path.
type Step struct {
	Op   Op                 `json:"op"`
	Path superqode.HostPath `json:"path"`           // slash-separated, relative to the directory
	Side superqode.HostPath `json:"side,omitempty"` // Put, Remove, Mkdir: the folder where new and old are put aside
	Was  *State             `json:"was,omitempty"`  // nil: nothing may be there
	New  *State             `json:"new,omitempty"`  // the staged file; Stage sets it
	Perm uint32             `json:"perm"`           // permission bits, of Put, Mkdir and Chmod
	Link superqode.HostPath `json:"link,omitempty"` // the target, when a link is put
	Data string             `json:"data,omitempty"` // the caller's name for a file's contents
	// Optional marks a Rmdir of a folder that may not be empty: then it stays.
	Optional bool `json:"optional,omitempty"`
}

// State is what lstat says about a path.
type State struct {
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"` // nanoseconds since 1970
	Ctime int64  `json:"ctime"`
	Mode  uint32 `json:"mode"` // st_mode, type and permission bits
	Nlink uint32 `json:"nlink"`
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
}

// MovedError says that a path differs from the plan. It wraps
// superqode.ErrConflict. What is there was left alone, or put back.
type MovedError struct{ Path string }

// Error names the path.
func (e *MovedError) Error() string {
	return text.Printable(e.Path) + " changed since it was looked at"
}

// Unwrap returns superqode.ErrConflict.
func (*MovedError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the path.
func (e *MovedError) ErrorPaths() []string { return []string{e.Path} }

// Check refuses a plan that no caller of this package makes: plans come from
// disk, where a program may have written them.
func (p *Plan) Check() error {
	switch p.Phase {
	case Staging, Committing, Undoing, Cleaning:
	default:
		return fmt.Errorf("unknown phase %q", p.Phase)
	}
	if len(p.Nonce) < 8 || len(p.Nonce) > 32 {
		return errors.New("bad nonce")
	}
	for _, c := range []byte(p.Nonce) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return errors.New("bad nonce")
		}
	}
	for i := range p.Steps {
		if err := p.Steps[i].check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (s *Step) check() error {
	switch s.Op {
	case Put, Remove, Mkdir, Rmdir, Chmod:
	default:
		return fmt.Errorf("unknown operation %q", s.Op)
	}
	if _, err := superqode.ParseRelPath(string(s.Path)); err != nil {
		return err
	}
	if s.Side != "" {
		if _, err := superqode.ParseRelPath(string(s.Side)); err != nil {
			return err
		}
	}
	if s.Was == nil && (s.Op == Remove || s.Op == Rmdir || s.Op == Chmod) {
		return errors.New("it does not say what is there")
	}
	return nil
}

// names returns the paths at which step i keeps the new and the old file.
func (p *Plan) names(i int) (fresh, old string) {
	base := fmt.Sprintf(".superqode-%s-%d", p.Nonce, i)
	if s := &p.Steps[i]; s.Side != "" {
		base = string(s.Side) + "/" + base
	}
	return base + ".new", base + ".old"
}
