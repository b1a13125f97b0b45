package guardcmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

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
		dir := superqode.HostPath(in.Dir())
		if err := a.PrintFields("changed", changed, "repository", dir, "status", st); err != nil {
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
		why := st.Problems[0]
		err := superqode.Errorf(superqode.ErrVerification, "the guard is installed, but it does not hold: %s", why)
		return superqode.WithHint(err, "superqode guard status")
	}
	return nil
}

// Uninstall takes the hooks out.
type Uninstall struct{}

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
	if a.Flags.JSON {
		return a.PrintFields("repository", superqode.HostPath(in.Dir()), "installed", r.Installed, "kept", r.Kept,
			"config_as_before", r.Config)
	}
	if !r.Installed {
		return a.Line("not installed in %s", text.Printable(in.Dir()))
	}
	if err := a.Line("removed from %s", text.Printable(in.Dir())); err != nil {
		return err
	}
	for _, path := range r.Kept {
		a.Note("kept %s: its hook was changed after the guard was installed", text.Printable(path))
	}
	if !r.Config {
		a.Note("the configuration was changed after the guard was installed; " +
			"only the guard's own settings were removed")
	}
	return nil
}

// installer finds the repository and the program that the hooks are to call.
func installer(ctx context.Context, a *app.App) (*install.Installer, error) {
	if id := a.Getenv("SUPERQODE_SESSION_ID"); id != "" {
		err := superqode.Errorf(superqode.ErrDenied, "the guard of a repository is not changed from inside session %s",
			text.Printable(id))
		return nil, superqode.WithHint(err, "ask the user")
	}
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	in, err := install.Open(ctx, a.Flags.Repo, a.Env, a.Avoid()...)
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
		err := superqode.Errorf(superqode.ErrDenied,
			"only a person at a terminal can permit an operation in a repository: %s", why)
		return superqode.WithHint(err, "type it into a terminal: superqode guard allow --once %s", op)
	}
	until, err := in.AllowOnce(op)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("repository", superqode.HostPath(in.Dir()), "operation", op, "until", until)
	}
	return a.Line("%s\t%s\tonce, until %s", text.Printable(in.Dir()), op, until.Local().Format("15:04:05"))
}

// guardsRepository reports whether guard install was run in the repository.
func guardsRepository(ctx context.Context, a *app.App) bool {
	in, err := install.Open(ctx, a.Flags.Repo, a.Env, a.Avoid()...)
	return err == nil && in.IsInstalled()
}
