package session

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/outputs"
	"github.com/seed-2d964004/superqode/internal/staging"
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
	out := staging.OutputsOf(sel, opt.Inline)
	if !opt.Save {
		return out, nil
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	_, err = s.outputStore(store, true).Save(ctx, sel, out)
	return out, err
}

func (s *Session) outputRoots() outputs.Roots {
	return outputs.Roots{Workspace: string(s.Rec.Workspace), Output: s.OutputDir(), Artifacts: s.ArtifactDir()}
}

func (s *Session) outputStore(store *artifacts.Store, again bool) staging.OutputStore {
	return staging.OutputStore{Store: store, Session: s.Rec.ID, Agent: s.Rec.Agent, Again: again}
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
	c.outputs = staging.OutputsOf(sel, false)
	saved, err := s.outputStore(store, false).Save(ctx, sel, c.outputs)
	c.artifacts = append(c.artifacts, saved...)
	for _, w := range staging.OutputWarnings(sel) {
		s.Tell(w)
		c.warnings = append(c.warnings, w)
	}
	return err
}
