// Package artifactcmd has the commands on what sessions leave behind: artifacts, findings and reports.
package artifactcmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/text"
)

// List lists what sessions left behind.
type List struct {
	app.SessionFlag
	Type string `predictor:"type" placeholder:"TYPE" help:"Only list this type: patch, qr, log, test_unit, …"`
}

// Run prints a table in the order in which the artifacts were added.
func (c *List) Run(ctx context.Context, a *app.App) error {
	var filter artifacts.Filter
	var err error
	if c.Type != "" {
		if filter.Type, err = artifacts.ParseType(c.Type); err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--type: %s", err)
		}
	}
	if c.Session != "" {
		if filter.Session, err = c.ReportedID(ctx, a); err != nil {
			return err
		}
	}
	store, err := a.Store()
	if err != nil {
		return err
	}
	list, err := store.List(ctx, filter)
	if err != nil {
		return err
	}
	warnStore(a, store)
	if a.Flags.JSON {
		return a.PrintFields("artifacts", list)
	}
	header := []string{"ID", "TYPE", "SIZE", "CREATED", "PATH"}
	return a.Table(header, app.Rows(list, func(it artifacts.Artifact) []string {
		return []string{
			text.Printable(it.ID), text.Printable(string(it.Type)), text.Size(it.Size),
			it.CreatedAt.Local().Format("2006-01-02 15:04"), text.QuotePath(it.Path.String()),
		}
	}))
}

func warnStore(a *app.App, store *artifacts.Store) {
	for _, w := range store.Warnings() {
		a.Warn(w.String())
	}
}

// Show prints one artifact.
type Show struct {
	Artifact string `predictor:"artifact" arg:"" name:"id" help:"The artifact's id, its name, or name@version."`
	Info     bool   `xor:"what" help:"Print the manifest's entry instead."`
	Path     bool   `xor:"what" help:"Print the file's path instead."`
}

// Run prints the content: exact bytes into a file or a pipe, made safe on a
// terminal.
func (c *Show) Run(ctx context.Context, a *app.App, store *artifacts.Store) error {
	named, err := store.Resolve(ctx, c.Artifact)
	it := named.Artifact
	if err != nil {
		return superqode.WithHint(err, "superqode artifacts list")
	}
	warnStore(a, store)
	switch {
	case c.Path:
		return a.Line("%s", a.Path(store.File(it)))
	case a.Flags.JSON:
		return printArtifact(a, named)
	case c.Info:
		return artifactInfo(a, store, it)
	}
	f, err := store.OpenArtifact(it)
	if err != nil {
		return err
	}
	defer f.Close()
	if !a.OutTTY {
		_, err = io.Copy(a.Out, f)
		return err
	}
	return a.ShowText(f, a.OutColor && it.Type == artifacts.TypePatch)
}

// printArtifact prints the manifest's entry as a document of its own.
func printArtifact(a *app.App, it artifacts.Named) error {
	entry, err := json.Marshal(it.Artifact)
	if err != nil {
		return err
	}
	doc := fmt.Appendf(nil, `{"schema_version":1,"version":%d,`, it.Version)
	return a.PrintJSON(json.RawMessage(append(doc, entry[1:]...))) // an entry is an object that is never empty
}

func artifactInfo(a *app.App, store *artifacts.Store, it artifacts.Artifact) error {
	w := bufio.NewWriter(a.Out)
	line := func(key, value string) { fmt.Fprintf(w, "%-13s%s\n", key+":", value) }
	line("Id", text.Printable(it.ID))
	line("Type", text.Printable(string(it.Type)))
	line("Name", text.Printable(it.Name))
	line("Path", text.QuotePath(store.File(it)))
	line("Description", text.Printable(it.Description))
	line("Created", it.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"))
	line("Session", cmp.Or(it.Session.String(), "-"))
	line("Agent", cmp.Or(it.Agent.String(), "-"))
	line("Size", fmt.Sprintf("%d", it.Size))
	line("SHA-256", it.SHA256)
	for _, key := range slices.Sorted(maps.Keys(it.Metadata)) {
		value, err := json.Marshal(it.Metadata[key])
		if err != nil {
			return err
		}
		line(text.Printable(key), text.Printable(strings.Trim(string(value), `"`)))
	}
	return w.Flush()
}

// Verify checks the store.
type Verify struct{}

// Run prints what does not fit the manifest; then the exit code is 6.
func (*Verify) Run(ctx context.Context, a *app.App, store *artifacts.Store) error {
	check, err := store.Verify(ctx)
	if err != nil {
		return err
	}
	warnStore(a, store)
	if a.Flags.JSON {
		var unknown []string
		for _, p := range check.Unknown {
			text, _ := superqode.JSONPath(p)
			unknown = append(unknown, text)
		}
		err = a.PrintFields("ok", check.OK(), "checked", check.Checked, "missing", check.Missing,
			"changed", check.Changed, "unknown", unknown, "problems", problems(check.Problems))
	} else {
		err = printCheck(a, check)
	}
	if err == nil && !check.OK() {
		err = superqode.Errorf(superqode.ErrVerification, "the artifact store does not match its manifest")
	}
	return err
}

func problems(list []artifacts.Problem) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return texts
}

func printCheck(a *app.App, check artifacts.Check) error {
	w := bufio.NewWriter(a.Out)
	for _, it := range check.Missing {
		fmt.Fprintf(w, "missing\t%s\n", text.QuotePath(it.Path.String()))
	}
	for _, it := range check.Changed {
		fmt.Fprintf(w, "changed\t%s\n", text.QuotePath(it.Path.String()))
	}
	for _, p := range check.Unknown {
		fmt.Fprintf(w, "unknown\t%s\n", text.QuotePath(p))
	}
	for _, p := range check.Problems {
		fmt.Fprintf(w, "problem\t%s\n", text.Printable(p.String()))
	}
	if check.OK() {
		fmt.Fprintf(w, "verified %s\n", text.Plural(check.Checked, "file"))
	}
	return w.Flush()
}
