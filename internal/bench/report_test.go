package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bound is the limit of a ratio: ours ≤ ratio × git's + slack. holds is false
// if the project sets no bound; the numbers are printed all the same.
type bound struct {
	ratio float64
	slack time.Duration
	holds bool
}

// report prints lines as they come and counts the missed bounds.
type report struct {
	out    io.Writer
	missed int
	lines  int
}

func (r *report) note(s string) { fmt.Fprintln(r.out, "note:", s) }

// machine prints which machine the numbers belong to.
func (r *report) machine(ctx context.Context) {
	version, _ := exec.CommandContext(ctx, "git", "version").Output() // "" is honest enough
	fmt.Fprintf(r.out, "%s/%s, %d processors, %s, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), strings.TrimSpace(string(version)))
}

func (r *report) head(where, dir string, n int) {
	fmt.Fprintf(r.out, "\n%d files on %s (%s)\n", n, where, fileSystem(dir))
	if where == "disk" && journalless(dir) {
		r.note("ext4 without a journal creates files up to 20 times slower for minutes after many were deleted: these numbers mislead")
	}
	fmt.Fprintf(r.out, "  %-46s %10s %10s %7s  %s\n", "", "superqode", "git", "ratio", "bound")
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// verdict counts a missed bound.
func (r *report) verdict(ok bool) string {
	r.lines++
	if ok {
		return "ok"
	}
	r.missed++
	return "MISSED"
}

func (r *report) ratio(what string, ours, theirs []time.Duration, b bound) {
	a, g := median(ours), median(theirs)
	line := "-"
	if b.holds {
		line = fmt.Sprintf("<= %.2f", b.ratio)
		if b.slack > 0 {
			line += fmt.Sprintf(" + %v", b.slack)
		}
		line += " " + r.verdict(a <= time.Duration(b.ratio*float64(g))+b.slack)
	}
	fmt.Fprintf(r.out, "  %-46s %10s %10s %7.2f  %s\n", what, seconds(a), seconds(g), float64(a)/float64(g), line)
}

func (r *report) absolute(what string, ours []time.Duration, most time.Duration) {
	m := median(ours)
	fmt.Fprintf(r.out, "  %-46s %10s %10s %7s  <= %v %s\n", what, seconds(m), "", "", most, r.verdict(m <= most))
}

// memory prints the highest resident size that superqode reached at n files.
func (r *report) memory(peak int64, n int) {
	if peak == 0 {
		return
	}
	most := int64(0)
	if n >= boundRSSAt {
		most = boundRSS
	}
	r.peak("peak memory", peak, most)
}

// peak prints a resident size, and its bound unless that is 0.
func (r *report) peak(what string, peak, most int64) {
	line := "-"
	if most > 0 {
		line = fmt.Sprintf("<= %d MiB %s", most>>20, r.verdict(peak <= most))
	}
	fmt.Fprintf(r.out, "  %-46s %6.1f MiB %10s %7s  %s\n", what, float64(peak)/(1<<20), "", "", line)
}

func (r *report) end() {
	fmt.Fprintf(r.out, "\n%d of %d bounds hold\n", r.lines-r.missed, r.lines)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.4f s", d.Seconds()) }

// mount returns the device and type of the file system that dir is on, as the
// kernel names them, or "" if it does not say.
func mount(dir string) (device, kind string) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", ""
	}
	longest := 0
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		if rel, err := filepath.Rel(f[1], dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") && len(f[1]) >= longest {
			device, kind, longest = f[0], f[2], len(f[1])
		}
	}
	return device, kind
}

func fileSystem(dir string) string {
	if _, kind := mount(dir); kind != "" {
		return kind
	}
	return "unknown file system"
}

// journalless reports an ext4 whose device has no journal thread.
func journalless(dir string) bool {
	device, kind := mount(dir)
	if kind != "ext4" {
		return false
	}
	found, err := filepath.Glob("/proc/fs/jbd2/" + filepath.Base(device) + "-*")
	return err == nil && len(found) == 0
}
