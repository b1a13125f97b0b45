package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/kernel"
)

// checkConfinement tries the guard's kernel layer on a program in a scratch
// folder, for a workspace of its own and for a session in place.
func (a *app) checkConfinement(ctx context.Context) []check {
	dir := a.getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	helper := ""
	if m, err := a.sessions(); err == nil {
		helper, _ = m.Helper() // a session does without it, too
	}
	apart, inPlace, err := kernel.Probe(ctx, dir, helper)
	if err != nil {
		return []check{{"kernel layer", checkNote, fmt.Sprintf("not tried: %v", err), ""}}
	}
	checks := []check{kernelCheck("kernel layer", "a session's program can not write to the origin", apart)}
	if !apart.Applied {
		return checks
	}
	checks = append(checks, kernelCheck("in place", "with git_snapshot and shared, .git is read-only for the program", inPlace))
	if a.hasBubblewrap() {
		checks = append(checks, check{
			"bubblewrap", checkNote, "can not start under the kernel layer, which lets no mount be made: a program that brings such a sandbox of its own fails in a session",
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
func (a *app) hasBubblewrap() bool {
	return slices.ContainsFunc(filepath.SplitList(a.getenv("PATH")), func(dir string) bool {
		st, err := os.Stat(filepath.Join(dir, "bwrap"))
		return err == nil && filepath.IsAbs(dir) && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	})
}
