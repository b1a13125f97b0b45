package session

import (
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/state"
)

func (m *Manager) workingPath() string { return filepath.Join(m.cfg.Home, "working") }

// project returns the folder of an origin, which need not exist yet.
func (m *Manager) project(o *origin) state.Project {
	return state.Of(m.workingPath(), o.baseName(), o.key())
}
