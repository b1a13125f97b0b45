//go:build !linux

package kernel

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/seed-2d964004/superqode"
)

// Confiner confines a session's programs; see the Linux version.
type Confiner struct {
	Layer Layer
	Plan  Confinement
}

// Open reports that there is no kernel layer here: with EnforceRequired as an
// error, otherwise in Layer.State.
func Open(o Options) (*Confiner, error) {
	k := &Confiner{Layer: Layer{By: None, State: unavailableState("it is a part of Linux, and this is " + runtime.GOOS)}}
	switch {
	case o.Enforce == EnforceRequired:
		return nil, superqode.WithHint(fmt.Errorf("the kernel layer is required and %s", k.Layer.State),
			"--enforce auto runs with the other layers of the guard")
	case o.NoNetwork:
		return nil, fmt.Errorf("--no-network needs the kernel layer, which is %s", k.Layer.State)
	case o.Private.Tmp != "":
		return nil, fmt.Errorf("--private-tmp needs the kernel layer, which is %s", k.Layer.State)
	case o.Shared:
		return nil, fmt.Errorf("--own-network needs the kernel layer, which is %s", k.Layer.State)
	case o.Enforce == EnforceOff:
		k.Layer.State = Off
	}
	return k, nil
}

// Confine does nothing.
func (k *Confiner) Confine() error { return nil }

// Wrap changes nothing.
func (k *Confiner) Wrap(path string, argv []string, _ *os.ProcAttr) (string, []string, error) {
	return path, argv, nil
}

// ConfineProgram refuses.
func ConfineProgram(_, _ []string, errOut io.Writer) int {
	fmt.Fprintln(errOut, "superqode: this system cannot confine programs")
	return 125
}

// GuardsGit reports false.
func (k *Confiner) GuardsGit() bool { return false }

// Close does nothing.
func (k *Confiner) Close() error { return nil }

// Probe reports that there is no kernel layer here.
func Probe(_ context.Context, _, _ string) (apart, inPlace Layer, err error) {
	k, err := Open(Options{})
	if err != nil {
		return apart, inPlace, err
	}
	return k.Layer, k.Layer, nil
}

// Expect reports what the kernel layer would be here.
func Expect() (state string) { return unavailableState("only Linux has it") }
