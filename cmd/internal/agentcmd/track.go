package agentcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Track tells a session what an agent has changed.
type Track struct {
	app.SessionFlag
	Agent  superqode.AgentID `predictor:"agent" placeholder:"NAME" help:"The agent that made the change (default: the agent that runs here)."`
	Format string            `default:"text" enum:"text,json,claude,codex,gemini,cursor,copilot" placeholder:"FORMAT" help:"Read the payload of an agent's hook, after a tool has run, from stdin: claude, codex, gemini, cursor, copilot or json."`
	Files  []string          `arg:"" optional:"" name:"file" placeholder:"FILE[:START-END]" sep:"none" help:"The files, or lines of them as they are now, that the agent changed."`
}

// Run sends what is stated to the session's supervisor or, from outside of the
// session, keeps it itself.
func (c *Track) Run(ctx context.Context, a *app.App) error {
	hook := c.Format != string(guard.Text)
	var list []attribution.Track
	var err error
	switch {
	case hook && len(c.Files) > 0:
		return superqode.Errorf(superqode.ErrUsage, "--format %s reads the files from stdin", c.Format)
	case hook:
		list, err = c.fromHook(a)
	case len(c.Files) == 0:
		err := superqode.Errorf(superqode.ErrUsage, "no file given")
		return superqode.WithHint(err, "superqode track --agent NAME FILE[:START-END]")
	default:
		list, err = c.fromArgs(a)
	}
	if hook && c.Agent.IsZero() && a.Getenv("SUPERQODE_AGENT_ID") == "" {
		return nil // an agent without a name has nothing to track
	}
	if err == nil && len(list) > 0 {
		err = c.send(ctx, a, list)
	}
	// Without a session there is nothing to do: the hook is installed for good, and sessions come and go.
	if hook && errors.Is(err, superqode.ErrNotFound) {
		a.Log.Debug().Err(err).Msg("track")
		return nil
	}
	return err
}

func (c *Track) send(ctx context.Context, a *app.App, list []attribution.Track) error {
	inside := a.Getenv("SUPERQODE_SOCKET") != "" && c.Session == ""
	for i := range list {
		list[i].Agent = c.Agent
		if !inside {
			continue
		}
		if err := attribution.SendTrack(ctx, a.Env, list[i]); err != nil {
			return err
		}
	}
	if inside {
		return nil
	}
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	return m.Track(ctx, a.Flags.Repo, c.Ref(a), list)
}

// place resolves a file as it was named: below the session's workspace, from
// inside of it, or else as Record.Pathspecs has it.
func (c *Track) place(a *app.App, name string) (superqode.RelPath, error) {
	rec := state.Record{Workspace: superqode.HostPath(a.Getenv("SUPERQODE_WORKSPACE"))}
	if a.Getenv("SUPERQODE_SOCKET") == "" || c.Session != "" {
		m, err := a.Sessions()
		if err != nil {
			return "", err
		}
		l, err := m.Find(context.Background(), a.Flags.Repo, c.Ref(a))
		if err != nil {
			return "", err
		}
		rec = l.Record
	} else {
		rec.Origin = rec.Workspace
	}
	paths, err := app.RelPaths(a, rec, []string{name})
	if err == nil && len(paths) != 1 {
		err = superqode.Errorf(superqode.ErrUsage, "%s is the workspace itself", text.Printable(name))
	}
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

func (c *Track) fromArgs(a *app.App) ([]attribution.Track, error) {
	var list []attribution.Track
	for _, arg := range c.Files {
		name, lines, err := coordinator.SplitRange(arg)
		if err != nil {
			return nil, err
		}
		t := attribution.Track{}
		if !lines.Whole() {
			t.Lines = []merge.LineRange{{Start: lines.Start, End: lines.End}}
		}
		if t.Path, err = c.place(a, name); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// hookDone is what of the agents' payloads tells what came of the tool.
type hookDone struct {
	File     string          `json:"file_path"`     // Cursor's afterFileEdit
	Response json.RawMessage `json:"tool_response"` // Claude Code, Codex, Gemini CLI
	Result   struct {
		Type string `json:"resultType"`
	} `json:"toolResult"` // Copilot
	Result2 struct {
		Type string `json:"result_type"`
	} `json:"tool_result"` // Copilot, where it speaks as its editor does
}

// failed reports whether the tool says that it has done nothing: then what is new
// in the file is another's.
func (h *hookDone) failed() bool {
	var r struct {
		Success *bool           `json:"success"`
		Error   json.RawMessage `json:"error"`
		IsError bool            `json:"is_error"`
	}
	if json.Unmarshal(h.Response, &r) == nil { // else it is a text
		e := string(r.Error)
		if r.Success != nil && !*r.Success || r.IsError || e != "" && e != "null" && e != `""` && e != "false" {
			return true
		}
	}
	kind := cmp.Or(h.Result.Type, h.Result2.Type)
	return kind != "" && kind != "success"
}

// fromHook reads what an agent's tool has written.
func (c *Track) fromHook(a *app.App) ([]attribution.Track, error) {
	data, err := io.ReadAll(io.LimitReader(a.In, maxHookPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read the hook's input: %w", err)
	}
	if len(data) > maxHookPayload {
		return nil, superqode.Errorf(superqode.ErrUsage, "the hook's input is larger than %d MiB", maxHookPayload>>20)
	}
	format := guard.Format(c.Format)
	if format == guard.JSON {
		format = guard.Claude
	}
	var h hookDone
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &h); err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "the hook's input is not a JSON object: %v", err)
	}
	if h.failed() {
		return nil, nil
	}
	files, dir := []string{h.File}, ""
	if h.File == "" {
		req, err := guard.Decode(format, bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		files, dir = req.Writes, req.Dir
	}
	var list []attribution.Track
	for _, e := range coordinator.ToolEdits(data, files) {
		name := e.Path
		if !filepath.IsAbs(name) && dir != "" {
			name = filepath.Join(dir, name)
		}
		t := attribution.Track{Edits: trackEdits(e.Texts)}
		if t.Path, err = c.place(a, name); errors.Is(err, superqode.ErrUsage) {
			continue // outside of the workspace: not this session's
		} else if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// trackEdits returns the replacements if they fit into one message to the
// supervisor, which takes 1 MiB; bigger ones are followed as a change of the whole
// file.
func trackEdits(texts []coordinator.Replaced) []attribution.TrackEdit {
	var out []attribution.TrackEdit
	n := 0
	for _, r := range texts {
		out, n = append(out, attribution.TrackEdit(r)), n+len(r.Old)+len(r.New)
	}
	if n >= 128<<10 {
		return nil
	}
	return out
}
