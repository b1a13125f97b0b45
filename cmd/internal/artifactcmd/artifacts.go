// Package artifactcmd has the commands on what sessions leave behind: artifacts, findings and reports.
package artifactcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
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
		if list == nil {
			list = []artifacts.Artifact{}
		}
		return a.PrintJSON(struct {
			SchemaVersion int                  `json:"schema_version"`
			Artifacts     []artifacts.Artifact `json:"artifacts"`
		}{1, list})
	}
	rows := make([][]string, 0, len(list))
	for _, it := range list {
		rows = append(rows, []string{text.Printable(it.ID), text.Printable(string(it.Type)), text.Size(it.Size), it.CreatedAt.Local().Format("2006-01-02 15:04"), text.QuotePath(it.Path.String())})
	}
	return a.Table([]string{"ID", "TYPE", "SIZE", "CREATED", "PATH"}, rows)
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
func (c *Show) Run(ctx context.Context, a *app.App) error {
	store, err := a.Store()
	if err != nil {
		return err
	}
	named, err := store.Resolve(ctx, c.Artifact)
	it := named.Artifact
	if err != nil {
		return superqode.WithHint(err, "superqode artifacts list")
	}
	warnStore(a, store)
	switch {
	case c.Path:
		path := store.File(it)
		if a.OutTTY {
			path = text.QuotePath(path)
		}
		_, err := fmt.Fprintln(a.Out, path)
		return err
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
	w := bufio.NewWriter(a.Out)
	p := &term.PatchWriter{W: w, Color: a.OutColor && it.Type == artifacts.TypePatch}
	if _, err := io.Copy(p, f); err != nil {
		return err
	}
	return errors.Join(p.Close(), w.Flush())
}

// printArtifact prints the manifest's entry as a document of its own.
func printArtifact(a *app.App, it artifacts.Named) error {
	entry, err := json.Marshal(it.Artifact)
	if err != nil {
		return err
	}
	doc := append(fmt.Appendf(nil, `{"schema_version":1,"version":%d,`, it.Version), entry[1:]...) // an entry is an object that is never empty
	return a.PrintJSON(json.RawMessage(doc))
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
	line("Session", term.OrDash(it.Session.String()))
	line("Agent", term.OrDash(it.Agent.String()))
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

type verifyJSON struct {
	SchemaVersion int                  `json:"schema_version"`
	OK            bool                 `json:"ok"`
	Checked       int                  `json:"checked"`
	Missing       []artifacts.Artifact `json:"missing"`
	Changed       []artifacts.Artifact `json:"changed"`
	Unknown       []string             `json:"unknown"`
	Problems      []string             `json:"problems"`
}

// Run prints what does not fit the manifest; then the exit code is 6.
func (*Verify) Run(ctx context.Context, a *app.App) error {
	store, err := a.Store()
	if err != nil {
		return err
	}
	check, err := store.Verify(ctx)
	if err != nil {
		return err
	}
	warnStore(a, store)
	if a.Flags.JSON {
		err = a.PrintJSON(verifyDocument(check))
	} else {
		err = printCheck(a, check)
	}
	if err == nil && !check.OK() {
		err = superqode.Errorf(superqode.ErrVerification, "the artifact store does not match its manifest")
	}
	return err
}

func verifyDocument(check artifacts.Check) verifyJSON {
	doc := verifyJSON{1, check.OK(), check.Checked, append([]artifacts.Artifact{}, check.Missing...), append([]artifacts.Artifact{}, check.Changed...), []string{}, []string{}}
	for _, p := range check.Unknown {
		text, _ := superqode.JSONPath(p)
		doc.Unknown = append(doc.Unknown, text)
	}
	for _, p := range check.Problems {
		doc.Problems = append(doc.Problems, p.String())
	}
	return doc
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
