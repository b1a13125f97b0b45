package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/ignore"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/linked"
)

// initCmd prepares a project for sessions.
type initCmd struct {
	DryRun bool `help:"Print what would be written, and write nothing."`
	Yes    bool `short:"y" help:"Do not ask for confirmation."`
}

// Run shows what it would write, asks, and writes. What is there stays: lines are added
// to .worktreeinclude, and superqode.yaml is written only where there is none.
func (c *initCmd) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	o, err := m.Resolve(ctx, a.Flags.Repo)
	if err != nil {
		return err
	}
	include, yaml := filepath.Join(o.Top, linked.IncludeFile), filepath.Join(o.Top, "superqode.yaml")
	var ignored func(string, bool) bool
	if o.Repo != nil {
		tree, err := linked.IgnoreTree(ctx, o.Repo, o.Top)
		if err != nil {
			return err
		}
		named := ignore.NewTree(func(superqode.RelPath) ignore.Patterns { return nil }, ignore.ReadThrough(include, false))
		ignored = func(name string, isDir bool) bool {
			path := superqode.RelPath(name)
			return tree.Ignored(path, isDir) && !named.Ignored(path, isDir)
		}
	}
	text, err := os.ReadFile(yaml)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, configured := config.Propose(o.Top, string(text), ignored), err == nil
	say := func(format string, args ...any) { a.Note(format, args...) }
	if c.DryRun && !a.Flags.JSON {
		say = func(format string, args ...any) { _ = a.Line(format, args...) }
	}
	showProposal(say, p, configured)
	written := []string{}
	if toWrite := len(p.Include) > 0 || len(p.Setup) > 0 && !configured; toWrite && !c.DryRun {
		if !c.Yes {
			if err := a.Confirm("Write this?"); err != nil {
				return err
			}
		}
		if written, err = writeProposal(p, include, yaml, configured); err != nil {
			return err
		}
		if len(p.Setup) > 0 {
			say("superqode trust lets sessions run these commands")
		}
	}
	if a.Flags.JSON {
		return a.PrintFields("include", p.Include, "setup", p.YAML(), "written", written)
	}
	for _, path := range written {
		if err := a.Line("%s", a.Path(path)); err != nil {
			return err
		}
	}
	return nil
}

func showProposal(say func(string, ...any), p config.Proposal, configured bool) {
	if len(p.Include)+len(p.Setup) == 0 {
		say("nothing to write: sessions miss nothing here that superqode knows of")
		return
	}
	if len(p.Include) > 0 {
		say("%s, copied into each session:\n  %s", linked.IncludeFile, strings.Join(p.Include, "\n  "))
	}
	if text := strings.TrimSuffix(p.YAML(), "\n"); text != "" {
		where := "superqode.yaml, run before the program:"
		if configured {
			where = "superqode.yaml is there and stays as it is; add this to it:"
		}
		say("%s\n  %s", where, strings.ReplaceAll(text, "\n", "\n  "))
	}
}

// writeProposal returns what it wrote.
func writeProposal(p config.Proposal, include, yaml string, configured bool) (written []string, err error) {
	if len(p.Include) > 0 {
		if err := appendLines(include, p.Include); err != nil {
			return nil, err
		}
		written = append(written, include)
	}
	if len(p.Setup) > 0 && !configured {
		if err := writeNew(yaml, "# Prepares sessions; `superqode config show` lists every key.\n"+p.YAML()); err != nil {
			return written, err
		}
		written = append(written, yaml)
	}
	return written, nil
}

// appendLines adds lines to a file, which may be new.
func appendLines(path string, lines []string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(old) > 0 && old[len(old)-1] != '\n' {
		text = "\n" + text
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, werr := f.WriteString(text)
	return errors.Join(werr, f.Close())
}

// writeNew writes a file that must not be there yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		err := superqode.Errorf(superqode.ErrConflict, "%s already exists", path)
		return superqode.WithHint(err, "superqode config show")
	}
	if err != nil {
		return err
	}
	_, werr := f.WriteString(text)
	if err := errors.Join(werr, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
