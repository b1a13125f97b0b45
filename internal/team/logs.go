package team

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/layers"
)

// Logs are the logs of a session, and of the agents that shared its workspace, as
// artifacts.
func Logs(s *attach.Attached) (list []artifacts.New) {
	kinds := []string{"command", "setup", "guard", "superqode"}
	if s.Rec.Shared {
		for _, a := range s.Rec.Agents {
			kinds = append(kinds, strings.TrimSuffix(AgentLog(a.Agent), ".log"))
		}
	}
	for _, kind := range kinds {
		file := filepath.Join(s.Folder, "log", kind+".log")
		if kind == "guard" {
			file = layers.LogPath(s.Folder)
		}
		st, err := os.Lstat(file)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		n := artifacts.New{
			Type: artifacts.TypeLog, Path: artifacts.SessionLog(s.Rec.ID, kind), File: file,
			Description: "output of the session's " + kind, Session: s.Rec.ID, Agent: s.Rec.Agent,
			Loose: true, // nobody waited for the log that this is a copy of
		}
		if kind != "command" { // that one was masked when its program had ended
			n.Mask = s.Redactor().IfText
		}
		list = append(list, n)
	}
	return list
}
