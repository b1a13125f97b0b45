package workspacecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/outputs"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Collect selects files of a session.
type Collect struct {
	app.SessionFlag
	Globs  []string `arg:"" optional:"" name:"glob" placeholder:"GLOB" help:"Patterns with *, ** and {a,b}. A pattern may begin with $$OUTPUT_DIR or $$ARTIFACT_DIR."`
	Save   bool     `help:"Save the files as artifacts. Saving a name again creates its next version (name@2)."`
	Inline bool     `help:"With --json: include the contents."`
	Spec   string   `type:"somepath" predictor:"file" placeholder:"FILE" sep:"none" help:"Read globs, limits, save, inline and name_template from a YAML or JSON file; flags come first."`
	app.OutputLimits
}

// Run prints one line a file: sum, size, mode and path; what was left out goes to
// stderr.
func (c *Collect) Run(ctx context.Context, a *app.App) error {
	spec, err := readSpec(a, c.Spec)
	if err != nil {
		return err
	}
	c.Globs, c.Save, c.Inline = append(spec.Globs, c.Globs...), c.Save || spec.Save, c.Inline || spec.Inline
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
		Patterns: c.Globs, Save: c.Save, Inline: c.Inline, Name: spec.NameTemplate,
		Limits: c.Over(spec.limits()),
	})
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", s.Record().ID, "outputs", out)
	}
	return printOutputs(a, out)
}

// collectSpec is what --spec names: what may also be said by arguments and flags.
type collectSpec struct {
	Globs         []string `yaml:"globs"`
	MaxFiles      int      `yaml:"max_files"`
	MaxFileBytes  specSize `yaml:"max_file_bytes"`
	MaxTotalBytes specSize `yaml:"max_total_bytes"`
	Save          bool     `yaml:"save"`
	Inline        bool     `yaml:"inline"`
	NameTemplate  string   `yaml:"name_template"`
}

// specSize is a size in bytes, as a number or as text such as 4M.
type specSize int64

func (s *specSize) UnmarshalYAML(data []byte) error {
	var word string
	if err := yaml.Unmarshal(data, &word); err != nil {
		return err
	}
	n, err := text.ParseSize(word)
	*s = specSize(n)
	return err
}

func (s collectSpec) limits() outputs.Limits {
	return outputs.Limits{MaxFiles: s.MaxFiles, MaxFileBytes: int64(s.MaxFileBytes), MaxTotalBytes: int64(s.MaxTotalBytes)}
}

// mostSpec bounds what is read of a file of --spec, in bytes.
const mostSpec = 1 << 20

func readSpec(a *app.App, name string) (spec collectSpec, err error) {
	if name == "" {
		return spec, nil
	}
	f, err := os.Open(a.Abs(name))
	if errors.Is(err, os.ErrNotExist) {
		return spec, superqode.Errorf(superqode.ErrNotFound, "--spec: %s does not exist", text.Printable(name))
	}
	if err != nil {
		return spec, superqode.Errorf(superqode.ErrUsage, "--spec: %v", err)
	}
	defer f.Close() // read only
	data, err := io.ReadAll(io.LimitReader(f, mostSpec))
	if err == nil {
		err = yaml.UnmarshalWithOptions(data, &spec, yaml.Strict())
	}
	if err == nil && spec.MaxFiles < 0 {
		err = fmt.Errorf("max_files is %d, and cannot be negative", spec.MaxFiles)
	}
	if err != nil {
		return spec, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--spec %s: %v", text.Printable(name), err),
			"its keys are globs, max_files, max_file_bytes, max_total_bytes, save, inline and name_template")
	}
	return spec, nil
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
