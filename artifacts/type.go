package artifacts

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Type says what an artifact is. The list is closed for writing; a manifest that
// a newer superqode wrote may hold others, and keeps them.
type Type string

// The types, as they stand in the manifest.
const (
	TypePatch           Type = "patch"
	TypeFix             Type = "fix"
	TypeTestUnit        Type = "test_unit"
	TypeTestIntegration Type = "test_integration"
	TypeTestAPI         Type = "test_api"
	TypeTestContract    Type = "test_contract"
	TypeTestFuzz        Type = "test_fuzz"
	TypeTestLoad        Type = "test_load"
	TypeTestRegression  Type = "test_regression"
	TypeTestE2E         Type = "test_e2e"
	TypeTestSecurity    Type = "test_security"
	TypeQR              Type = "qr"
	TypeCoverage        Type = "coverage"
	TypeSummary         Type = "summary"
	TypeLog             Type = "log"
	TypeScreenshot      Type = "screenshot"
	TypeTrace           Type = "trace"
	TypeError           Type = "error"
)

// Types lists every type in the order in which help prints them.
func Types() []Type {
	return []Type{
		TypePatch, TypeFix, TypeTestUnit, TypeTestIntegration, TypeTestAPI, TypeTestContract, TypeTestFuzz, TypeTestLoad,
		TypeTestRegression, TypeTestE2E, TypeTestSecurity, TypeQR, TypeCoverage, TypeSummary, TypeLog, TypeScreenshot,
		TypeTrace, TypeError,
	}
}

// ParseType accepts a type's name; an unknown one is an error, never a default.
func ParseType(s string) (Type, error) {
	if t := Type(s); slices.Contains(Types(), t) {
		return t, nil
	}
	names := make([]string, len(Types()))
	for i, t := range Types() {
		names[i] = string(t)
	}
	return "", fmt.Errorf("%q is not an artifact type (one of %s)", s, strings.Join(names, ", "))
}

// TestKind returns what follows "test_" and whether t is a type of generated
// test.
func (t Type) TestKind() (kind string, ok bool) { return strings.CutPrefix(string(t), "test_") }

// The folders of the store; no file stands outside them but the manifest.
const (
	folderQR       = "qr"
	folderPatches  = "patches"
	folderTests    = "generated-tests"
	folderLogs     = "logs"
	folderEvidence = "evidence"
	folderCoverage = "coverage"
)

// Folders lists the folders of the store.
func Folders() []string {
	return []string{folderQR, folderPatches, folderTests, folderLogs, folderEvidence, folderCoverage}
}

// inFolder reports whether a path is one of a file in one of them.
func inFolder(rel string) bool {
	folder, _, nested := strings.Cut(rel, "/")
	return nested && slices.Contains(Folders(), folder)
}

// Folder returns where artifacts of the type stand, below qe-artifacts.
func (t Type) Folder() string {
	if kind, ok := t.TestKind(); ok {
		return path.Join(folderTests, kind)
	}
	switch t {
	case TypePatch, TypeFix:
		return folderPatches
	case TypeQR:
		return folderQR
	case TypeCoverage:
		return folderCoverage
	case TypeLog:
		return folderLogs
	}
	return folderEvidence
}

// evidenceTypes tells the type of a file of evidence by its extension. What is
// not listed is a trace: something that the program left about its own work.
func evidenceTypes() map[string]Type {
	return map[string]Type{
		".png": TypeScreenshot, ".jpg": TypeScreenshot, ".jpeg": TypeScreenshot, ".gif": TypeScreenshot, ".webp": TypeScreenshot,
		".bmp": TypeScreenshot, ".avif": TypeScreenshot,
		".log": TypeLog, ".out": TypeLog, ".txt": TypeLog,
		".md": TypeSummary, ".html": TypeSummary, ".pdf": TypeSummary, ".sarif": TypeSummary, ".xml": TypeSummary,
		".err": TypeError, ".crash": TypeError, ".dmp": TypeError, ".core": TypeError,
		".patch": TypePatch, ".diff": TypePatch,
		".trace": TypeTrace,
	}
}

// TypeAt tells the type of a file by its place below qe-artifacts.
func TypeAt(rel string) Type {
	folder, rest, _ := strings.Cut(rel, "/")
	base := path.Base(rel)
	switch folder {
	case folderTests:
		kind, _, _ := strings.Cut(rest, "/")
		if t, err := ParseType("test_" + kind); err == nil {
			return t
		}
	case folderPatches:
		if strings.HasPrefix(base, "fix-") {
			return TypeFix
		}
		return TypePatch
	case folderQR:
		return TypeQR
	case folderLogs:
		return TypeLog
	case folderCoverage:
		return TypeCoverage
	}
	if sub := strings.Split(rest, "/"); len(sub) > 2 && sub[1] == "findings" {
		return TypeSummary
	}
	if t, ok := evidenceTypes()[strings.ToLower(path.Ext(base))]; ok {
		return t
	}
	return TypeTrace
}

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
