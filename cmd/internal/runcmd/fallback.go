package runcmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/overlay"
)

// orElse returns the mode of the configuration, or "" for auto where that is overlay and this
// machine, or another flag, does not let a session have one. It says why, once.
func orElse(ctx context.Context, a *app.App, opt life.OpenOptions, dry bool) (superqode.Mode, error) {
	if !mode.Of(opt.Mode).Mounted {
		return opt.Mode, nil
	}
	m, err := a.Sessions()
	if err != nil {
		return "", err
	}
	switch {
	case opt.KernelOptions.Confine:
		err = errors.New("--confine is Landlock alone")
	case opt.KernelOptions.Enforce == kernel.EnforceOff:
		err = errors.New("the kernel layer is switched off")
	default:
		helper, _ := layers.MachineOf(m.Host).Helper()                    // without one Check says so
		if dir := app.ExistingParent(superqode.RealPrefix(m.Home)); dry { // which leaves no note
			err = overlay.Check(ctx, helper, dir)
		} else {
			err = overlay.Checked(ctx, helper, dir, m.Home)
		}
	}
	if err == nil {
		return opt.Mode, nil
	}
	line := "overlay mode, which the configuration asks for, is not available here: " + err.Error()
	if hint := superqode.Hint(err); hint != "" {
		line += "; " + hint
	}
	told := filepath.Join(m.Home, "told-overlay")
	line = strings.ReplaceAll(line, "\n", " ")
	if atomicfile.ReadLine(told) == line {
		return "", nil
	}
	m.Tell(line)
	if !dry {
		_ = errors.Join(os.MkdirAll(m.Home, 0o700), os.WriteFile(told, []byte(line+"\n"), 0o600)) // else it is told once more
	}
	return "", nil
}
