package config

import (
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// sessionVariables are those by which a session's program, and superqode in it, know the
// session. docs/formats.md says what they hold.
var sessionVariables = []string{
	"SUPERQODE_HOME", "SUPERQODE_SESSION_ID", "SUPERQODE_AGENT_ID", "SUPERQODE_RUNNER_ID", "SUPERQODE_CASE_ID",
	"SUPERQODE_WORKSPACE", "SUPERQODE_ORIGIN", "SUPERQODE_MODE", "SUPERQODE_OUTPUT_DIR", "SUPERQODE_ARTIFACT_DIR",
	"SUPERQODE_RUN_DIR", "SUPERQODE_SOCKET", "SUPERQODE_PORT",
}

// CheckVariable reports whether a person may set an environment variable for a
// session's program: none that says what the session is, and none that leads git away
// from it.
func CheckVariable(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return superqode.Errorf(superqode.ErrUsage, "%q is not the name of an environment variable", name)
	case slices.Contains(sessionVariables, name):
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s is superqode's own: it says what the session is", name),
			"give it another name, for example MY_%s", name)
	case git.IsRedirect(name):
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s leads git out of the session", name),
			"where the program itself needs it: env %s=… CMD", name)
	}
	return nil
}
