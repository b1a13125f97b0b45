//go:build !linux

package guard

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/seed-2d964004/superqode"
)

// Kernel holds a session's programs to a confinement; see the Linux version.
type Kernel struct {
	Layer KernelLayer
	Plan  Confinement
}

// OpenKernel tells that there is no kernel layer here: with EnforceRequired by an
// error, otherwise by Layer.State.
func OpenKernel(o KernelOptions) (*Kernel, error) {
	k := &Kernel{Layer: KernelLayer{State: unavailableState("Landlock is a part of Linux, and this is " + runtime.GOOS)}}
	switch {
	case o.Enforce == EnforceRequired:
		return nil, superqode.WithHint(fmt.Errorf("the kernel layer is required and %s", k.Layer.State), "--enforce auto runs with the other layers of the guard")
	case o.NoNetwork:
		return nil, fmt.Errorf("--no-network needs the kernel layer, which is %s", k.Layer.State)
	case o.Enforce == EnforceOff:
		k.Layer.State = LayerOff
	}
	return k, nil
}

// Confine does nothing.
func (k *Kernel) Confine() error { return nil }

// Wraps reports false.
func (k *Kernel) Wraps() bool { return false }

// Wrap changes nothing.
func (k *Kernel) Wrap(path string, argv []string, _ *os.ProcAttr) (string, []string) {
	return path, argv
}

// ConfineProgram refuses.
func ConfineProgram(_, _ []string, errOut io.Writer) int {
	fmt.Fprintln(errOut, "superqode: programs can not be confined on this system")
	return 125
}

// GuardsGit reports false.
func (k *Kernel) GuardsGit() bool { return false }

// Close does nothing.
func (k *Kernel) Close() error { return nil }
