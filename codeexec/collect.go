package codeexec

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/outputs"
	"github.com/seed-2d964004/superqode/internal/program"
)

// Collected is one file that a program made.
type Collected struct {
	Name    string      `json:"name"` // relative to the workspace
	MIME    string      `json:"mime"`
	Mode    fs.FileMode `json:"mode"`
	Size    int64       `json:"size"`
	Content []byte      `json:"-"`        // with Spec.Inline
	SavedAs string      `json:"saved_as"` // the artifact's name; "" without Spec.Save
	Version int         `json:"version"`  // of this name
}

// Collection is what Collect found.
type Collection struct {
	Files     []Collected
	Skipped   []string // what matched and was not taken, with the reason
	LimitsHit []string // what a limit kept out, see the outputs of a session
}

// Spec says what CollectOutputs takes. A limit of 0 is that of a session's outputs.
type Spec struct {
	Globs         []string `json:"globs"` // in the dialect of a session's outputs
	MaxFiles      int      `json:"max_files"`
	MaxFileBytes  int64    `json:"max_file_bytes"`
	MaxTotalBytes int64    `json:"max_total_bytes"`
	Inline        bool     `json:"inline"` // read the contents
	Save          bool     `json:"save"`   // each file as the next version of an artifact of the origin
	// NameTemplate makes the artifacts' names: {name} stands for the file's own, {path} for
	// its path with - for /. One with neither comes before the file's own name. Names that
	// meet, or that no artifact can have, are made of the whole path.
	NameTemplate string `json:"name_template"`
}

// Collect returns the files that patterns match, with their contents, within the limits of
// a session's outputs.
func (w *Workspace) Collect(ctx context.Context, patterns ...string) (*Collection, error) {
	return w.CollectOutputs(ctx, Spec{Globs: patterns, Inline: true})
}

// CollectOutputs returns the files that a Spec's globs match, and notes in the Metadata
// what became of them. What a limit keeps out is in Collection.LimitsHit. A bad glob and a
// negative limit are superqode.ErrUsage, with the name of the field.
func (w *Workspace) CollectOutputs(ctx context.Context, spec Spec) (c *Collection, err error) {
	ctx, end := w.span(ctx, spanCollect, attribute.StringSlice("patterns", spec.Globs), attribute.Bool("save", spec.Save))
	defer func() { end(err) }()
	for field, n := range map[string]int64{"max_files": int64(spec.MaxFiles), "max_file_bytes": spec.MaxFileBytes, "max_total_bytes": spec.MaxTotalBytes} {
		if n < 0 {
			return nil, superqode.Errorf(superqode.ErrUsage, "%s: %d is negative", field, n)
		}
	}
	sel, err := outputs.Select(ctx, outputs.Options{Roots: outputs.Roots{Workspace: w.Dir.Root()}, Patterns: spec.Globs, Inline: spec.Inline,
		Limits: outputs.Limits{MaxFiles: spec.MaxFiles, MaxFileBytes: spec.MaxFileBytes, MaxTotalBytes: spec.MaxTotalBytes}})
	if err != nil {
		return nil, fmt.Errorf("globs: %w", err)
	}
	c = &Collection{}
	for _, f := range sel.Files {
		c.Files = append(c.Files, Collected{Name: f.Path, MIME: kindOf(sel, f), Mode: f.Mode, Size: f.Size, Content: f.Data})
	}
	for _, s := range sel.Skipped {
		c.Skipped = append(c.Skipped, s.Path+": "+s.Reason)
	}
	if sel.Cut != nil {
		c.LimitsHit = sel.Cut.Reasons
	}
	if spec.Save {
		if err := w.save(ctx, sel, spec.NameTemplate, c); err != nil {
			return nil, err
		}
	}
	return c, w.note(ctx, func(m *Metadata, now time.Time) {
		r := OutputRecord{Globs: spec.Globs, SavedAs: []string{}, Versions: []int{}, LimitsHit: len(c.LimitsHit) > 0, Time: now}
		for _, f := range c.Files {
			if f.SavedAs != "" {
				r.SavedAs, r.Versions = append(r.SavedAs, f.SavedAs), append(r.Versions, f.Version)
			}
		}
		m.Outputs = append(m.Outputs, r)
	})
}

// save adds the selected files as artifacts.
func (w *Workspace) save(ctx context.Context, sel *outputs.Selection, template string, c *Collection) error {
	store, err := artifacts.Open(w.origin)
	if err != nil {
		return err
	}
	list := program.ToSave(sel, template)
	for i := range list {
		list[i].Session, list[i].Again = w.session, true
	}
	saved, err := store.SaveAll(ctx, list)
	for i, n := range saved {
		c.Files[i].SavedAs, c.Files[i].Version, c.Files[i].Size = n.Name, n.Version, n.Size
	}
	return err
}

// kindOf is the MIME type of a file, by its name or else by its beginning.
func kindOf(sel *outputs.Selection, f outputs.File) string {
	if kind := mime.TypeByExtension(path.Ext(f.Path)); kind != "" {
		return kind
	}
	data := f.Data
	if data == nil {
		if r, err := sel.Open(f); err == nil { // else it is gone since, and nobody knows
			defer r.Close()
			data = make([]byte, 512) // as much as DetectContentType looks at
			n, _ := io.ReadFull(r, data)
			data = data[:n]
		}
	}
	return http.DetectContentType(data)
}
