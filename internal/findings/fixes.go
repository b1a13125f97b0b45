package findings

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/staging"
)

// Metadata of a fix artifact. Verified means that git apply --check took the patch
// on the session's base; whether it mends anything says verify-fix.
const (
	metaFinding  = "finding_id"
	metaVerified = "verified"
	metaReason   = "reason"
)

// CollectFixes describes the patches that the program left for its findings, each
// with what git says about it on the session's base, which is in the store. The
// warnings were shown.
func (b *Book) CollectFixes(
	ctx context.Context, filed *artifacts.Store,
) (all []artifacts.New, warnings []string, err error) {
	fixes, problems, err := staging.Fixes(b.ArtifactDir())
	for _, p := range problems {
		warnings = append(warnings, "fixes: "+p.String())
	}
	if err != nil || len(fixes) == 0 {
		return nil, warnings, err
	}
	list, err := b.Log.List()
	if err != nil {
		return nil, warnings, err
	}
	warn := func(line string) {
		b.Tell(line)
		warnings = append(warnings, line)
	}
	for _, fix := range fixes {
		n, warning, err := b.describe(ctx, filed, fix)
		if err != nil {
			return nil, warnings, err
		}
		if warning != "" {
			warn(warning)
		}
		if !slices.ContainsFunc(list, func(f artifacts.Finding) bool { return f.ID == fix.Finding }) {
			warn(fmt.Sprintf("fixes: %s is for %q, and no finding of the session has that id", fix.Source, fix.Finding))
		}
		all = append(all, n)
	}
	return all, warnings, nil
}

// InheritFixes files the patches that an agent left in its own session, before
// Log.Inherit gives its findings the numbers that they have in this one, and reads
// the findings in the files that it left. The notes are for the reader of the
// report.
func (b *Book) InheritFixes(ctx context.Context, agent *Book, filed *artifacts.Store) (notes []string, err error) {
	fixes, problems, err := staging.Fixes(agent.ArtifactDir())
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		notes = append(notes, "fixes: "+p.String())
	}
	if !agent.Log.inherited() {
		taken, _, err := b.Log.state()
		if err != nil {
			return notes, err
		}
		var all []artifacts.New
		for _, fix := range fixes {
			var n int
			if _, err := fmt.Sscanf(fix.Finding, "finding-%d", &n); err == nil {
				fix.Finding = fmt.Sprintf("finding-%03d", len(taken)+n)
			}
			a, warning, err := b.describe(ctx, filed, fix)
			if err != nil {
				return notes, err
			}
			if warning != "" {
				notes = append(notes, warning)
			}
			a.Agent = agent.Actor()
			all = append(all, a)
		}
		if _, err := filed.AddAll(ctx, all); err != nil {
			return notes, err
		}
	}
	imported, err := agent.Import()
	return append(notes, imported...), err
}

// AddFix adds the patch that would mend a finding. While the session is open it is
// left where a program would leave it; afterwards it is checked on the base and
// filed at once, and the report names it.
func (b *Book) AddFix(ctx context.Context, finding string, patch []byte) error {
	if err := artifacts.CheckFindingID(finding); err != nil {
		return err
	}
	if b.Rec.State != superqode.StateDone {
		return staging.LeaveFix(b.ArtifactDir(), finding, patch)
	}
	if !b.Rec.HasFinal {
		return superqode.Errorf(superqode.ErrNotFound, "the base of session %s was not kept, "+
			"since the session changed nothing; the patch cannot be checked", b.Rec.ID)
	}
	filed, err := artifacts.Open(string(b.Rec.Origin))
	if err != nil {
		return err
	}
	n, warning, err := b.describe(ctx, filed, staging.LeftFix{Finding: finding, Patch: patch})
	if err != nil {
		return err
	}
	if warning != "" {
		b.Tell(warning)
	}
	added, err := filed.Add(ctx, n)
	if err != nil {
		return err
	}
	return b.ChangeReport(ctx, func(rep artifacts.Report) artifacts.Report {
		rep = rep.WithArtifacts([]artifacts.Artifact{added})
		return rep.WithFindings(WithPatches(rep.AllFindings(), []artifacts.Artifact{added}))
	})
}

// describe makes one fix an artifact to be added. The warning says what a person
// should know about it, "" for nothing.
func (b *Book) describe(
	ctx context.Context, filed *artifacts.Store, fix staging.LeftFix,
) (n artifacts.New, warning string, err error) {
	n = artifacts.New{
		Type: artifacts.TypeFix, Path: artifacts.FixPatch(fix.Finding), Description: "suggested fix of " + fix.Finding,
		OriginalFile: fix.Source, Session: b.Rec.ID, Agent: b.Rec.Agent, Data: fix.Patch,
		Metadata: map[string]any{metaFinding: fix.Finding, metaVerified: true},
	}
	list, err := filed.List(ctx, artifacts.Filter{Type: artifacts.TypeFix})
	if err != nil {
		return n, "", err
	}
	taken := func(a artifacts.Artifact) bool { return a.Path.String() == n.Path && a.Session != b.Rec.ID }
	if slices.ContainsFunc(list, taken) {
		n.Path = artifacts.FixPatch(fix.Finding + "-" + b.Rec.ID.String()) // another session's fix has that name
	}
	reason, err := b.Applies(ctx, fix.Patch)
	if err != nil {
		return n, "", err
	}
	if reason != "" {
		n.Metadata[metaVerified], n.Metadata[metaReason] = false, reason
		warning = fmt.Sprintf("the fix of %s does not apply to the base: %s", fix.Finding, reason)
	}
	if masks := b.Redactor(); masks != nil {
		if found, err := masks.InPatch(ctx, bytes.NewReader(fix.Patch)); err == nil && len(found) > 0 {
			warning = fmt.Sprintf("the fix of %s: %s", fix.Finding, found[0])
		}
	}
	return n, warning, nil
}

// Applies returns why a patch does not apply to the session's base, "" when it does.
// Git looks at a private index: nothing is written anywhere.
func (b *Book) Applies(ctx context.Context, patch []byte) (why string, err error) {
	if err := b.OpenStore(ctx); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.Folder, ".fix-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return b.Store.CheckApply(ctx, store.CheckApplyOptions{Commit: b.Ref("base"), Patch: patch, Scratch: dir})
}

// FixOf returns a session's fix whose artifact or finding has the id ref, and the
// finding that it is for. The error wraps superqode.ErrNotFound when there is none.
func FixOf(
	ctx context.Context, filed *artifacts.Store, session superqode.SessionID, ref string,
) (fix artifacts.Artifact, finding string, err error) {
	list, err := filed.List(ctx, artifacts.Filter{Session: session, Type: artifacts.TypeFix})
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
