package mode

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// TestClaimReadsWhatIsOpen holds that a session in the origin itself is found as long as
// it has either folder that its end takes away last, whatever its program removed, and
// that the records of sessions with neither are not read.
func TestClaimReadsWhatIsOpen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"tmp": superqode.ErrLocked, "aside": superqode.ErrLocked, "log": nil} {
		p := state.Project{Dir: t.TempDir()}
		id := superqode.NewSessionID(time.Now())
		dir := p.SessionPath(id.String())
		rec := state.Record{SchemaVersion: state.SchemaVersion, ID: id, Mode: superqode.ModeGitSnapshot, State: superqode.StateActive}
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o700), state.WriteRecord(dir, &rec)); err != nil {
			t.Fatal(err)
		}
		if err := ClaimOrigin(p, superqode.ModeGitSnapshot, ""); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", name, err, want)
		}
	}
}
