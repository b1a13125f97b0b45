package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The bounds of claims and watching.
const (
	boundClaims    = 15 * time.Millisecond // acquire and release, two commands
	boundWatch     = 3 * time.Second       // until it watches watchFolders
	boundWatchRSS  = 60 << 20
	watchFolders   = 30_000
	slackWatched   = 15 * time.Millisecond
	watchedProgram = "0.2" // seconds
)

// measureClaims measures a claim as two commands, a big repository's watcher, and
// what watching adds to a run.
func measureClaims(ctx context.Context, p place, o *options, r *report) {
	s := newSubject(ctx, p, o.bin, guardFiles)
	r.head(p.where, p.base, guardFiles)
	var pairs []time.Duration
	for i := range 5*o.runs + 1 {
		a := s.superqode("claim", "acquire", "some/file:10-20", "--agent", "alice")
		b := s.superqode("claim", "release", "some/file:10-20", "--agent", "alice")
		if i > 0 {
			pairs = append(pairs, a.wall+b.wall)
		}
	}
	r.absolute("claim acquire + claim release", pairs, boundClaims)
	var with, without []time.Duration
	for i := range 3*o.runs + 1 {
		s.quiet()
		a := s.superqode("run", "--", "sleep", watchedProgram)
		s.m.env = append(s.m.env, "SUPERQODE_WORKSPACE_WATCHER_ENABLED=false")
		s.quiet()
		b := s.superqode("run", "--", "sleep", watchedProgram)
		s.m.env = s.m.env[:len(s.m.env)-1]
		if i > 0 {
			with, without = append(with, a.wall), append(without, b.wall)
		}
	}
	r.ratio("run, watched : run, not watched", with, without, bound{ratio: 1, slack: slackWatched, holds: true})
	s.quiet()
	s.m.fail(os.RemoveAll(s.base))
	measureWatch(ctx, p, o, r)
}

// measureWatch starts the watcher on many folders.
func measureWatch(ctx context.Context, p place, o *options, r *report) {
	dir := p.TempDir()
	for i := range watchFolders {
		folder := filepath.Join(dir, "tree", fmt.Sprint(i%30), fmt.Sprint(i/30))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "f"), nil, 0o644); err != nil {
			p.Fatal(err)
		}
	}
	var starts []time.Duration
	var peak int64
	for i := range o.runs + 1 {
		start, rss, err := watchOnce(ctx, o.bin, dir)
		if err != nil {
			p.Fatal(err)
		}
		if peak = max(peak, rss); i > 0 {
			starts = append(starts, start)
		}
	}
	r.absolute(fmt.Sprintf("watch, %d folders", watchFolders), starts, boundWatch)
	r.peak("its peak memory", peak, boundWatchRSS)
}

// watchOnce runs the watcher until it reports that it watches.
func watchOnce(ctx context.Context, bin, dir string) (start time.Duration, rss int64, err error) {
	cmd := exec.CommandContext(ctx, bin, "watch", "-C", filepath.Join(dir, "tree"))
	cmd.Env = []string{"HOME=" + dir, "SUPERQODE_HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StderrPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	start = time.Since(began)
	if err == nil && !strings.Contains(line, "watching") {
		err = errors.New(line)
	}
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // the benchmark ended it
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		rss = rssBytes(usage)
	}
	return start, rss, err
}
