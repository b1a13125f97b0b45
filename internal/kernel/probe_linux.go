package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Probe tests the kernel layer in a scratch folder below dir: for a separate
// workspace, and for a session in place. A confined program tries to write
// where it may and where it must not. helper is Options.Helper.
func Probe(ctx context.Context, dir, helper string) (apart, inPlace Layer, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return apart, inPlace, err
	}
	if dir, err = os.MkdirTemp(dir, ".superqode-probe-"); err != nil {
		return apart, inPlace, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, d := range []string{"origin/.git", "home/s"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return apart, inPlace, err
		}
	}
	o := Options{
		Home: dir + "/home", Origin: dir + "/origin", GitDirs: []string{dir + "/origin/.git"}, Own: []string{dir +
			"/home/s"}, Scratch: dir + "/home/s", Helper: helper,
	}
	o.NoNetwork = true
	if apart, err = probe(ctx, o, dir+"/origin"); err != nil { // an old kernel, maybe
		o.NoNetwork = false
		apart, err = probe(ctx, o, dir+"/origin")
	}
	if err != nil {
		return apart, inPlace, err
	}
	o.InPlace, o.NoNetwork = true, false
	inPlace, err = probe(ctx, o, dir+"/origin/.git")
	return apart, inPlace, err
}

// probe runs a program that tries to write to denied, if the layer claims to
// prevent that.
func probe(ctx context.Context, o Options, denied string) (Layer, error) {
	k, err := Open(o)
	if err != nil {
		return Layer{}, err
	}
	layer := k.Layer
	if layer.Active() && !k.wraps { // otherwise the helper has tried
		if err := onThread(func() error { return k.tryProgram(ctx, o.Scratch, denied) }); err != nil {
			layer.State, layer.Applied = unavailableState("the probe failed: "+err.Error()), false
		}
	}
	return layer, errors.Join(ctx.Err(), k.Close())
}

func (k *Confiner) tryProgram(ctx context.Context, allowed, denied string) error {
	if err := k.Confine(); err != nil {
		return err
	}
	const line = `mkdir "$1/in" && rmdir "$1/in" || exit 8; mkdir "$2/out" 2>/dev/null && exit 9; exit 0`
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", line, "sh", allowed, denied).CombinedOutput()
	if err != nil && !errors.Is(err, unix.ENOENT) { // without a shell the thread's own check has to suffice
		return fmt.Errorf("%w: %q", err, out)
	}
	return nil
}

// Expect reports what the kernel layer would be here, from the kernel's version
// alone: it tries nothing and touches nothing. Open knows better.
func Expect() (state string) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return unavailableState(noLandlock(err))
	}
	state, _ = stateOf(abi)
	return state
}
