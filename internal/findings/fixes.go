package findings

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Metadata of a fix artifact. Verified means that git apply --check took the patch
// on the session's base; whether it mends anything says verify-fix.
const (
	metaFinding  = "finding_id"
	metaVerified = "verified"
	metaReason   = "reason"
)

// Fixes files the patches that would mend a session's findings.
type Fixes struct {
	Session superqode.SessionID
	Agent   superqode.AgentID
	Store   *artifacts.Store
	// Applies returns why a patch does not apply to the session's base, "" when it
	// does.
	Applies func(ctx context.Context, patch []byte) (why string, err error)
	// Secrets returns a line about each secret that a patch holds.
	Secrets func(ctx context.Context, patch []byte) []string
}

// Collect describes the patches that a program left in its artifact folder, each
// with what git says about it on the session's base. list are the session's
// findings.
func (x Fixes) Collect(ctx context.Context, fixes []staging.LeftFix, list []artifacts.Finding) (all []artifacts.New, warnings []string, err error) {
	for _, fix := range fixes {
		n, warning, err := x.Describe(ctx, fix)
		if err != nil {
			return nil, warnings, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if !slices.ContainsFunc(list, func(f artifacts.Finding) bool { return f.ID == fix.Finding }) {
			warnings = append(warnings, fmt.Sprintf("fixes: %s is for %q, and no finding of the session has that id", fix.Source, fix.Finding))
		}
		all = append(all, n)
	}
	return all, warnings, nil
}

// Inherit describes the patches that an agent left in its own session, before Log's
// Inherit gives its findings the numbers that they have in this one.
func (x Fixes) Inherit(ctx context.Context, own, agent Log, fixes []staging.LeftFix) (all []artifacts.New, warnings []string, err error) {
	if len(fixes) == 0 || atomicfile.Exists(agent.mark(state.FindingsFile)) {
		return nil, nil, nil
	}
	taken, _, err := own.state()
	if err != nil {
		return nil, nil, err
	}
	for _, fix := range fixes {
		var n int
		if _, err := fmt.Sscanf(fix.Finding, "finding-%d", &n); err == nil {
			fix.Finding = fmt.Sprintf("finding-%03d", len(taken)+n)
		}
		a, warning, err := x.Describe(ctx, fix)
		if err != nil {
			return nil, warnings, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		all = append(all, a)
	}
	return all, warnings, nil
}

// Describe makes one fix an artifact to be added. The warning says what a person
// should know about it, "" for nothing.
func (x Fixes) Describe(ctx context.Context, fix staging.LeftFix) (n artifacts.New, warning string, err error) {
	n = artifacts.New{
		Type: artifacts.TypeFix, Description: "suggested fix of " + fix.Finding, OriginalFile: fix.Source,
		Session: x.Session, Agent: x.Agent, Data: fix.Patch, Metadata: map[string]any{metaFinding: fix.Finding, metaVerified: true},
	}
	if n.Path, err = x.path(ctx, fix.Finding); err != nil {
		return n, "", err
	}
	reason, err := x.Applies(ctx, fix.Patch)
	if err != nil {
		return n, "", err
	}
	if reason != "" {
		n.Metadata[metaVerified], n.Metadata[metaReason] = false, reason
		warning = fmt.Sprintf("the fix of %s does not apply to the base: %s", fix.Finding, reason)
	}
	if found := x.Secrets(ctx, fix.Patch); len(found) > 0 {
		warning = fmt.Sprintf("the fix of %s: %s", fix.Finding, found[0])
	}
	return n, warning, nil
}

// path returns where a fix goes: patches/fix-<finding-id>.patch, or, where another
// session's fix has that name, one with the session's id behind it.
func (x Fixes) path(ctx context.Context, finding string) (string, error) {
	list, err := x.Store.List(ctx, artifacts.Filter{Type: artifacts.TypeFix})
	if err != nil {
		return "", err
	}
	path := artifacts.FixPatch(finding)
	if slices.ContainsFunc(list, func(a artifacts.Artifact) bool { return a.Path.String() == path && a.Session != x.Session }) {
		return artifacts.FixPatch(finding + "-" + x.Session.String()), nil
	}
	return path, nil
}

// FixOf returns a session's fix whose artifact or finding has the id ref, and the
// finding that it is for. The error wraps superqode.ErrNotFound when there is none.
func FixOf(ctx context.Context, store *artifacts.Store, session superqode.SessionID, ref string) (fix artifacts.Artifact, finding string, err error) {
	list, err := store.List(ctx, artifacts.Filter{Session: session, Type: artifacts.TypeFix})
	if err != nil {
		return fix, "", err
	}
	for _, a := range list {
		finding, _ := a.Metadata[metaFinding].(string)
		if a.ID == ref || finding == ref {
			return a, finding, nil
		}
	}
	return fix, "", superqode.Errorf(superqode.ErrNotFound, "session %s has no fix for %q", session, ref)
}

// WithPatches names the fix of each finding that has one among the artifacts.
func WithPatches(list []artifacts.Finding, all []artifacts.Artifact) []artifacts.Finding {
	fixes := map[string]string{}
	for _, a := range all {
		if id, ok := a.Metadata[metaFinding].(string); ok && a.Type == artifacts.TypeFix {
			fixes[id] = a.ID
		}
	}
	for i := range list {
		if id := fixes[list[i].ID]; id != "" && list[i].PatchID == "" {
			list[i].PatchID = id
		}
	}
	return list
}
