package workspacecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Collect selects files of a session.
type Collect struct {
	app.SessionFlag
	Globs         []string `arg:"" name:"glob" placeholder:"GLOB" help:"Patterns with *, ** and {a,b}. A pattern may begin with $$OUTPUT_DIR or $$ARTIFACT_DIR."`
	Save          bool     `help:"Save the files as artifacts. Saving a name again creates its next version (name@2)."`
	Inline        bool     `help:"With --json: include the contents."`
	MaxFiles      int      `type:"count" default:"100" placeholder:"N" help:"Collect at most N files (default 100)."`
	MaxFileBytes  int64    `type:"size" default:"4M" placeholder:"SIZE" help:"Skip files larger than SIZE (default 4M)."`
	MaxTotalBytes int64    `type:"size" default:"64M" placeholder:"SIZE" help:"Collect at most SIZE in total (default 64M)."`
}

// Run prints one line a file: sum, size, mode and path; what was left out goes to
// stderr.
func (c *Collect) Run(ctx context.Context, a *app.App) error {
	if c.Inline && !a.Flags.JSON {
		err := superqode.Errorf(superqode.ErrUsage, "--inline requires --json")
		return superqode.WithHint(err, "superqode --json workspace collect --inline …")
	}
	s, err := c.Attach(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := s.Outputs(ctx, program.OutputOptions{
		Patterns: c.Globs, Save: c.Save, Inline: c.Inline,
		MaxFiles: c.MaxFiles, MaxFileBytes: c.MaxFileBytes, MaxTotalBytes: c.MaxTotalBytes,
	})
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", s.Record().ID, "outputs", out)
	}
	return printOutputs(a, out)
}

func printOutputs(a *app.App, out *artifacts.Outputs) error {
	name := func(root, path string) string {
		switch root {
		case "output":
			path = "$OUTPUT_DIR/" + path
		case "artifacts":
			path = "$ARTIFACT_DIR/" + path
		}
		return text.Printable(path)
	}
	for _, f := range out.Files {
		line := fmt.Sprintf("%s  %8d  %s  %s", f.SHA256, f.Size, f.Mode, name(f.Root, f.Path))
		if f.Artifact != "" {
			line += "  → " + f.Artifact
		}
		if err := a.Line("%s", line); err != nil {
			return err
		}
	}
	for _, k := range out.Skipped {
		a.Warn("skipped " + name(k.Root, k.Path) + ": " + k.Reason)
	}
	if n := out.SkippedCount - len(out.Skipped); n > 0 {
		a.Warn(fmt.Sprintf("%d more files were skipped", n))
	}
	for _, p := range out.Unmatched {
		a.Warn("no file matches " + text.Printable(p))
	}
	if c := out.Cut; c != nil {
		a.Warn(fmt.Sprintf("cut: %s with %s were left out: %s",
			text.Plural(c.Files, "file"), text.Size(c.Bytes), strings.Join(c.Reasons, "; ")))
	}
	return nil
}
