package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What the guard may add to git's own commands, and to a session's start.
const (
	slackShim   = 2 * time.Millisecond
	slackStatus = 4 * time.Millisecond
	slackStart  = 15 * time.Millisecond
	guardFiles  = 1000
)

// measureGuard measures git as a program in a session has it, beside the same git
// in the same workspace without the guard, by turns.
func measureGuard(ctx context.Context, o *options, r *report, base, where string) (err error) {
	defer caught(&err)
	s := newSubject(ctx, o, base, guardFiles)
	r.head(where, base, guardFiles)
	_, id, path := s.create()
	inside, shim := s.sessionMeter(id)
	for _, what := range []struct {
		name  string
		args  []string
		slack time.Duration
	}{
		{"git --version through the shim", []string{"--version"}, slackShim},
		{"git rev-parse through the shim", []string{"rev-parse", "HEAD"}, slackShim},
		{"git status through shim and hooks", []string{"status", "--porcelain"}, slackStatus},
		{"git diff through shim and hooks", []string{"diff", "--stat"}, slackStatus},
	} {
		var ours, theirs []time.Duration
		for i := range 20*o.runs + 1 {
			a := inside.run(path, append([]string{shim}, what.args...)...)
			b := s.git(path, what.args...)
			if i > 0 {
				ours, theirs = append(ours, a.wall), append(theirs, b.wall)
			}
		}
		s.m.fail(inside.err)
		r.ratio(what.name, ours, theirs, bound{ratio: 1, slack: what.slack, holds: true})
	}
	s.superqode("workspace", "end", "--session", id)
	var with, without []time.Duration
	for i := range 3*o.runs + 1 {
		s.quiet()
		a := s.superqode("run", "--", "true")
		s.quiet()
		b := s.superqode("run", "--allow-git-operations", "--", "true")
		if i > 0 {
			with, without = append(with, a.wall), append(without, b.wall)
		}
	}
	r.ratio("run with all layers : run without the guard", with, without, bound{ratio: 1, slack: slackStart, holds: true})
	return errors.Join(s.m.err, os.RemoveAll(s.base))
}

// sessionMeter runs commands with the environment of a session's program; shim is
// the git that is first in its PATH.
func (s *subject) sessionMeter(id string) (m *meter, shim string) {
	inside := *s.m
	env := s.superqode("workspace", "exec", "--session", id, "--", "env", "-0")
	inside.env = strings.FieldsFunc(env.stdout, func(r rune) bool { return r == 0 })
	for _, kv := range inside.env {
		if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
			shim = filepath.Join(filepath.SplitList(dirs)[0], "git")
		}
	}
	if _, err := os.Stat(shim); err != nil {
		s.m.fail(errors.New("the session has no shim"))
	}
	return &inside, shim
}
