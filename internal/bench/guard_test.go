package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The bounds of what the guard adds to git's own commands, and to a session's
// start.
const (
	slackShim   = 2 * time.Millisecond
	slackStatus = 4 * time.Millisecond
	slackStart  = 15 * time.Millisecond
	slackCommit = 10 * time.Millisecond
	limitCheck  = 5 * time.Millisecond
	guardFiles  = 1000
)

// measureGuard measures the git of a session's program beside the same git in
// the same workspace without the guard, by turns.
func measureGuard(ctx context.Context, p place, o *options, r *report) {
	s := newSubject(ctx, p, o.bin, guardFiles)
	r.head(p.where, p.base, guardFiles)
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
	s.guardInstalled(o.runs, r)
	s.m.fail(os.RemoveAll(s.base))
}

// guardInstalled measures commits in a repository with guard install, whose hooks
// decide and let them pass, beside the same without any hook; and guard check.
func (s *subject) guardInstalled(runs int, r *report) {
	s.m.fail(os.WriteFile(filepath.Join(s.Dir, "superqode.yaml"), []byte("guard: {allow: [commit]}\n"), 0o600))
	s.superqode("guard", "install")
	var with, without, check []time.Duration
	for i := range 10*runs + 1 {
		a := s.git(s.Dir, "commit", "-q", "--allow-empty", "-m", "guarded")
		b := s.git(s.Dir, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "bare")
		c := s.superqode("guard", "check", "--", "cd src && git add -A && git log --oneline | head")
		if i > 0 {
			with, without, check = append(with, a.wall), append(without, b.wall), append(check, c.wall)
		}
	}
	r.ratio("git commit with guard install : without", with, without, bound{ratio: 1, slack: slackCommit, holds: true})
	r.absolute("guard check of one line", check, limitCheck)
	s.superqode("guard", "uninstall")
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
