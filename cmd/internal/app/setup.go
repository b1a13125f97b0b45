package app

import (
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/state"
)

// SetupStepJSON is one entry of a setup and what became of it.
type SetupStepJSON struct {
	Key             string  `json:"key"`
	Kind            string  `json:"kind"`
	Name            string  `json:"name"`
	State           string  `json:"state"`
	Reason          string  `json:"reason"`
	DurationSeconds float64 `json:"duration_seconds"`
	ExitCode        int     `json:"exit_code"`
	Output          string  `json:"output"`
}

// SetupJSON is the steps of a setup in a document.
func SetupJSON(steps []setup.Step) []SetupStepJSON {
	list := make([]SetupStepJSON, 0, len(steps))
	for _, s := range steps {
		took := s.Report().DurationSeconds
		list = append(list, SetupStepJSON{s.Key, s.Kind, s.Name, s.State, s.Reason, took, s.ExitCode, s.Output})
	}
	return list
}

// ActionWord says apply or skip, or what became of it.
func ActionWord(state string) string {
	switch state {
	case setup.Applied:
		return "applied"
	case setup.WouldApply:
		return "apply"
	case setup.Skipped:
		return "skip"
	}
	return "failed"
}

// WorkspaceJSON is a workspace in a document.
type WorkspaceJSON struct {
	Path   state.HostPath `json:"path"`
	Inside state.HostPath `json:"inside,omitempty"` // where its programs see it, when that is not Path
}

// WorkspaceOf is the workspace of a session.
func WorkspaceOf(r *state.Record) WorkspaceJSON {
	w := WorkspaceJSON{Path: r.Workspace}
	if r.Inside() != r.Workspace {
		w.Inside = r.Inside()
	}
	return w
}
