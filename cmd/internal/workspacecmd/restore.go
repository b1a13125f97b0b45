package workspacecmd

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Restore gets back what a revert or a cleanup had salvaged.
type Restore struct {
	Salvage string `predictor:"salvage" arg:"" optional:"" help:"The salvage: SESSION/N, a session with a single salvage, or the salvage's ref. SESSION is any unique prefix or suffix of the id."`
	To      string `predictor:"file" placeholder:"DIR" sep:"none" help:"Write into DIR, which must be empty or not exist (default: .superqode/salvage/SESSION-N in the origin)."`
	List    bool   `help:"List the salvages."`
	All     bool   `short:"a" help:"With --list: include every origin."`
}

// pathJSON is a path with all its bytes; see superqode.JSONPath.
type pathJSON struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
}

func pathsJSON(paths []string) []pathJSON {
	list := make([]pathJSON, 0, len(paths))
	for _, p := range paths {
		text, exact := superqode.JSONPath(p)
		list = append(list, pathJSON{text, exact})
	}
	return list
}

// Run prints the folder's path, or the list.
func (c *Restore) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	switch {
	case c.List && (c.Salvage != "" || c.To != ""), c.Salvage == "" && c.To != "":
		err := superqode.Errorf(superqode.ErrUsage, "--list takes no salvage, and --to requires one")
		return superqode.WithHint(err, "superqode workspace restore --list")
	case c.All && c.Salvage != "":
		return superqode.Errorf(superqode.ErrUsage,
			"--all requires --list; a named salvage is looked up in every origin")
	case c.Salvage == "":
		return c.list(ctx, a, m)
	}
	r, err := gc.Restore(ctx, m.Host, a.Flags.Repo, c.Salvage, a.Abs(c.To))
	if r == nil {
		return err
	}
	for _, p := range r.Special {
		a.Warn(text.QuotePath(p) + " is a socket, a FIFO or a device and was not restored")
	}
	for _, p := range r.Lost {
		a.Warn(text.QuotePath(p) + " is lost")
	}
	for _, l := range r.Salvage.LeftOut {
		a.Warn(text.QuotePath(string(l.Path)) + " could not be salvaged: " + l.Reason)
	}
	a.Note("restored %s of %s, verified %s", text.Plural(r.Files, "file"), r.Salvage.ID, r.Digest)
	if a.Flags.JSON {
		return errors.Join(err, a.PrintFields("salvage", r.Salvage.ID, "path", superqode.HostPath(r.Path),
			"files", r.Files, "digest", r.Digest, "special", pathsJSON(r.Special), "lost", pathsJSON(r.Lost),
			"left_out", r.Salvage.LeftOut))
	}
	return errors.Join(err, a.Line("%s", a.Path(r.Path)))
}

// list prints the salvages, newest first.
func (c *Restore) list(ctx context.Context, a *app.App, m *life.Manager) error {
	salvages, err := gc.Salvages(ctx, m.Host, a.Flags.Repo, c.All)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("salvages", salvages)
	}
	if len(salvages) == 0 {
		a.Note("no salvages")
		return nil
	}
	header := []string{"SALVAGE", "AGE", "FILES", "SIZE", "WHY"}
	return a.Table(header, app.Rows(salvages, func(s salvage.Found) []string {
		age := text.Age(time.Since(s.At))
		return []string{s.ID, age, strconv.Itoa(s.Files), text.Size(s.Bytes), text.Printable(s.Why)}
	}))
}
