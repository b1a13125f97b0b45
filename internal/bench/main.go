// Command bench measures superqode beside git on generated repositories and
// compares the numbers with the bounds of the project.
//
// It times whole processes, superqode and git by turns in one run, after a
// warm-up that does not count, and prints medians with their ratio. It asserts
// nothing: it prints a missed bound as MISSED, and -strict makes it an exit
// code.
//
//	make bench
//	make bench BENCH='-sizes 10000 -where tmpfs -only create'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	sizes  []int
	where  []string
	runs   int
	only   *regexp.Regexp
	bin    string
	disk   string
	strict bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	missed, err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case missed > 0:
		os.Exit(3)
	}
}

func parse(stderr io.Writer, args []string) (*options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	sizes := flags.String("sizes", "1000,10000,100000", "numbers of files, separated by commas")
	where := flags.String("where", "tmpfs,disk", "tmpfs (/dev/shm), disk, or both")
	runs := flags.Int("runs", 7, "measured runs of each command")
	only := flags.String("only", "", "groups to run: a pattern for sessions, dirty, changes, inplace, copy, guard, outputs, claims, short")
	bin := flags.String("bin", "", "superqode to measure (default: build it)")
	disk := flags.String("disk", "/var/tmp", "folder for the repositories on disk")
	strict := flags.Bool("strict", false, "exit with 3 when a bound is missed")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o := &options{where: strings.Split(*where, ","), runs: max(*runs, 1), bin: *bin, disk: *disk, strict: *strict}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return nil, err
	}
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 100 { // a hundred of them are changed
			return nil, fmt.Errorf("-sizes: %q is not a number of files, at least 100", s)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, nil
}

// run measures everything and returns how many bounds were missed, or 0 without
// -strict.
func run(ctx context.Context, stdout, stderr io.Writer, args []string) (missed int, err error) {
	o, err := parse(stderr, args)
	if err != nil {
		return 0, err
	}
	if o.bin == "" {
		dir, err := os.MkdirTemp("", "superqode-bench-bin-")
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.bin = filepath.Join(dir, "superqode")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "./cmd/superqode", "./cmd/superqode-shim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = stderr
		if err := build.Run(); err != nil {
			return 0, fmt.Errorf("build superqode (run bench in the module's root): %w", err)
		}
	}
	r := &report{out: stdout}
	r.machine(ctx)
	for _, where := range o.where {
		if err := runIn(ctx, o, r, where); err != nil {
			return 0, err
		}
	}
	r.end()
	if !o.strict {
		return 0, nil
	}
	return r.missed, nil
}

// runIn measures every size on one file system.
func runIn(ctx context.Context, o *options, r *report, where string) (err error) {
	parent := o.disk
	switch where {
	case "tmpfs":
		parent = "/dev/shm"
		if st, err := os.Stat(parent); err != nil || !st.IsDir() {
			r.note("no /dev/shm here, so nothing was measured on tmpfs")
			return nil
		}
	case "disk":
	default:
		return fmt.Errorf("-where: %q is neither tmpfs nor disk", where)
	}
	base, err := os.MkdirTemp(parent, "superqode-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	for _, n := range o.sizes {
		if err := measureSize(ctx, o, r, base, where, n); err != nil {
			return err
		}
		if err := measureInPlace(ctx, o, r, base, where, n); err != nil {
			return err
		}
	}
	if o.only.MatchString("guard") {
		if err := measureGuard(ctx, o, r, base, where); err != nil {
			return err
		}
	}
	if o.only.MatchString("outputs") {
		if err := measureOutputs(ctx, o, r, base, where); err != nil {
			return err
		}
	}
	if o.only.MatchString("claims") {
		if err := measureClaims(ctx, o, r, base, where); err != nil {
			return err
		}
	}
	if o.only.MatchString("short") {
		return measureShort(ctx, o, r, base, where)
	}
	return nil
}
