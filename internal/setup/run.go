package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/text"
)

// command is a run entry.
type command struct {
	config.SetupRun
	key string

	id          string
	outsideOnly string // fingerprint of what it reads outside the workspace, from before it ran
}

func (c *command) step() Step     { return Step{Key: c.key, Kind: KindRun, Name: c.Line} }
func (c *command) optional() bool { return c.Optional }

// facts are what decides whether a command has to run.
type facts struct {
	record      *Record // the success with this definition; nil for none
	other       bool    // an entry of the same name has another definition
	fingerprint string  // now
	marker      string  // as configured
	markerThere bool
	observed    int    // how many patterns are observed
	matches     int    // how much they match now
	result      string // digest of that
}

// decideRun is the whole decision on a command.
func decideRun(f facts) (apply bool, why string) {
	switch {
	case f.record == nil && f.other:
		return true, "its definition has changed"
	case f.record == nil:
		return true, "it has not run here yet"
	case f.record.Fingerprint != f.fingerprint:
		return true, "what it reads has changed"
	case f.marker != "" && !f.markerThere:
		return true, "its marker " + text.Printable(f.marker) + " is not there"
	case f.observed > 0 && f.matches == 0:
		return true, "what it creates is not there"
	case f.observed > 0 && f.record.Result != f.result:
		return true, "what it created has changed"
	}
	return false, "it has run, and nothing that it reads or creates has changed"
}

func (c *command) decide(ctx context.Context, w *work) (apply bool, why string, err error) {
	c.id = w.id(c.definition())
	f := facts{record: w.state.defined(c.id), marker: c.Marker, observed: len(c.Observed)}
	if c.outsideOnly, err = c.outside(ctx); err != nil {
		return false, "", err
	}
	if f.record == nil {
		f.other = w.state.find(func(r Record) bool { return r.Name == c.Line }) != nil && !w.knows(c.Line)
		apply, why = decideRun(f)
		return apply, why, nil
	}
	if f.fingerprint, err = c.fingerprint(ctx, w); err != nil {
		return false, "", err
	}
	if c.Marker != "" {
		_, err := w.root.Lstat(c.Marker)
		f.markerThere = err == nil
	}
	if f.observed > 0 {
		if f.result, f.matches, err = digest(ctx, w.root, c.Observed); err != nil {
			return false, "", err
		}
	}
	apply, why = decideRun(f)
	return apply, why, nil
}

// knows reports whether this run has an earlier entry of that name: two entries
// with one name are not one entry that has changed.
func (w *work) knows(name string) bool {
	return slices.ContainsFunc(w.steps, func(s Step) bool { return s.Name == name })
}

func (c *command) fingerprint(ctx context.Context, w *work) (string, error) {
	inside, err := c.inside(ctx, w.root)
	f := newFramed()
	f.group("command", c.definition(), c.outsideOnly, inside)
	return f.sum(), err
}

// apply runs the command and records its success. It takes the fingerprint of
// what the command reads in the workspace afterwards: a command may write its
// own inputs (a lock file), and nobody else works there.
func (c *command) apply(ctx context.Context, w *work, s *Step) error {
	if c.Marker != "" { // checked before the work is done
		if err := w.checkParent("marker", c.Marker); err != nil {
			return err
		}
	}
	w.state.drop(c.id)
	args := append([]string{c.Command}, c.Args...)
	if c.Shell {
		args = []string{"sh", "-c", c.Command}
	}
	run := Command{Args: args, Line: c.Line, Dir: c.Dir, Timeout: c.Timeout}
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		run.Env = append(run.Env, k+"="+c.Env[k])
	}
	if c.Dir != "" {
		if err := w.checkFolder("cwd "+text.Printable(c.Dir), c.Dir); err != nil {
			return err
		}
		if _, err := w.root.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
			return superqode.Errorf(superqode.ErrNotFound, "cwd %s does not exist in the workspace",
				text.Printable(c.Dir))
		}
	}
	out, err := w.Run(ctx, run)
	s.ExitCode, s.Output = out.ExitCode, out.Output
	switch {
	case err != nil:
		return err
	case out.TimedOut:
		return fmt.Errorf("it did not end within %s", c.Timeout)
	case out.ExitCode != 0:
		return fmt.Errorf("it failed with exit code %d", out.ExitCode)
	}
	if err := w.stillThere(); err != nil {
		return err
	}
	if err := c.mark(w); err != nil {
		return fmt.Errorf("marker %s: %w", text.Printable(c.Marker), err)
	}
	rec := Record{ID: c.id, Name: c.Line, At: time.Now().UTC()}
	if rec.Fingerprint, err = c.fingerprint(ctx, w); err != nil {
		return err
	}
	if len(c.Observed) > 0 {
		if rec.Result, _, err = digest(ctx, w.root, c.Observed); err != nil {
			return err
		}
	}
	w.state.put(rec)
	return nil
}

// mark creates the marker if the command did not.
func (c *command) mark(w *work) error {
	if c.Marker == "" {
		return nil
	}
	if _, err := w.root.Lstat(c.Marker); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.checkParent("marker", c.Marker); err != nil {
		return err
	}
	if dir := path.Dir(c.Marker); dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return w.root.WriteFile(c.Marker, []byte(c.Line+"\n"), 0o644)
}

// stillThere reports a workspace that a command deleted or replaced: writes
// through the open root would then be lost.
func (w *work) stillThere() error {
	now, err := os.Stat(w.Workspace)
	if err != nil {
		return fmt.Errorf("it deleted the workspace: %w", err)
	}
	was, err := w.root.Stat(".")
	if err == nil && !os.SameFile(now, was) {
		err = errors.New("it put something else in the workspace's place")
	}
	return err
}
