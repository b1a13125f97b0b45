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

// chooseOverlay lets a session that names no mode have an overlay: where the configuration
// wants one, and for auto where nobody will go to the workspace by its path, as free says,
// and no other option stands against it. Where this machine, or for the configuration's
// another flag, does not let it, the session has the mode of auto elsewhere, and why is said once.
func chooseOverlay(ctx context.Context, a *app.App, opt *life.OpenOptions, free, dry bool) error {
	wanted, held := mode.Of(opt.Mode).Mounted, !opt.Confine && opt.Enforce != kernel.EnforceOff && !opt.Guard.Off
	auto := free && held && opt.Keep != superqode.KeepAlways && opt.MaxTree == 0
	if !wanted && !auto {
		return nil
	}
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	switch {
	case opt.Confine:
		err = errors.New("--confine is Landlock alone")
	case opt.Enforce == kernel.EnforceOff:
		err = errors.New("the kernel layer is switched off")
	default:
		helper, _ := layers.MachineOf(m.Host).Helper()                    // without one Check says so
		if dir := app.ExistingParent(superqode.RealPrefix(m.Home)); dry { // which leaves no note
			err = overlay.Check(ctx, helper, dir)
		} else {
			err = overlay.Checked(ctx, helper, dir, m.Home)
		}
	}
	if opt.Overlay = err == nil; opt.Overlay {
		return nil
	}
	line := "overlay mode is not available here: " + err.Error()
	if wanted {
		opt.Mode, line = "", "overlay mode, which the configuration asks for, is not available here: "+err.Error()
	}
	if hint := superqode.Hint(err); hint != "" {
		line += "; " + hint
	}
	told := filepath.Join(m.Home, "told-overlay")
	line = strings.ReplaceAll(line, "\n", " ")
	if atomicfile.ReadLine(told) == line {
		return nil
	}
	m.Tell(line)
	if !dry {
		_ = errors.Join(os.MkdirAll(m.Home, 0o700), os.WriteFile(told, []byte(line+"\n"), 0o600)) // else it is told once more
	}
	return nil
}
