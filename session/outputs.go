package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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

// OutputOptions say what Outputs selects; a limit of 0 is the default of package
// outputs.
type OutputOptions struct {
	Patterns      []string
	MaxFiles      int
	MaxFileBytes  int64
	MaxTotalBytes int64
	Save          bool // into the artifact store, each name with the next version
	Inline        bool // the contents come along
}

// Outputs selects files of the session's workspace and of its output and artifact
// folders. It changes nothing there.
func (s *Session) Outputs(ctx context.Context, opt OutputOptions) (*artifacts.Outputs, error) {
	if s.Rec.State == superqode.StateDone {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", s.Rec.ID), "superqode artifacts list --session %s", s.Rec.ID)
	}
	if len(opt.Patterns) == 0 {
		return nil, superqode.Errorf(superqode.ErrUsage, "no pattern says what to collect")
	}
	sel, err := outputs.Select(ctx, outputs.Options{
		Roots: s.outputRoots(), Patterns: opt.Patterns, MaxFiles: opt.MaxFiles, MaxFileBytes: opt.MaxFileBytes, MaxTotalBytes: opt.MaxTotalBytes, Inline: opt.Inline,
	})
	if err != nil {
		return nil, err
	}
	out := outputsResult(sel, opt.Inline)
	if !opt.Save {
		return out, nil
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	_, err = s.saveOutputs(ctx, store, sel, out, true)
	return out, err
}

func (s *Session) outputRoots() outputs.Roots {
	return outputs.Roots{Workspace: string(s.Rec.Workspace), Output: s.OutputDir(), Artifacts: s.ArtifactDir()}
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

// collectOutputs gives back, at the end, what the session was opened with.
func (s *Session) collectOutputs(ctx context.Context, c *collected, store *artifacts.Store) error {
	if len(s.Rec.Outputs) == 0 {
		return nil
	}
	if len(s.Rec.Agents) > 0 && !s.Rec.Shared {
		c.outputs = s.teamOutputs // taken from the agents' own workspaces
		return nil
	}
	sel, err := outputs.Select(ctx, outputs.Options{Roots: s.outputRoots(), Patterns: s.Rec.Outputs})
	if err != nil {
		return fmt.Errorf("collect outputs: %w", err)
	}
	c.outputs = outputsResult(sel, false)
	saved, err := s.saveOutputs(ctx, store, sel, c.outputs, false)
	c.artifacts = append(c.artifacts, saved...)
	for _, w := range outputWarnings(sel) {
		s.Tell(w)
		c.warnings = append(c.warnings, w)
	}
	return err
}

// shownSkipped is how many skipped outputs are named to a person.
const shownSkipped = 10

// outputWarnings says what of the outputs is not there.
func outputWarnings(sel *outputs.Selection) []string {
	var list []string
	for _, k := range sel.Skipped[:min(len(sel.Skipped), shownSkipped)] {
		list = append(list, "output "+text.Printable(k.Path)+" was skipped: "+k.Reason)
	}
	if n := sel.SkippedCount - shownSkipped; n > 0 {
		list = append(list, fmt.Sprintf("%d more outputs were skipped", n))
	}
	for _, p := range sel.Unmatched {
		list = append(list, "no file answers to the output pattern "+text.Printable(p))
	}
	if c := sel.Cut; c != nil {
		list = append(list, fmt.Sprintf("%d outputs with %d bytes were cut: %s", c.Files, c.Bytes, strings.Join(c.Reasons, "; ")))
	}
	return list
}

// saveOutputs stores the selected files as versions of their names and notes which
// in out; again makes a new version even of what did not change. What changed since it was selected is stored as it is now, and told so.
func (s *Session) saveOutputs(ctx context.Context, store *artifacts.Store, sel *outputs.Selection, out *artifacts.Outputs, again bool) ([]artifacts.Artifact, error) {
	var list []artifacts.New
	names := outputNames(sel.Files)
	for i, f := range sel.Files {
		list = append(list, artifacts.New{
			Type: artifacts.TypeOfFile(f.Path), Name: names[i], Description: "an output of the session", OriginalFile: f.Path,
			Open: func() (io.ReadCloser, error) { return sel.Open(f) }, Session: s.Rec.ID, Agent: s.Rec.Agent, Again: again,
		})
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

// outputNames gives each file the name that it is saved under: its own where no
// other of them has it, else one made of its whole path.
func outputNames(files []outputs.File) []string {
	count := map[string]int{}
	for _, f := range files {
		count[path.Base(f.Path)]++
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = path.Base(f.Path)
		if count[names[i]] > 1 || artifacts.CheckName(names[i]) != nil {
			names[i] = segment(f.Root+"/"+f.Path, f.Path)
		}
	}
	return names
}

// segment makes one safe path segment of any text: what is readable of hint, and a
// hash of all of it, so that no two texts meet.
func segment(text, hint string) string {
	var b strings.Builder
	for _, r := range hint {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
		if b.Len() >= maxHint {
			break
		}
	}
	sum := sha256.Sum256([]byte(text))
	readable := strings.Trim(b.String(), "-.")
	if readable == "" {
		readable = "x"
	}
	ext := path.Ext(readable)
	if ext == readable || len(ext) > 8 {
		ext = ""
	}
	return strings.TrimSuffix(readable, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
}

// maxHint is how many bytes of a text are kept readable in a segment.
const maxHint = 48

// outputsResult turns a selection into its part of the result.
func outputsResult(sel *outputs.Selection, inline bool) *artifacts.Outputs {
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
