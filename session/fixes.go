package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// Metadata of a fix artifact. Verified means that git apply --check took the patch
// on the session's base; whether it mends anything says verify-fix.
const (
	metaFinding  = "finding_id"
	metaVerified = "verified"
	metaReason   = "reason"
)

// collectFixes turns the patches that the program left for its findings into
// artifacts, each with what git says about it on the session's base.
func (s *Session) collectFixes(ctx context.Context, c *collected) ([]artifacts.New, error) {
	fixes, problems, err := artifacts.Fixes(s.ArtifactDir())
	for _, p := range problems {
		c.warnings = append(c.warnings, "fixes: "+p.String())
	}
	if err != nil || len(fixes) == 0 {
		return nil, err
	}
	if !s.Rec.HasFinal { // nothing was changed, so the base is not in the store yet
		if _, _, err := s.storeEnds(ctx, c.look); err != nil {
			return nil, err
		}
	}
	findings, err := s.rawFindings()
	if err != nil {
		return nil, err
	}
	warn := func(text string) {
		s.Tell(text)
		c.warnings = append(c.warnings, text)
	}
	var list []artifacts.New
	for _, fix := range fixes {
		n, warning, err := s.fixArtifact(ctx, fix)
		if err != nil {
			return nil, err
		}
		if warning != "" {
			warn(warning)
		}
		if !slices.ContainsFunc(findings, func(f artifacts.Finding) bool { return f.ID == fix.Finding }) {
			warn(fmt.Sprintf("fixes: %s is for %q, and no finding of the session has that id", fix.Source, fix.Finding))
		}
		list = append(list, n)
	}
	return list, nil
}

// fixArtifact describes one fix, checked on the base.
func (s *Session) fixArtifact(ctx context.Context, fix artifacts.LeftFix) (n artifacts.New, warning string, err error) {
	n = artifacts.New{
		Type: artifacts.TypeFix, Path: artifacts.FixPatch(fix.Finding), Description: "suggested fix of " + fix.Finding, OriginalFile: fix.Source,
		Session: s.Rec.ID, Agent: s.Rec.Agent, Data: fix.Patch, Metadata: map[string]any{metaFinding: fix.Finding, metaVerified: true},
	}
	if n.Path, err = s.fixPath(ctx, fix.Finding); err != nil {
		return n, "", err
	}
	reason, err := s.applies(ctx, fix.Patch)
	if err != nil {
		return n, "", err
	}
	if reason != "" {
		n.Metadata[metaVerified], n.Metadata[metaReason] = false, reason
		warning = fmt.Sprintf("the fix of %s does not apply to the base: %s", fix.Finding, reason)
	}
	if masks := s.redactor(); masks != nil {
		if found, err := secretsInPatch(ctx, bytes.NewReader(fix.Patch), masks); err == nil && len(found) > 0 {
			warning = fmt.Sprintf("the fix of %s: %s", fix.Finding, found[0])
		}
	}
	return n, warning, nil
}

// fixPath returns where a fix goes: patches/fix-<finding-id>.patch, or, where
// another session's fix has that name, one with the session's id behind it.
func (s *Session) fixPath(ctx context.Context, finding string) (string, error) {
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return "", err
	}
	list, err := store.List(ctx, artifacts.Filter{Type: artifacts.TypeFix})
	if err != nil {
		return "", err
	}
	path := artifacts.FixPatch(finding)
	for _, a := range list {
		if a.Path.String() == path && a.Session != s.Rec.ID {
			return artifacts.FixPatch(finding + "-" + s.Rec.ID.String()), nil
		}
	}
	return path, nil
}

// applies returns why a patch does not apply to the session's base, "" when it
// does. Git looks at a private index: nothing is written anywhere.
func (s *Session) applies(ctx context.Context, patch []byte) (why string, err error) {
	if err := s.OpenStore(ctx); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.Folder, ".fix-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return s.Store.CheckApply(ctx, snapshot.CheckApplyOptions{Commit: s.Ref("base"), Patch: patch, Scratch: dir})
}

// inheritFixes files the patches that an agent left in its own session, before its
// findings get the numbers that they have in this one.
func (s *Session) inheritFixes(ctx context.Context, c *Session, store *artifacts.Store) (notes []string, err error) {
	fixes, problems, err := artifacts.Fixes(c.ArtifactDir())
	for _, p := range problems {
		notes = append(notes, "fixes: "+p.String())
	}
	if err != nil || len(fixes) == 0 || atomicfile.Exists(filepath.Join(c.Folder, findingsName+".taken")) {
		return notes, err
	}
	used, _, err := s.usedIDs(false)
	if err != nil {
		return notes, err
	}
	var list []artifacts.New
	for _, fix := range fixes {
		var n int
		if _, err := fmt.Sscanf(fix.Finding, "finding-%d", &n); err == nil {
			fix.Finding = fmt.Sprintf("finding-%03d", len(used)+n)
		}
		a, warning, err := s.fixArtifact(ctx, fix)
		if err != nil {
			return notes, err
		}
		if warning != "" {
			notes = append(notes, warning)
		}
		a.Agent = c.Actor()
		list = append(list, a)
	}
	_, err = store.AddAll(ctx, list)
	return notes, err
}

// AddFix adds the patch that would mend a finding. While the session is open it is
// left where a program would leave it; afterwards it is checked on the base and
// filed at once, and the report names it.
func (s *Session) AddFix(ctx context.Context, finding string, patch []byte) error {
	if err := artifacts.CheckFindingID(finding); err != nil {
		return err
	}
	if s.Rec.State != superqode.StateDone {
		path := filepath.Join(s.ArtifactDir(), filepath.FromSlash(artifacts.FixFile(finding)))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return atomicfile.Write(path, patch, 0o600)
	}
	if !s.Rec.HasFinal {
		return superqode.Errorf(superqode.ErrNotFound, "the base of session %s was not kept, since the session changed nothing; a patch can not be checked", s.Rec.ID)
	}
	n, warning, err := s.fixArtifact(ctx, artifacts.LeftFix{Finding: finding, Patch: patch})
	if err != nil {
		return err
	}
	if warning != "" {
		s.Tell(warning)
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	added, err := store.Add(ctx, n)
	if err != nil {
		return err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "findings.lock"))
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // the lock goes with the process in any case
	return s.reportAgain(ctx, func(rep artifacts.Report) artifacts.Report {
		rep = rep.WithArtifacts([]artifacts.Artifact{added})
		return rep.WithFindings(withPatches(rep.AllFindings(), []artifacts.Artifact{added}))
	})
}

// makeStagingFolders makes the folders that a program finds in its artifact
// folder. What an earlier program put in their place stays: no link is followed,
// and a folder that can not be made is one that the program has to make itself.
func makeStagingFolders(dir string) {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, name := range artifacts.StagingFolders() {
		_ = root.Mkdir(name, 0o700)
	}
}
