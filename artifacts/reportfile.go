package artifacts

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// The paths below qe-artifacts that docs/formats.md gives to a session's own
// files.

// SessionPatch returns the path of a session's patch.
func SessionPatch(id superqode.SessionID) string {
	return path.Join(folderPatches, id.String()+".patch")
}

// SessionCommits returns the path of the mails that a session's commits are kept as.
func SessionCommits(id superqode.SessionID) string {
	return path.Join(folderPatches, id.String()+"-commits.mbox")
}

// AgentCommits returns the path of the mails that one agent's commits are kept as.
func AgentCommits(id superqode.SessionID, agent superqode.AgentID) string {
	return path.Join(folderPatches, id.String()+"-"+agent.String()+"-commits.mbox")
}

// AgentPatch returns the path of one agent's part of a session's patch.
func AgentPatch(id superqode.SessionID, agent superqode.AgentID) string {
	return path.Join(folderPatches, id.String()+"-"+agent.String()+".patch")
}

// FixPatch returns the path of the patch that fixes a finding.
func FixPatch(finding string) string { return path.Join(folderPatches, "fix-"+finding+".patch") }

// SessionLog returns the path of a session's log; kind is command, setup, guard
// or superqode.
func SessionLog(id superqode.SessionID, kind string) string {
	return path.Join(folderLogs, id.String()+"-"+kind+".log")
}

// ReportFile returns the path of a session's report; ext is json, md or html. The
// date is the one in the session's id, so that a report written again replaces
// the first.
func ReportFile(id superqode.SessionID, ext string) string {
	date, _, _ := strings.Cut(strings.TrimPrefix(id.String(), "qe-"), "-")
	return path.Join(folderQR, "qr-"+date+"-"+id.String()+"."+ext)
}

// WriteReport files the report as JSON and as Markdown. Written again for the
// same session it replaces what it wrote before.
func (s *Store) WriteReport(ctx context.Context, r Report) ([]Artifact, error) {
	if r.SessionID.IsZero() {
		return nil, fmt.Errorf("write report: no session")
	}
	data, err := r.JSON()
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	n := New{Type: TypeQR, Path: ReportFile(r.SessionID, "json"), Description: "quality report", Session: r.SessionID, Data: data,
		Metadata: map[string]any{"verdict": string(r.Verdict)}}
	md := n
	md.Path, md.Data = ReportFile(r.SessionID, "md"), []byte(r.Markdown())
	return s.AddAll(ctx, []New{n, md})
}
