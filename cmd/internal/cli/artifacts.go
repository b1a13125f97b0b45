package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// artifactsCmd groups the commands on the artifact store.
type artifactsCmd struct {
	List   artifactsListCmd   `cmd:"" help:"List artifacts."`
	Show   artifactsShowCmd   `cmd:"" help:"Print an artifact's content."`
	Verify artifactsVerifyCmd `cmd:"" help:"Compare every file with the manifest."`
	Add    artifactsAddCmd    `cmd:"" help:"Add a file."`
	Prune  artifactsPruneCmd  `cmd:"" help:"Take away the artifacts of old sessions."`
}

// store opens the artifacts of the origin around the folder that is worked on. In
// a session's workspace they are those of the session's origin, and below an origin
// without git those of the nearest folder that has some.
func (a *app) store() (*artifacts.Store, error) {
	dir := a.flags.Repo
	if m, err := a.sessions(); err == nil { // without a home there is no workspace
		if origin, ok := m.OriginOf(dir); ok {
			return artifacts.Open(origin)
		}
	}
	top := originDir(dir)
	if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
		return artifacts.Open(top)
	}
	for d := top; d != filepath.Dir(d); d = filepath.Dir(d) {
		if st, err := os.Lstat(filepath.Join(d, ".superqode", "qe-artifacts")); err == nil && st.IsDir() {
			return artifacts.Open(d)
		}
	}
	return artifacts.Open(top)
}

// artifactsListCmd lists what sessions left behind.
type artifactsListCmd struct {
	sessionFlag
	Type string `placeholder:"TYPE" help:"Only this type: patch, qr, log, test_unit, …"`
}

// Run prints a table in the order in which the artifacts were added.
func (c *artifactsListCmd) Run(ctx context.Context, a *app) error {
	var filter artifacts.Filter
	var err error
	if c.Type != "" {
		if filter.Type, err = artifacts.ParseType(c.Type); err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--type: %s", err)
		}
	}
	if c.Session != "" {
		if filter.Session, err = c.reportedID(ctx, a); err != nil {
			return err
		}
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	list, err := store.List(ctx, filter)
	if err != nil {
		return err
	}
	a.warnStore(store)
	if a.flags.JSON {
		if list == nil {
			list = []artifacts.Artifact{}
		}
		return a.printJSON(struct {
			SchemaVersion int                  `json:"schema_version"`
			Artifacts     []artifacts.Artifact `json:"artifacts"`
		}{1, list})
	}
	rows := make([][]string, 0, len(list))
	for _, it := range list {
		rows = append(rows, []string{text.Printable(it.ID), text.Printable(string(it.Type)), text.Size(it.Size), it.CreatedAt.Local().Format("2006-01-02 15:04"), text.QuotePath(it.Path.String())})
	}
	return a.table([]string{"ID", "TYPE", "SIZE", "CREATED", "PATH"}, rows)
}

// reportedID returns the id of the session, also when cleanup took it.
func (f sessionFlag) reportedID(ctx context.Context, a *app) (superqode.SessionID, error) {
	l, err := f.find(ctx, a)
	if err == nil {
		return l.ID, nil
	}
	m, merr := a.sessions()
	if merr != nil {
		return superqode.SessionID{}, merr
	}
	if s, rerr := m.AttachReported(ctx, a.flags.Repo, f.Session); rerr == nil {
		return s.Record().ID, nil
	}
	return superqode.SessionID{}, err
}

func (a *app) warnStore(store *artifacts.Store) {
	for _, w := range store.Warnings() {
		a.warn(w.String())
	}
}

// artifactsShowCmd prints one artifact.
type artifactsShowCmd struct {
	Artifact string `arg:"" name:"id" help:"The artifact's id, its name, or name@version."`
	Info     bool   `xor:"what" help:"Print what the manifest says instead."`
	Path     bool   `xor:"what" help:"Print the file's path instead."`
}

// Run prints the content: exact bytes into a file or a pipe, made safe on a
// terminal.
func (c *artifactsShowCmd) Run(ctx context.Context, a *app) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	named, err := store.Resolve(ctx, c.Artifact)
	it := named.Artifact
	if err != nil {
		return superqode.WithHint(err, "superqode artifacts list")
	}
	a.warnStore(store)
	switch {
	case c.Path:
		path := store.File(it)
		if a.outTTY {
			path = text.QuotePath(path)
		}
		_, err := fmt.Fprintln(a.Out, path)
		return err
	case a.flags.JSON:
		return a.printArtifact(named)
	case c.Info:
		return a.artifactInfo(store, it)
	}
	f, err := store.OpenArtifact(it)
	if err != nil {
		return err
	}
	defer f.Close()
	if !a.outTTY {
		_, err = io.Copy(a.Out, f)
		return err
	}
	w := bufio.NewWriter(a.Out)
	p := &patchWriter{w: w, color: a.outColor && it.Type == artifacts.TypePatch}
	if _, err := io.Copy(p, f); err != nil {
		return err
	}
	return errors.Join(p.Close(), w.Flush())
}

// printArtifact prints the manifest's entry as a document of its own.
func (a *app) printArtifact(it artifacts.Named) error {
	entry, err := json.Marshal(it.Artifact)
	if err != nil {
		return err
	}
	doc := append(fmt.Appendf(nil, `{"schema_version":1,"version":%d,`, it.Version), entry[1:]...) // an entry is an object that is never empty
	return a.printJSON(json.RawMessage(doc))
}

func (a *app) artifactInfo(store *artifacts.Store, it artifacts.Artifact) error {
	w := bufio.NewWriter(a.Out)
	line := func(key, value string) { fmt.Fprintf(w, "%-13s%s\n", key+":", value) }
	line("Id", text.Printable(it.ID))
	line("Type", text.Printable(string(it.Type)))
	line("Name", text.Printable(it.Name))
	line("Path", text.QuotePath(store.File(it)))
	line("Description", text.Printable(it.Description))
	line("Created", it.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"))
	line("Session", orDash(it.Session.String()))
	line("Agent", orDash(it.Agent.String()))
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

// artifactsVerifyCmd checks the store.
type artifactsVerifyCmd struct{}

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
func (*artifactsVerifyCmd) Run(ctx context.Context, a *app) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	check, err := store.Verify(ctx)
	if err != nil {
		return err
	}
	a.warnStore(store)
	if a.flags.JSON {
		a.printed = true
		err = a.printJSON(verifyDocument(check))
	} else {
		err = a.printCheck(check)
	}
	if err == nil && !check.OK() {
		err = superqode.Errorf(superqode.ErrVerification, "the artifact store does not fit its manifest")
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

func (a *app) printCheck(check artifacts.Check) error {
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
