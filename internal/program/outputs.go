package program

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/outputs"
	"github.com/seed-2d964004/superqode/internal/text"
)

// OutputOptions say what Outputs selects.
type OutputOptions struct {
	Patterns []string
	outputs.Limits
	Save   bool   // into the artifact store, each name with the next version
	Inline bool   // the contents come along
	Name   string // template of the artifacts' names, see outputNames
}

// Outputs selects files of the session's workspace and of its output and artifact
// folders. It changes nothing there.
func (s *Program) Outputs(ctx context.Context, opt OutputOptions) (*artifacts.Outputs, error) {
	if s.Rec.State == superqode.StateDone {
		err := superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", s.Rec.ID)
		return nil, superqode.WithHint(err, "superqode artifacts list --session %s", s.Rec.ID)
	}
	if len(opt.Patterns) == 0 {
		return nil, superqode.Errorf(superqode.ErrUsage, "no pattern says what to collect")
	}
	sel, err := outputs.Select(ctx, outputs.Options{
		Roots: s.outputRoots(), Patterns: opt.Patterns, Limits: opt.Limits, Inline: opt.Inline,
	})
	if err != nil {
		return nil, err
	}
	out := outputsOf(sel, opt.Inline)
	if !opt.Save {
		return out, nil
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	_, err = s.saveOutputs(ctx, store, sel, savedOutputs{out, s.Rec.ID, true, opt.Name})
	return out, err
}

func (s *Program) outputRoots() outputs.Roots {
	return outputs.Roots{Workspace: s.WorkDir(), Output: s.OutputDir(), Artifacts: s.ArtifactDir()}
}

// CheckOutputs refuses patterns that can never select anything, before a session
// is made for them.
func CheckOutputs(patterns []string) error {
	if len(patterns) == 0 {
		return nil
	}
	_, err := outputs.Select(context.Background(), outputs.Options{Patterns: patterns})
	return err
}

// CollectOutputs saves what the session was opened to give back, as artifacts of
// owner. The warnings, which were shown, say what is missing.
func (s *Program) CollectOutputs(
	ctx context.Context, store *artifacts.Store, owner superqode.SessionID,
) (out *artifacts.Outputs, saved []artifacts.Artifact, warnings []string, err error) {
	if len(s.Rec.Outputs) == 0 {
		return nil, nil, nil, nil
	}
	sel, err := outputs.Select(ctx, outputs.Options{Roots: s.outputRoots(), Patterns: s.Rec.Outputs, Limits: s.Rec.OutputLimits})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("collect outputs: %w", err)
	}
	out, warnings = outputsOf(sel, false), outputWarnings(sel)
	for _, w := range warnings {
		s.Tell(w)
	}
	saved, err = s.saveOutputs(ctx, store, sel, savedOutputs{out, owner, false, ""})
	return out, saved, warnings, err
}

// shownSkipped is how many skipped outputs are named to a person.
const shownSkipped = 10

// outputWarnings says in lines for people which outputs are missing.
func outputWarnings(sel *outputs.Selection) []string {
	var list []string
	for _, k := range sel.Skipped[:min(len(sel.Skipped), shownSkipped)] {
		list = append(list, "output "+text.Printable(k.Path)+" was skipped: "+k.Reason)
	}
	if n := sel.SkippedCount - shownSkipped; n > 0 {
		list = append(list, fmt.Sprintf("%d more outputs were skipped", n))
	}
	for _, p := range sel.Unmatched {
		list = append(list, "no file matches the output pattern "+text.Printable(p))
	}
	if c := sel.Cut; c != nil {
		list = append(list, fmt.Sprintf("%s with %s cut: %s", text.Plural(c.Files, "output"), text.Size(c.Bytes),
			strings.Join(c.Reasons, "; ")))
	}
	return list
}

// savedOutputs says for whom outputs are saved.
type savedOutputs struct {
	*artifacts.Outputs
	owner superqode.SessionID
	again bool   // a new version even of what did not change
	name  string // see outputNames
}

// saveOutputs stores the selected files as versions of their names and notes which
// in out. A file that changed since it was selected is stored as it is now, and out
// says so.
func (s *Program) saveOutputs(
	ctx context.Context, store *artifacts.Store, sel *outputs.Selection, out savedOutputs,
) ([]artifacts.Artifact, error) {
	list := ToSave(sel, out.name)
	for i := range list {
		list[i].Session, list[i].Agent, list[i].Again = out.owner, s.Rec.Agent, out.again
	}
	saved, err := store.SaveAll(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("save outputs: %w", err)
	}
	added := make([]artifacts.Artifact, 0, len(saved))
	for i, n := range saved {
		out.Files[i].Artifact = n.String()
		out.Files[i].SHA256, out.Files[i].Size = n.SHA256, n.Size
		added = append(added, n.Artifact)
	}
	return added, nil
}

// ToSave are the selected files as new versions of the names that outputNames gives them.
func ToSave(sel *outputs.Selection, template string) []artifacts.New {
	var list []artifacts.New
	names := outputNames(sel.Files, template)
	for i, f := range sel.Files {
		list = append(list, artifacts.New{
			Type: artifacts.TypeOfFile(f.Path), Name: names[i], Description: "an output of the session", OriginalFile: f.Path, Perm: f.Mode.Perm(),
			Open: func() (io.ReadCloser, error) { return sel.Open(f) },
		})
	}
	return list
}

// outputNames gives each file the name that it is saved under. In a template {name} stands
// for the file's own and {path} for its path, with - for /; a template with neither comes
// before the file's own name, as does "". Names that meet, or that no artifact can have, are
// made of the whole path.
func outputNames(files []outputs.File, template string) []string {
	if !strings.Contains(template, "{name}") && !strings.Contains(template, "{path}") {
		template += "{name}"
	}
	count, names := map[string]int{}, make([]string, len(files))
	for i, f := range files {
		names[i] = strings.NewReplacer("{name}", path.Base(f.Path), "{path}", strings.ReplaceAll(f.Path, "/", "-")).Replace(template)
		count[names[i]]++
	}
	for i, f := range files {
		if count[names[i]] > 1 || artifacts.CheckName(names[i]) != nil {
			names[i] = text.Segment(template+"/"+f.Root+"/"+f.Path, f.Path)
		}
	}
	return names
}

// outputsOf turns a selection into its part of the result.
func outputsOf(sel *outputs.Selection, inline bool) *artifacts.Outputs {
	out := &artifacts.Outputs{Bytes: sel.Bytes, SkippedCount: sel.SkippedCount, Unmatched: sel.Unmatched}
	for _, f := range sel.Files {
		row := artifacts.Output{Root: f.Root, Size: f.Size, SHA256: f.SHA256, Mode: fmt.Sprintf("%04o", f.Mode.Perm())}
		row.Path, row.PathBytes = superqode.JSONPath(f.Path)
		if inline {
			row.Content, row.Encoding = string(f.Data), "utf-8"
			if !utf8.Valid(f.Data) {
				row.Content, row.Encoding = base64.StdEncoding.EncodeToString(f.Data), "base64"
			}
		}
		out.Files = append(out.Files, row)
	}
	for _, k := range sel.Skipped {
		row := artifacts.SkippedOutput{Root: k.Root, Reason: k.Reason}
		row.Path, row.PathBytes = superqode.JSONPath(k.Path)
		out.Skipped = append(out.Skipped, row)
	}
	if c := sel.Cut; c != nil {
		out.Cut = &artifacts.CutOutputs{Files: c.Files, Bytes: c.Bytes, Reasons: c.Reasons}
	}
	return out
}
