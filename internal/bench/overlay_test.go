package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/overlay"
)

// The bounds of sessions that work at the origin's own path.
const (
	boundOverlayRun     = 0.05
	boundOverlayRunMany = 0.03 // from boundRSSAt files on
	boundOverlayStatus  = 0.5
	boundOverlayEnd     = 0.5
	boundOverlayExec    = 12 * time.Millisecond
	limitAboveScan      = 25 * time.Millisecond
	changedInOverlay    = 100
	sessionsAtOnce      = 100
	limitSessions       = 10 * time.Second
	limitSessionsBytes  = 10 << 20
)

// timed runs git status and prints how long that took by the clock: it is the same
// measurement inside a session and outside.
const timed = `a=$(date +%s%N); git status --porcelain >"$0"; b=$(date +%s%N); echo $((b-a))`

// printed reads what timed printed.
func (s *subject) printed(c cost) time.Duration {
	ns, err := strconv.ParseInt(strings.TrimSpace(c.stdout), 10, 64)
	s.m.fail(err)
	return time.Duration(ns)
}

// overlay measures sessions at the origin's own path, with the frozen state of the
// origin current, beside linked worktrees.
func (s *subject) overlay(runs, n int, r *report) {
	inside := func(id string, argv ...string) cost {
		return s.superqode(append([]string{"workspace", "exec", "--session", id, "--"}, argv...)...)
	}
	change := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo changed >>"$1"; shift; i=$((i+1)); done`, changedInOverlay)
	paths := []string{"sh", "-c", change, "sh"}
	for i := range changedInOverlay {
		paths = append(paths, gittest.ManyPath(i*(n/changedInOverlay)))
	}
	list := filepath.Join(s.base, "status")
	var run, above, both, first, here, end, remove, exec []time.Duration
	for i := range runs + 1 {
		s.quiet()
		whole := s.superqode("run", "--overlay", "--", "true")
		scan := s.scan()
		id, _, _ := strings.Cut(s.superqode("workspace", "create", "--overlay").stdout, "\t")
		status := s.printed(inside(id, "sh", "-c", timed, list))
		data, err := os.ReadFile(list)
		if err = errors.Join(err, os.Remove(list)); err == nil && len(data) > 0 {
			err = fmt.Errorf("the workspace is not clean: %.200s", data)
		}
		s.m.fail(err)
		bare := inside(id, "true")
		inside(id, paths...)
		ended := s.superqode("workspace", "end", "--session", id)
		s.quiet()
		origin := s.printed(s.m.run(s.Dir, "sh", "-c", timed, "/dev/null"))
		add, worktree := s.addWorktree()
		removed := s.git(s.Dir, "worktree", "remove", "--force", worktree)
		if i == 0 { // warm-up, and the state is made
			continue
		}
		above = append(above, whole.wall-scan)
		run, both = append(run, whole.wall), append(both, add.wall+removed.wall)
		first, here = append(first, status), append(here, origin)
		end, remove = append(end, ended.wall), append(remove, removed.wall)
		exec = append(exec, bare.wall)
	}
	most := boundOverlayRun
	if n >= boundRSSAt {
		most = boundOverlayRunMany
	}
	r.ratio("run --overlay -- true : worktree add + remove", run, both, bound{ratio: most, holds: n >= boundFrom})
	r.ratio("overlay, first status inside : in the origin", first, here, bound{ratio: boundOverlayStatus, holds: n >= boundFrom})
	r.ratio(fmt.Sprintf("overlay end, %d changed : worktree remove", changedInOverlay), end, remove, bound{ratio: boundOverlayEnd, holds: n >= boundFrom})
	r.absolute("overlay, the run above one scan of the origin", above, limitAboveScan)
	r.absolute("overlay, workspace exec -- true", exec, boundOverlayExec)
	if n >= boundRSSAt {
		s.atOnce(r)
	}
}

// overlayWorks reports whether overlays can be mounted here, and says why not.
func overlayWorks(ctx context.Context, p place, o *options, r *report) bool {
	err := overlay.Check(ctx, filepath.Join(filepath.Dir(o.bin), "superqode-shim"), p.base)
	if err != nil {
		r.note("overlay mode was not measured: " + err.Error())
	}
	return err == nil
}

// scan looks at every file of the origin, and returns how long that took.
func (s *subject) scan() time.Duration {
	start := time.Now()
	s.m.fail(filepath.WalkDir(s.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	}))
	return time.Since(start)
}

// atOnce opens many sessions together.
func (s *subject) atOnce(r *report) {
	before := s.used()
	all := s.m.run(s.base, "sh", "-c", `i=0; while [ $i -lt "$1" ]; do "$2" -C "$3" workspace create --overlay & i=$((i+1)); done; wait`,
		"sh", strconv.Itoa(sessionsAtOnce), s.bin, s.Dir)
	ids := strings.Split(strings.TrimSpace(all.stdout), "\n")
	if len(ids) != sessionsAtOnce {
		s.m.fail(fmt.Errorf("%d sessions were opened", len(ids)))
	}
	r.absolute(fmt.Sprint(sessionsAtOnce, " overlays at once"), []time.Duration{all.wall}, limitSessions)
	r.peak("their bytes on the disk", s.used()-before, limitSessionsBytes)
	for _, line := range ids {
		id, _, _ := strings.Cut(line, "\t")
		s.superqode("workspace", "end", "--session", id)
	}
}

// used is the room that superqode's home takes.
func (s *subject) used() (bytes int64) {
	seen := map[uint64]bool{} // a file may have several names
	s.m.fail(filepath.WalkDir(filepath.Join(s.Home, ".superqode"), func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) { // a session goes on working
			err = nil
		}
		if !seen[st.Ino] {
			seen[st.Ino] = true
			bytes += st.Blocks * 512
		}
		return err
	}))
	return bytes
}
