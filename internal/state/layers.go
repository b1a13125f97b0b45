package state

import (
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// LayersInUse returns the layers on which the overlays of a project's sessions stand, but
// for the session that is being made. known is false while another one is, or where the
// record of one cannot be read.
func (p Project) LayersInUse(made superqode.SessionID) (used map[string]bool, known bool) {
	used = map[string]bool{}
	names, err := p.SessionNames()
	for _, id := range names {
		l, lerr := Load(p.SessionPath(id))
		switch {
		case id == made.String(), errors.Is(lerr, ErrGone):
		case lerr != nil:
			err = lerr
		case l.Overlay == nil || l.State == superqode.StateDone && !atomicfile.Exists(string(l.Workspace)):
		case len(l.Overlay.Lower) == 0 && l.Alive:
			return nil, false
		default:
			for _, dir := range l.Overlay.Lowers() {
				used[dir] = true
			}
		}
	}
	return used, err == nil
}
