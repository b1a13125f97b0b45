package artifactcmd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/staging"
)

// Add puts a file into the store.
type Add struct {
	app.SessionFlag
	File        string `arg:"" sep:"none" help:"The file, or - for stdin."`
	Type        string `predictor:"type" required:"" placeholder:"TYPE" help:"patch, fix, test_unit, …, coverage, summary, log, screenshot, trace or error."`
	Name        string `help:"Save it as the next version of this name: name@1, name@2, …"`
	Description string `help:"A description."`
}

// Run prints the artifact's id; inside a session, where it has none yet, its path
// in the artifact folder.
func (c *Add) Run(ctx context.Context, a *app.App) error {
	t, err := artifacts.ParseType(c.Type)
	if err != nil {
		return superqode.Errorf(superqode.ErrUsage, "--type: %s", err)
	}
	if c.Name != "" {
		if err := artifacts.CheckName(c.Name); err != nil {
			return superqode.Errorf(superqode.ErrUsage, "--name: %s", err)
		}
	}
	if c.File == "-" && c.Name == "" {
		return superqode.Errorf(superqode.ErrUsage, "an artifact from stdin requires --name")
	}
	in, err := c.open(a)
	if err != nil {
		return err
	}
	defer in.Close()
	if dir := a.Getenv("SUPERQODE_ARTIFACT_DIR"); c.Session == "" && dir != "" && a.Getenv("SUPERQODE_SOCKET") != "" {
		return c.leave(a, dir, t, in)
	}
	n := artifacts.New{
		Type: t, Name: c.Name, Description: c.Description, OriginalFile: c.File,
		Metadata: map[string]any{"source": "user"},
		Open:     func() (io.ReadCloser, error) { return io.NopCloser(in), nil },
	}
	if f, ok := in.(*os.File); ok {
		if st, err := f.Stat(); err == nil {
			n.Perm = st.Mode().Perm()
		}
	}
	if c.Session != "" {
		l, err := c.Find(ctx, a)
		if err != nil {
			return err
		}
		n.Session, n.Agent = l.ID, l.Agent
	}
	store, err := a.Store()
	if err != nil {
		return err
	}
	named, err := c.store(ctx, store, n)
	if err != nil {
		return err
	}
	warnStore(a, store)
	if a.Flags.JSON {
		return printArtifact(a, named)
	}
	return a.Line("%s", named.ID)
}

// store saves under a name, or adds under the file's own.
func (c *Add) store(ctx context.Context, store *artifacts.Store, n artifacts.New) (artifacts.Named, error) {
	if c.Name != "" {
		return store.Save(ctx, n)
	}
	n.Name = filepath.Base(c.File)
	it, err := store.Add(ctx, n)
	if err != nil {
		return artifacts.Named{}, err
	}
	return store.Resolve(ctx, it.ID)
}

// open opens the file, which must be a regular one: a FIFO would never end.
func (c *Add) open(a *app.App) (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(a.In), nil
	}
	path := a.Abs(c.File)
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		var f *os.File
		if f, err = atomicfile.Open(real); err == nil {
			return f, nil
		}
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, superqode.Errorf(superqode.ErrNotFound, "%s does not exist", path)
	case errors.Is(err, atomicfile.ErrNotRegular):
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a regular file", path)
	}
	return nil, err
}

// leave puts the file where the session's end collects it.
func (c *Add) leave(a *app.App, dir string, t artifacts.Type, in io.Reader) error {
	base := filepath.Base(c.File)
	if c.File == "-" {
		base = c.Name
	}
	described := staging.Described{Type: t, Name: c.Name, Description: c.Description, Original: c.File}
	rel, err := staging.Leave(dir, base, described, in)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("type", t, "staged", rel)
	}
	return a.Line("%s", rel)
}
