package staging

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

// shownSkipped is how many skipped outputs are named to a person.
const shownSkipped = 10

// OutputWarnings says in lines for people which outputs are missing.
func OutputWarnings(sel *outputs.Selection) []string {
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
		list = append(list, fmt.Sprintf("%d outputs with %d bytes were cut: %s", c.Files, c.Bytes, strings.Join(c.Reasons, "; ")))
	}
	return list
}

// OutputStore is where selected files become artifacts.
type OutputStore struct {
	Store   *artifacts.Store
	Session superqode.SessionID
	Agent   superqode.AgentID
	Again   bool // a new version even of what did not change
}

// Save stores the selected files as versions of their names and notes which in out.
// A file that changed since it was selected is stored as it is now, and out says
// so.
func (o OutputStore) Save(ctx context.Context, sel *outputs.Selection, out *artifacts.Outputs) ([]artifacts.Artifact, error) {
	var list []artifacts.New
	names := outputNames(sel.Files)
	for i, f := range sel.Files {
		list = append(list, artifacts.New{
			Type: artifacts.TypeOfFile(f.Path), Name: names[i], Description: "an output of the session", OriginalFile: f.Path,
			Open: func() (io.ReadCloser, error) { return sel.Open(f) }, Session: o.Session, Agent: o.Agent, Again: o.Again,
		})
	}
	saved, err := o.Store.SaveAll(ctx, list)
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
			names[i] = text.Segment(f.Root+"/"+f.Path, f.Path)
		}
	}
	return names
}

// OutputsOf turns a selection into its part of the result.
func OutputsOf(sel *outputs.Selection, inline bool) *artifacts.Outputs {
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
