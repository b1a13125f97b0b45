package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/kernel"
)

// checkConfinement tries the guard's kernel layer on a program in a scratch
// folder, for a workspace of its own and for a session in place.
func checkConfinement(ctx context.Context, a *app.App) []check {
	dir := a.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	helper := ""
	if m, err := a.Sessions(); err == nil {
		helper, _ = m.Helper() // a session does without it, too
	}
	apart, inPlace, err := kernel.Probe(ctx, dir, helper)
	if err != nil {
		return []check{{"kernel layer", checkNote, fmt.Sprintf("not tried: %v", err), ""}}
	}
	checks := []check{kernelCheck("kernel layer", "a session's program cannot write to the origin", apart)}
	if !apart.Applied {
		return checks
	}
	checks = append(checks, kernelCheck("in place", "with git_snapshot and shared, .git is read-only for the program", inPlace))
	if hasBubblewrap(a) {
		checks = append(checks, check{
			"bubblewrap", checkNote, "cannot start under the kernel layer, which lets no mount be made: a program that brings such a sandbox of its own fails in a session",
			"superqode run --enforce off -- CMD, where the program needs its own",
		})
	}
	return checks
}

func kernelCheck(name, does string, l kernel.Layer) check {
	if l.Active() {
		return check{name, checkOK, fmt.Sprintf("%s, tried (Landlock version %d)", does, l.ABI), ""}
	}
	remedy := ""
	if !l.Applied {
		remedy = "Linux 6.2 or newer with landlock in the lsm= list"
	}
	return check{name, checkNote, strings.TrimPrefix(l.State, "unavailable: "), remedy}
}

// hasBubblewrap looks in the caller's PATH.
func hasBubblewrap(a *app.App) bool {
	return slices.ContainsFunc(filepath.SplitList(a.Getenv("PATH")), func(dir string) bool {
		st, err := os.Stat(filepath.Join(dir, "bwrap"))
		return err == nil && filepath.IsAbs(dir) && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	})
}
