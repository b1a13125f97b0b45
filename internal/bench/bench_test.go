package bench

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
	"testing"
)

// moduleRoot is where it lies as the tests of this package see it.
const moduleRoot = "../.."

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

// BenchmarkBounds is the one measurement: its arguments stand behind "--".
func BenchmarkBounds(b *testing.B) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Stderr, flag.Args())
	if errors.Is(err, flag.ErrHelp) {
		b.SkipNow()
	} else if err != nil {
		b.Fatal(err)
	}
	if o.bin == "" {
		o.bin = build(ctx, b)
	}
	fmt.Println()
	r := &report{out: os.Stdout}
	r.machine(ctx)
	for _, where := range o.where {
		runIn(ctx, b, o, r, where)
	}
	r.end()
	if o.strict && r.missed > 0 {
		b.Fail()
	}
}

func parse(stderr io.Writer, args []string) (*options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	sizes := flags.String("sizes", "1000,10000,100000", "numbers of files, separated by commas")
	where := flags.String("where", "tmpfs,disk", "tmpfs (/dev/shm), disk, or both")
	runs := flags.Int("runs", 7, "measured runs of each command")
	only := flags.String("only", "", "groups to run: a pattern for sessions, dirty, changes, inplace, copy, overlay, guard, outputs, claims, manifest, short, workspace")
	bin := flags.String("bin", "", "superqode to measure, from the module's root (default: build it)")
	disk := flags.String("disk", "/var/tmp", "folder for the repositories on disk")
	strict := flags.Bool("strict", false, "fail when a bound is missed")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o := &options{where: strings.Split(*where, ","), runs: max(*runs, 1), bin: *bin, disk: *disk, strict: *strict}
	var err error
	if *bin != "" && !filepath.IsAbs(*bin) {
		if o.bin, err = filepath.Abs(filepath.Join(moduleRoot, *bin)); err != nil {
			return nil, err
		}
	}
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

// build makes superqode and returns its path.
func build(ctx context.Context, b *testing.B) string {
	dir := b.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "./cmd/superqode", "./cmd/superqode-shim")
	build.Dir, build.Env, build.Stderr = moduleRoot, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(dir, "superqode")
}

// runIn measures every size on one file system.
func runIn(ctx context.Context, b *testing.B, o *options, r *report, where string) {
	parent := o.disk
	switch where {
	case "tmpfs":
		parent = "/dev/shm"
		if st, err := os.Stat(parent); err != nil || !st.IsDir() {
			r.note("no /dev/shm here, so nothing was measured on tmpfs")
			return
		}
	case "disk":
	default:
		b.Fatalf("-where: %q is neither tmpfs nor disk", where)
	}
	base, err := os.MkdirTemp(parent, "superqode-bench-")
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(base); err != nil {
			b.Error(err)
		}
	}()
	p := place{b, base, where}
	for _, n := range o.sizes {
		measureSize(ctx, p, o, r, n)
		measureInPlace(ctx, p, o, r, n)
	}
	for _, group := range []struct {
		name    string
		measure func(context.Context, place, *options, *report)
	}{{"guard", measureGuard}, {"outputs", measureOutputs}, {"claims", measureClaims}, {"manifest", measureManifest}, {"short", measureShort}, {"workspace", measureWorkspace}} {
		if o.only.MatchString(group.name) {
			group.measure(ctx, p, o, r)
		}
	}
}
