package cli

import (
	"context"
	"path/filepath"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/text"
)

// configShowCmd prints the effective configuration.
type configShowCmd struct{}

// Run prints a table.
func (*configShowCmd) Run(ctx context.Context, a *app.App) error {
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return err
	}
	values := cfg.Values()
	if a.Flags.JSON {
		return a.PrintFields("values", values)
	}
	return a.Table([]string{"KEY", "VALUE", "FROM"}, app.Rows(values, func(v config.Value) []string {
		return []string{v.Key, text.Printable(v.Text()), text.QuotePath(v.Origin.String())}
	}))
}

// configInitCmd writes a new superqode.yaml.
type configInitCmd struct{}

// Run never overwrites a file.
func (*configInitCmd) Run(a *app.App) error {
	path := a.Flags.Config
	if path == "" {
		path = filepath.Join(app.OriginDir(a.Flags.Repo), "superqode.yaml")
	}
	if err := writeNew(path, config.Init()); err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("path", path)
	}
	return a.Line("%s", path)
}

// configSchemaCmd prints the schema.
type configSchemaCmd struct{}

// Run prints it as it is published.
func (*configSchemaCmd) Run(a *app.App) error {
	_, err := a.Out.Write(config.Schema())
	return err
}

// configPathCmd lists the files.
type configPathCmd struct{}

// Run prints a line for each file and whether it is there.
func (*configPathCmd) Run(a *app.App) error {
	paths := config.Paths(a.ConfigSources())
	if a.Flags.JSON {
		return a.PrintFields("paths", paths)
	}
	return a.Table([]string{"LAYER", "STATE", "PATH"}, app.Rows(paths, func(p config.Path) []string {
		state := "missing"
		if p.Exists {
			state = "read"
		}
		return []string{string(p.Layer), state, text.QuotePath(p.Path)}
	}))
}
