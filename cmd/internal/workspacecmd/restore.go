package workspacecmd

import (
	"context"
	"errors"
	"fmt"
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

type restoredJSON struct {
	SchemaVersion int                `json:"schema_version"`
	Salvage       string             `predictor:"salvage" json:"salvage"`
	Path          superqode.HostPath `json:"path"`
	Files         int                `json:"files"`
	Digest        superqode.Digest   `json:"digest"`
	Special       []pathJSON         `json:"special"`
	Lost          []pathJSON         `json:"lost"`
	LeftOut       []salvage.LeftOut  `json:"left_out"`
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
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--list takes no salvage, and --to requires one"), "superqode workspace restore --list")
	case c.All && c.Salvage != "":
		return superqode.Errorf(superqode.ErrUsage, "--all requires --list; a named salvage is looked up in every origin")
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
		a.Warn(text.QuotePath(l.Path) + " could not be salvaged: " + l.Reason)
	}
	a.Note("restored %s of %s, verified %s", text.Plural(r.Files, "file"), r.Salvage.ID, r.Digest)
	if a.Flags.JSON {
		return errors.Join(err, a.PrintJSON(restoredJSON{1, r.Salvage.ID, superqode.HostPath(r.Path), r.Files, r.Digest, pathsJSON(r.Special), pathsJSON(r.Lost), r.Salvage.LeftOut}))
	}
	path := r.Path
	if a.OutTTY {
		path = text.QuotePath(path)
	}
	_, perr := fmt.Fprintln(a.Out, path)
	return errors.Join(err, perr)
}

// list prints the salvages, newest first.
func (c *Restore) list(ctx context.Context, a *app.App, m *life.Manager) error {
	salvages, err := gc.Salvages(ctx, m.Host, a.Flags.Repo, c.All)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		if salvages == nil {
			salvages = []salvage.Found{}
		}
		return a.PrintJSON(struct {
			SchemaVersion int             `json:"schema_version"`
			Salvages      []salvage.Found `json:"salvages"`
		}{1, salvages})
	}
	rows := make([][]string, 0, len(salvages))
	now := time.Now()
	for _, s := range salvages {
		rows = append(rows, []string{s.ID, text.Age(now.Sub(s.At)), strconv.Itoa(s.Files), text.Size(s.Bytes), text.Printable(s.Why)})
	}
	return a.Table([]string{"SALVAGE", "AGE", "FILES", "SIZE", "WHY"}, rows)
}
