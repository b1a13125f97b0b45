package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// The bounds of the project, as ratios to git's own command. The smallest size
// has none: there most of the time is a process's start.
const (
	boundCreate  = 0.4
	boundStatus  = 0.5
	boundDirty   = 0.5
	boundEnd     = 0.7
	boundChanges = 1.0
	slackChanges = 10 * time.Millisecond
	boundVersion = 5 * time.Millisecond
	boundList    = 20 * time.Millisecond
	boundRSS     = 80 << 20
	boundFrom    = 10_000 // files
	boundRSSAt   = 100_000
	listSessions = 500
)

// fatal is what a fixture's Fatalf panics with.
type fatal struct{ error }

// tb lets the test fixtures work outside of a test.
type tb struct{ base string }

func (tb) Helper() {}

func (tb) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

func (t tb) TempDir() string {
	dir, err := os.MkdirTemp(t.base, "tmp-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return dir
}

// caught turns a fixture's panic into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		f, ok := p.(fatal)
		if !ok {
			panic(p)
		}
		*err = f.error
	}
}

// subject is one repository and the commands to run on it.
type subject struct {
	*gittest.Fixture
	m     *meter
	bin   string
	base  string
	count int
}

// newSubject makes a repository of n files with a home of its own on the same
// file system.
func newSubject(ctx context.Context, o *options, base string, n int) *subject {
	dir := tb{base}.TempDir()
	f := gittest.ManyIn(tb{dir}, filepath.Join(dir, "repo"), n)
	return &subject{Fixture: f, m: &meter{ctx: ctx, env: f.Env(), onDisk: !strings.HasPrefix(base, "/dev/shm")}, bin: o.bin, base: dir}
}

func (s *subject) superqode(args ...string) cost {
	return s.m.run(s.base, append([]string{s.bin, "-C", s.Dir}, args...)...)
}

func (s *subject) git(dir string, args ...string) cost {
	return s.m.run(dir, append([]string{"git"}, args...)...)
}

// create opens a session and returns its id and workspace.
func (s *subject) create() (c cost, id, path string) {
	c = s.superqode("workspace", "create")
	id, path, ok := strings.Cut(strings.TrimSpace(c.stdout), "\t")
	if !ok {
		s.m.fail(fmt.Errorf("workspace create printed %q", c.stdout))
	}
	return c, id, path
}

func (s *subject) addWorktree() (cost, string) {
	s.count++
	path := filepath.Join(s.base, fmt.Sprintf("worktree-%d", s.count))
	return s.git(s.Dir, "worktree", "add", "--quiet", "--detach", path), path
}

// quiet waits until superqode has swept its trash in the background, so that
// this does not slow down the next measurement.
func (s *subject) quiet() {
	for range 600 {
		left, err := filepath.Glob(filepath.Join(s.Home, ".superqode", "working", "*", "trash", "*"))
		if err != nil || len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.m.fail(errors.New("the trash is still not swept after a minute"))
}

// measureSize measures everything that depends on the number of files.
func measureSize(ctx context.Context, o *options, r *report, base, where string, n int) (err error) {
	defer caught(&err)
	if !o.only.MatchString("sessions") && !o.only.MatchString("dirty") && !o.only.MatchString("changes") {
		return nil
	}
	s := newSubject(ctx, o, base, n)
	r.head(where, base, n)
	if o.only.MatchString("sessions") {
		s.sessions(o.runs, n, r)
	}
	if o.only.MatchString("changes") {
		s.changes(o.runs, n, r)
	}
	if o.only.MatchString("dirty") {
		s.dirty(o.runs, n, r)
	}
	r.memory(s.m.peak, n)
	return errors.Join(s.m.err, os.RemoveAll(s.base))
}

// sessions measures opening and ending: a session beside a linked worktree,
// again and again.
func (s *subject) sessions(runs, n int, r *report) {
	var ours, theirs [3][]time.Duration
	for i := range runs + 1 {
		s.quiet()
		create, id, path := s.create()
		status := s.git(path, "status", "--porcelain")
		end := s.superqode("workspace", "end", "--session", id)
		s.quiet()
		add, worktree := s.addWorktree()
		theirStatus := s.git(worktree, "status", "--porcelain")
		remove := s.git(s.Dir, "worktree", "remove", "--force", worktree)
		if s.m.err != nil {
			return
		}
		if status.stdout != "" || theirStatus.stdout != "" {
			s.m.fail(fmt.Errorf("the workspace is not clean: %.200s", status.stdout+theirStatus.stdout))
		}
		if i == 0 { // warm-up
			continue
		}
		for j, d := range []time.Duration{create.wall, create.wall + status.wall, end.wall} {
			ours[j] = append(ours[j], d)
		}
		for j, d := range []time.Duration{add.wall, add.wall + theirStatus.wall, remove.wall} {
			theirs[j] = append(theirs[j], d)
		}
	}
	r.ratio("create : worktree add --detach", ours[0], theirs[0], bound{ratio: boundCreate, holds: n >= boundFrom})
	r.ratio("create + first status : the same", ours[1], theirs[1], bound{ratio: boundStatus, holds: n >= boundFrom})
	r.ratio("end untouched : worktree remove --force", ours[2], theirs[2], bound{ratio: boundEnd, holds: n >= boundFrom})
}

// changes measures change detection in one workspace, untouched and with 100
// files changed.
func (s *subject) changes(runs, n int, r *report) {
	_, id, path := s.create()
	for _, changed := range []int{0, 100} {
		for i := range changed {
			s.append(filepath.Join(path, filepath.FromSlash(gittest.ManyPath(i*(n/changed)))))
		}
		var ours, theirs []time.Duration
		for i := range runs + 1 {
			a := s.superqode("workspace", "changes", "--session", id, "--json")
			b := s.git(path, "status", "--porcelain=v2", "-uall")
			if s.m.err != nil {
				return
			}
			if x, y := strings.Count(a.stdout, "\n"), strings.Count(b.stdout, "\n"); x != changed || y != changed {
				s.m.fail(fmt.Errorf("%d files changed, superqode says %d, git %d", changed, x, y))
			}
			if i > 0 {
				ours, theirs = append(ours, a.wall), append(theirs, b.wall)
			}
		}
		r.ratio(fmt.Sprintf("changes, %d changed : status -uall", changed), ours, theirs, bound{ratio: boundChanges, slack: slackChanges, holds: n >= boundFrom})
	}
	s.superqode("workspace", "end", "--session", id)
}

// dirty measures opening a session that carries 100 modified and 200 untracked
// files along.
func (s *subject) dirty(runs, n int, r *report) {
	for i := range 100 {
		s.append(s.Path(gittest.ManyPath(i * (n / 100))))
	}
	for i := range 200 {
		s.Write(fmt.Sprintf("untracked/%d/file_%d.txt", i%20, i), strings.Repeat(fmt.Sprintln("untracked", i), 200))
	}
	var ours, theirs []time.Duration
	for i := range runs + 1 {
		s.quiet()
		create, id, path := s.create()
		if s.m.err == nil && i == 0 {
			if got, want := s.StatusIn(path), s.Status(); got != want {
				s.m.fail(errors.New("the workspace's status is not the origin's"))
			}
		}
		s.superqode("workspace", "end", "--session", id)
		s.quiet()
		add, worktree := s.addWorktree()
		s.git(s.Dir, "worktree", "remove", "--force", worktree)
		if s.m.err != nil {
			return
		}
		if i > 0 {
			ours, theirs = append(ours, create.wall), append(theirs, add.wall)
		}
	}
	r.ratio("create, 100 modified + 200 untracked : add", ours, theirs, bound{ratio: boundDirty, holds: n >= boundFrom})
}

func (s *subject) append(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("changed\n")
		err = errors.Join(err, f.Close())
	}
	s.m.fail(err)
}

// measureShort measures the commands that should cost next to nothing.
func measureShort(ctx context.Context, o *options, r *report, base, where string) (err error) {
	defer caught(&err)
	s := newSubject(ctx, o, base, 20)
	r.head(where, base, 20)
	var version, list []time.Duration
	for i := range 3*o.runs + 1 {
		if c := s.superqode("version"); i > 0 {
			version = append(version, c.wall)
		}
	}
	r.absolute("version", version, boundVersion)
	for range listSessions {
		if s.create(); s.m.err != nil {
			break
		}
	}
	for i := range 3*o.runs + 1 {
		c := s.superqode("workspace", "list")
		if n := strings.Count(c.stdout, "qe-"); s.m.err == nil && n < listSessions {
			s.m.fail(fmt.Errorf("%d sessions, %d listed", listSessions, n))
		}
		if i > 0 {
			list = append(list, c.wall)
		}
	}
	r.absolute(fmt.Sprintf("list, %d sessions", listSessions), list, boundList)
	return errors.Join(s.m.err, os.RemoveAll(s.base))
}
