package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// place is where a measurement's repositories lie, and its TempDir too.
type place struct {
	testing.TB
	base, where string
}

func (p place) TempDir() string {
	dir, err := os.MkdirTemp(p.base, "tmp-")
	if err != nil {
		p.Fatal(err)
	}
	return dir
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
func newSubject(ctx context.Context, p place, bin string, n int) *subject {
	onDisk := !strings.HasPrefix(p.base, "/dev/shm")
	p.base = p.TempDir()
	f := gittest.ManyIn(p, filepath.Join(p.base, "repo"), n)
	m := &meter{ctx: ctx, tb: p, env: f.Env(), onDisk: onDisk}
	return &subject{Fixture: f, m: m, bin: bin, base: p.base}
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
func measureSize(ctx context.Context, p place, o *options, r *report, n int) {
	if !o.only.MatchString("sessions") && !o.only.MatchString("dirty") && !o.only.MatchString("changes") {
		return
	}
	s := newSubject(ctx, p, o.bin, n)
	r.head(p.where, p.base, n)
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
	s.m.fail(os.RemoveAll(s.base))
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
		if i == 0 {
			if got, want := s.StatusIn(path), s.Status(); got != want {
				s.m.fail(errors.New("the workspace's status is not the origin's"))
			}
		}
		s.superqode("workspace", "end", "--session", id)
		s.quiet()
		add, worktree := s.addWorktree()
		s.git(s.Dir, "worktree", "remove", "--force", worktree)
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
func measureShort(ctx context.Context, p place, o *options, r *report) {
	s := newSubject(ctx, p, o.bin, 20)
	r.head(p.where, p.base, 20)
	var version, list []time.Duration
	for i := range 3*o.runs + 1 {
		if c := s.superqode("version"); i > 0 {
			version = append(version, c.wall)
		}
	}
	r.absolute("version", version, boundVersion)
	for range listSessions {
		s.create()
	}
	for i := range 3*o.runs + 1 {
		c := s.superqode("workspace", "list")
		if n := strings.Count(c.stdout, "qe-"); n < listSessions {
			s.m.fail(fmt.Errorf("%d sessions, %d listed", listSessions, n))
		}
		if i > 0 {
			list = append(list, c.wall)
		}
	}
	r.absolute(fmt.Sprintf("list, %d sessions", listSessions), list, boundList)
	s.m.fail(os.RemoveAll(s.base))
}
