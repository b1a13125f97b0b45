package hooks

import (
	"encoding/json"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
)

// sessionRecord is what this package reads of a session's session.json, which
// package session writes.
type sessionRecord struct {
	ID        superqode.SessionID `json:"session_id"`
	Parent    superqode.SessionID `json:"parent"` // of an agent's own workspace: the session that the agent knows
	CommonDir superqode.HostPath  `json:"common_dir"`
	Guard     struct {
		Off bool `json:"allow_git_operations"`
	} `json:"guard"`
}

// inSession reports whether a live session decides about this repository: then its
// own hooks have done so already, or a person has switched its guard off. The
// variables only say where to look; the session's lock and what lies in its folder
// say whether it is so.
func inSession(env []string, repo guard.Found) bool {
	id, socket := superqode.Getenv(env, "SUPERQODE_SESSION_ID"), superqode.Getenv(env, "SUPERQODE_SOCKET")
	if id == "" || socket == "" || !decides(filepath.Dir(socket), id, repo) {
		return false
	}
	held, err := lockfile.IsHeld(filepath.Join(filepath.Dir(socket), "lock"))
	return err == nil && held
}

// decides reports whether the session in dir has this id and this repository.
func decides(dir, id string, repo guard.Found) bool {
	if st, err := guard.LoadSessionState(dir); err == nil {
		return st.ID.String() == id && st.Guards(repo.CommonDir, repo.WorkTree)
	}
	data, err := atomicfile.Read(filepath.Join(dir, "session.json")) // with its guard off a session has no state for it
	var r sessionRecord
	return err == nil && json.Unmarshal(data, &r) == nil && (r.ID.String() == id || r.Parent.String() == id) &&
		r.Guard.Off && string(r.CommonDir) == repo.CommonDir
}
