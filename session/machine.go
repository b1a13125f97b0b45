package session

import (
	"context"

	"github.com/seed-2d964004/superqode/internal/layers"
)

// machine is this machine as package layers knows it.
func (m *Manager) machine() *layers.Machine {
	return &layers.Machine{Home: m.Home, Shim: m.Shim, Env: m.Env, Git: m.Git, Now: m.Now}
}

// GuardLayers tells of the guard's layers as a session would have them here.
func (m *Manager) GuardLayers(ctx context.Context) (layers.Report, error) {
	g, err := m.CheckedGit(ctx)
	if err != nil {
		return layers.Report{}, err
	}
	return m.machine().Report(ctx, g)
}

// Helper returns the small binary that stands in sessions as git and as git's
// hooks, or superqode itself where that is not installed.
func (m *Manager) Helper() (string, error) { return m.machine().Helper() }

// CachePath returns the folder for what can be made again.
func (m *Manager) CachePath() string { return m.machine().CachePath() }
