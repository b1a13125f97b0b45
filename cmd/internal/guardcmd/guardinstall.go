package guardcmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/hooks"
	"github.com/seed-2d964004/superqode/hooks/install"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Install puts hooks into the user's own repository.
type Install struct {
	Strict bool `help:"Also refuse people at a terminal, who can permit single operations with guard allow --once."`
}

type guardInstallJSON struct {
	SchemaVersion int                `json:"schema_version"`
	Changed       bool               `json:"changed"`
	Repository    superqode.HostPath `json:"repository"`
	Status        *install.Status    `json:"status"`
}

// Run installs and looks whether it holds.
func (c *Install) Run(ctx context.Context, a *app.App) error {
	in, err := installer(ctx, a)
	if err != nil {
		return err
	}
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return err
	}
	changed, err := in.Install(ctx, install.Options{Strict: c.Strict, Allow: cfg.Guard.Allow, Deny: cfg.Guard.Deny})
	if err != nil {
		return err
	}
	st, err := in.Inspect(ctx, layers.MachineOf(a.Manager.Host).CachePath())
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		if err := a.PrintJSON(guardInstallJSON{1, changed, superqode.HostPath(in.Dir()), st}); err != nil {
			return err
		}
	} else {
		done := "installed"
		if !changed {
			done = "already installed"
		}
		fmt.Fprintf(a.Out, "%s in %s\n", done, text.Printable(in.Dir()))
		printInstallation(a, st)
	}
	if !st.Firing {
		return superqode.WithHint(superqode.Errorf(superqode.ErrVerification, "the guard is installed, but it does not hold: %s", st.Problems[0]), "superqode guard status")
	}
	return nil
}

// Uninstall takes the hooks out.
type Uninstall struct{}

type guardUninstallJSON struct {
	SchemaVersion int                `json:"schema_version"`
	Repository    superqode.HostPath `json:"repository"`
	Installed     bool               `json:"installed"` // there was something to take out
	Kept          []string           `json:"kept"`
	ConfigAsIt    bool               `json:"config_as_before"`
}

// Run uninstalls.
func (*Uninstall) Run(ctx context.Context, a *app.App) error {
	in, err := installer(ctx, a)
	if err != nil {
		return err
	}
	r, err := in.Uninstall(ctx)
	if err != nil {
		return err
	}
	if r.Kept == nil {
		r.Kept = []string{}
	}
	if a.Flags.JSON {
		return a.PrintJSON(guardUninstallJSON{1, superqode.HostPath(in.Dir()), r.Installed, r.Kept, r.Config})
	}
	if !r.Installed {
		fmt.Fprintf(a.Out, "not installed in %s\n", text.Printable(in.Dir()))
		return nil
	}
	fmt.Fprintf(a.Out, "removed from %s\n", text.Printable(in.Dir()))
	for _, path := range r.Kept {
		a.Note("kept %s: its hook was changed after the guard was installed", text.Printable(path))
	}
	if !r.Config {
		a.Note("the configuration was changed after the guard was installed; only the guard's own settings were removed")
	}
	return nil
}

// installer finds the repository and the program that the hooks are to call.
func installer(ctx context.Context, a *app.App) (*install.Installer, error) {
	if id := a.Getenv("SUPERQODE_SESSION_ID"); id != "" {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "the guard of a repository is not changed from inside session %s", text.Printable(id)), "ask the user")
	}
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	in, err := install.Open(ctx, a.Flags.Repo, a.Env)
	if err != nil {
		return nil, err
	}
	helper, err := layers.MachineOf(m.Host).Helper()
	if err != nil {
		return nil, err
	}
	in.Helper, in.Version = lastingPath(helper, a.Getenv("PATH")), a.BuildVersion()
	return in, nil
}

// lastingPath prefers the name under which PATH has a program: a package manager
// puts each version into a folder of its own, and one link for all of them there.
func lastingPath(program, path string) string {
	st, err := os.Stat(program)
	if err != nil {
		return program
	}
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, filepath.Base(program))
		if other, err := os.Stat(p); err == nil && filepath.IsAbs(dir) && os.SameFile(st, other) {
			return p
		}
	}
	if p, err := exec.LookPath(program); err == nil {
		return p
	}
	return program
}

// allowInRepository lets one operation through in a repository that has the guard
// installed. Only a person at a terminal can: a program's "yes" would be its own.
func allowInRepository(ctx context.Context, a *app.App, op guard.Operation) error {
	in, err := installer(ctx, a)
	if err != nil {
		return err
	}
	if person, why := hooks.AtTerminal(os.Getpid(), a.Env); !person || a.Flags.NoInput {
		if person {
			why = "--no-input was given"
		}
		return superqode.WithHint(superqode.Errorf(superqode.ErrDenied, "only a person at a terminal can permit an operation in a repository: %s", why), "type it into a terminal: superqode guard allow --once %s", op)
	}
	until, err := in.AllowOnce(op)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(struct {
			SchemaVersion int                `json:"schema_version"`
			Repository    superqode.HostPath `json:"repository"`
			Operation     guard.Operation    `json:"operation"`
			Until         time.Time          `json:"until"`
		}{1, superqode.HostPath(in.Dir()), op, until})
	}
	_, err = fmt.Fprintf(a.Out, "%s\t%s\tonce, until %s\n", text.Printable(in.Dir()), op, until.Local().Format("15:04:05"))
	return err
}

// guardsRepository reports whether guard install was run in the repository.
func guardsRepository(ctx context.Context, a *app.App) bool {
	in, err := install.Open(ctx, a.Flags.Repo, a.Env)
	return err == nil && in.IsInstalled()
}
