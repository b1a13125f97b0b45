package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/overlay"
	"github.com/seed-2d964004/superqode/internal/text"
)

// overlays tries overlay mode in a scratch folder beside where its sessions would lie.
func (c *Cmd) overlays(ctx context.Context, a *app.App) []check {
	home, err := life.HomeDir(a.Flags.Home, a.Env)
	if err != nil {
		return nil // homeFolder tells
	}
	helper := ""
	if m, err := a.Sessions(); err == nil {
		helper, _ = layers.MachineOf(m.Host).Helper()
	}
	one := check{"overlay", ok, "a session can have its workspace at the origin's own path, tried", ""}
	if err := overlay.Check(ctx, helper, app.ExistingParent(home)); err != nil {
		one = failed("overlay", note, err)
	}
	if list := c.userNamespaces(ctx, a, "/"); list != nil {
		return append([]check{one}, *list)
	}
	return []check{one}
}

// appArmorProfile is where a profile for superqode lies. Since Ubuntu 23.10 AppArmor takes
// the rights in a user namespace from programs that have none
// (https://discourse.ubuntu.com/t/spec-unprivileged-user-namespace-restrictions-via-apparmor-in-ubuntu-23-10/37626).
const appArmorProfile = "etc/apparmor.d/superqode"

// userNamespaces is nil where AppArmor lets this program have user namespaces. With --fix
// it writes, after a yes, the profile that makes it so.
func (c *Cmd) userNamespaces(ctx context.Context, a *app.App, root string) *check {
	setting, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns"))
	file := filepath.Join(root, appArmorProfile)
	if err != nil || strings.TrimSpace(string(setting)) != "1" || atomicfile.Exists(file) {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "superqode"
	}
	again := "sudo " + text.QuotePOSIX(exe) + " doctor --fix"
	one := &check{"apparmor", note, "AppArmor takes from user namespaces what overlay mode and the kernel layer's mounts need", again}
	switch {
	case !c.Fix || os.Geteuid() != 0:
		return one
	case !c.Yes && (a.Flags.NoInput || !term.IsTerminal(a.In)):
		one.Remedy = again + " --yes"
		return one
	}
	profile := profileFor(exe)
	if !c.Yes {
		a.Note("%s", profile)
		if err := a.Confirm("Write this profile to " + file + " and load it?"); err != nil {
			return one
		}
	}
	err = atomicfile.Whole.Write(file, []byte(profile), 0o644)
	if err == nil {
		var out []byte
		if out, err = exec.CommandContext(ctx, "apparmor_parser", "--replace", file).CombinedOutput(); err != nil {
			err = errors.Join(fmt.Errorf("apparmor_parser: %w: %s", err, strings.TrimSpace(string(out))), os.Remove(file))
		}
	}
	if err != nil {
		bad := failed("apparmor", fail, err)
		return &bad
	}
	return &check{"apparmor", done, file + " lets superqode have user namespaces", ""}
}

// profileFor is the profile of a superqode and the superqode-shim beside it: they may do
// what they could without AppArmor, and have user namespaces.
func profileFor(exe string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `@`, `\@`).Replace(exe)
	return fmt.Sprintf(`# User namespaces for superqode: overlay mode and the read-only mounts of its sessions.
abi <abi/4.0>,
include <tunables/global>

profile superqode "%s{,-shim}" flags=(unconfined) {
  userns,
  include if exists <local/superqode>
}
`, quoted)
}
