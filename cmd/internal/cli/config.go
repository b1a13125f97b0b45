package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/text"
)

// configCmd groups the commands on superqode.yaml.
type configCmd struct {
	Show   configShowCmd   `cmd:"" help:"Print every key with its value and where that comes from."`
	Init   configInitCmd   `cmd:"" help:"Write a commented superqode.yaml into the origin."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of superqode.yaml."`
	Path   configPathCmd   `cmd:"" help:"Print the files that are read, strongest first."`
}

// configShowCmd prints the effective configuration.
type configShowCmd struct{}

// Run prints a table.
func (*configShowCmd) Run(ctx context.Context, a *app) error {
	cfg, err := a.configuration(ctx)
	if err != nil {
		return err
	}
	values := cfg.Values()
	if a.flags.JSON {
		return a.printJSON(struct {
			SchemaVersion int            `json:"schema_version"`
			Values        []config.Value `json:"values"`
		}{1, values})
	}
	rows := make([][]string, 0, len(values))
	for _, v := range values {
		rows = append(rows, []string{v.Key, text.Printable(v.Text()), text.QuotePath(v.Origin.String())})
	}
	return a.table([]string{"KEY", "VALUE", "FROM"}, rows)
}

// configInitCmd writes a new superqode.yaml.
type configInitCmd struct{}

// Run never overwrites a file.
func (*configInitCmd) Run(a *app) error {
	path := a.flags.Config
	if path == "" {
		path = filepath.Join(originDir(a.flags.Repo), "superqode.yaml")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return superqode.WithHint(superqode.Errorf(superqode.ErrConflict, "%s exists already", path), "superqode config show")
	}
	if err != nil {
		return err
	}
	_, werr := f.WriteString(config.Init())
	if err := errors.Join(werr, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if a.flags.JSON {
		return a.printJSON(map[string]any{"schema_version": 1, "path": path})
	}
	_, err = fmt.Fprintln(a.Out, path)
	return err
}

// configSchemaCmd prints the schema.
type configSchemaCmd struct{}

// Run prints it as it is published.
func (*configSchemaCmd) Run(a *app) error {
	_, err := a.Out.Write(config.Schema())
	return err
}

// configPathCmd lists the files.
type configPathCmd struct{}

// Run prints a line for each file and whether it is there.
func (*configPathCmd) Run(a *app) error {
	paths := config.Paths(a.configSources())
	if a.flags.JSON {
		return a.printJSON(struct {
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
	return a.table([]string{"LAYER", "STATE", "PATH"}, rows)
}
