package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
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
		return a.PrintJSON(struct {
			SchemaVersion int            `json:"schema_version"`
			Values        []config.Value `json:"values"`
		}{1, values})
	}
	rows := make([][]string, 0, len(values))
	for _, v := range values {
		rows = append(rows, []string{v.Key, text.Printable(v.Text()), text.QuotePath(v.Origin.String())})
	}
	return a.Table([]string{"KEY", "VALUE", "FROM"}, rows)
}

// configInitCmd writes a new superqode.yaml.
type configInitCmd struct{}

// Run never overwrites a file.
func (*configInitCmd) Run(a *app.App) error {
	path := a.Flags.Config
	if path == "" {
		path = filepath.Join(app.OriginDir(a.Flags.Repo), "superqode.yaml")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return superqode.WithHint(superqode.Errorf(superqode.ErrConflict, "%s already exists", path), "superqode config show")
	}
	if err != nil {
		return err
	}
	_, werr := f.WriteString(config.Init())
	if err := errors.Join(werr, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if a.Flags.JSON {
		return a.PrintJSON(map[string]any{"schema_version": 1, "path": path})
	}
	_, err = fmt.Fprintln(a.Out, path)
	return err
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
		return a.PrintJSON(struct {
			SchemaVersion int           `json:"schema_version"`
			Paths         []config.Path `json:"paths"`
		}{1, paths})
	}
	rows := make([][]string, 0, len(paths))
	for _, p := range paths {
		state := "missing"
		if p.Exists {
			state = "read"
		}
		rows = append(rows, []string{string(p.Layer), state, text.QuotePath(p.Path)})
	}
	return a.Table([]string{"LAYER", "STATE", "PATH"}, rows)
}
