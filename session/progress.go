package session

import (
	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Progress is told of a step that may take long: what is done, in words, and the
// meter that counts it, where there is one. It returns what ends the step.
type Progress func(step string, meter *snapshot.Meter) (done func())

// begin tells the person at the terminal that a step begins.
func (m *Manager) begin(step string, meter *snapshot.Meter) (done func()) {
	if m.cfg.Progress == nil {
		return func() {}
	}
	return m.cfg.Progress(step, meter)
}

// openStep says what the making of a workspace is.
func openStep(mode superqode.Mode) string {
	if mode.InPlace() {
		return "taking a snapshot"
	}
	return "making the workspace"
}
