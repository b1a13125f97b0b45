package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/text"
)

// findings is where the session keeps what its programs found.
func (s *Session) findings() findings.Log {
	return findings.Log{
		Dir: s.Folder, Roots: []string{string(s.Rec.Workspace), string(s.Rec.Origin)}, Origin: string(s.Rec.Origin), Ended: s.Rec.State.Ended(), Now: s.Now(),
	}
}

// AddFindings adds several findings with one write; the answer says in the order
// given which are wrong, and the others are kept. The report of a session that has
// ended is written anew.
func (s *Session) AddFindings(ctx context.Context, raws []json.RawMessage) (list []findings.Added, err error) {
	unlock, err := findings.Lock(ctx, s.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	opt := findings.AddOptions{FoundBy: s.Actor().String(), Done: s.Rec.State == superqode.StateDone}
	if opt.Done {
		rep, err := s.reports().Read(ctx)
		if err != nil {
			return nil, err
		}
		opt.Reported = rep.AllFindings()
	}
	opt.Written = s.Wrote
	list, added, err := s.findings().Add(raws, opt)
	if err != nil || len(added) == 0 || !s.Rec.State.Ended() {
		return list, err
	}
	err = s.reportAgain(ctx, func(rep artifacts.Report) artifacts.Report {
		return rep.WithFindings(append(rep.AllFindings(), added...))
	})
	if !opt.Done && errors.Is(err, superqode.ErrNotFound) { // preserved before it had a report
		err = nil
	}
	return list, err
}

// Findings returns the session's findings in the order in which they came, those
// that do not count among them, with secrets masked.
func (s *Session) Findings() ([]artifacts.Finding, error) {
	if s.Rec.State == superqode.StateDone {
		rep, err := s.reports().Read(context.Background())
		if !errors.Is(err, superqode.ErrNotFound) {
			return rep.AllFindings(), err
		}
	}
	list, err := s.findings().List()
	return report.MaskedFindings(list, s.Redactor()), err
}

// Suppressions returns the file of suppressions of the origin around dir, which
// need not exist.
func (m *Manager) Suppressions(ctx context.Context, dir string) (findings.File, error) {
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return findings.File{}, err
	}
	return findings.File{Origin: o.Top, Locks: m.ProjectOf(o).Dir, Now: m.Now()}, nil
}

func (s *Session) suppressionsFile() findings.File {
	return findings.File{Origin: string(s.Rec.Origin), Locks: s.Project.Dir, Now: s.Now()}
}

// SuppressFinding enters a finding of the session into the origin's file of
// suppressions, in the place of an older entry, and, where the session has ended,
// writes its report anew. ref is a fingerprint, the beginning of one, or a
// finding's id.
func (s *Session) SuppressFinding(ctx context.Context, ref string, entry findings.Suppression) (findings.Suppression, error) {
	list, err := s.Findings()
	if err != nil {
		return entry, err
	}
	hit, err := findings.Find(list, ref)
	if err != nil {
		return entry, err
	}
	entry.Fingerprint = ref
	if hit != nil {
		entry.Fingerprint, entry.Title, entry.File = hit.Fingerprint(), strings.ToValidUTF8(hit.Title, "\uFFFD"), strings.ToValidUTF8(hit.File, "\uFFFD")
	}
	if entry, err = s.suppressionsFile().Enter(ctx, entry); err != nil {
		return entry, err
	}
	return entry, s.suppressedAnew(ctx)
}

// UnsuppressFinding takes a finding out of the origin's file of suppressions and,
// where the session has ended, writes its report anew. ref is as in
// SuppressFinding. The error wraps superqode.ErrNotFound when no entry is there.
func (s *Session) UnsuppressFinding(ctx context.Context, ref string) (findings.Suppression, error) {
	list, err := s.Findings()
	if err != nil {
		return findings.Suppression{}, err
	}
	hit, err := findings.Find(list, ref)
	if hit != nil {
		if by := hit.Suppressed; by != nil && by.By != findings.SuppressionsFile {
			return findings.Suppression{}, superqode.Errorf(superqode.ErrNotFound, "finding %s was reported as suppressed by %s, and not by %s", hit.ID, text.Printable(by.By), findings.SuppressionsFile)
		}
		ref = hit.Fingerprint()
	} else if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return findings.Suppression{}, err
	}
	entry, err := s.suppressionsFile().Remove(ctx, ref)
	if err != nil {
		return entry, err
	}
	return entry, s.suppressedAnew(ctx)
}

// suppressedAnew lets the session go by the file as it is now.
func (s *Session) suppressedAnew(ctx context.Context) error {
	if !s.Rec.State.Ended() || s.reportOnly {
		return nil
	}
	if s.Rec.State == superqode.StatePreserved { // it may go on
		if err := s.findings().KeepSuppressions(); err != nil {
			return err
		}
	}
	err := s.changeReport(ctx, func(rep artifacts.Report) artifacts.Report { return rep })
	if errors.Is(err, superqode.ErrNotFound) {
		err = nil
	}
	return err
}

// fixes files the patches for the session's findings.
func (s *Session) fixes(store *artifacts.Store) findings.Fixes {
	return findings.Fixes{
		Session: s.Rec.ID, Agent: s.Rec.Agent, Store: store, Applies: s.applies,
		Secrets: func(ctx context.Context, patch []byte) []string {
			masks := s.Redactor()
			if masks == nil {
				return nil
			}
			found, err := masks.InPatch(ctx, bytes.NewReader(patch))
			if err != nil {
				return nil
			}
			return found
		},
	}
}

// collectFixes turns the patches that the program left for its findings into
// artifacts, each with what git says about it on the session's base.
func (s *Session) collectFixes(ctx context.Context, c *collected, store *artifacts.Store) ([]artifacts.New, error) {
	fixes, problems, err := staging.Fixes(s.ArtifactDir())
	for _, p := range problems {
		c.warnings = append(c.warnings, "fixes: "+p.String())
	}
	if err != nil || len(fixes) == 0 {
		return nil, err
	}
	if !s.Rec.HasFinal { // nothing was changed, so the base is not in the store yet
		if _, _, err := mode.StoreEnds(ctx, s.Site, c.Look); err != nil {
			return nil, err
		}
	}
	list, err := s.findings().List()
	if err != nil {
		return nil, err
	}
	all, warnings, err := s.fixes(store).Collect(ctx, fixes, list)
	for _, w := range warnings {
		s.Tell(w)
	}
	c.warnings = append(c.warnings, warnings...)
	return all, err
}

// inheritFixes files the patches that an agent left in its own session c, and reads
// the findings in the files that it left there. The notes are for the reader of
// the report.
func (s *Session) inheritFixes(ctx context.Context, c *Session, store *artifacts.Store) (notes []string, err error) {
	fixes, problems, err := staging.Fixes(c.ArtifactDir())
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		notes = append(notes, "fixes: "+p.String())
	}
	filer := s.fixes(store)
	filer.Agent = c.Actor()
	list, warnings, err := filer.Inherit(ctx, s.findings(), c.findings(), fixes)
	if err != nil {
		return notes, err
	}
	if _, err := store.AddAll(ctx, list); err != nil {
		return notes, err
	}
	imported, err := c.findings().Import(c.ArtifactDir())
	if err != nil {
		return notes, err
	}
	return append(append(notes, warnings...), imported...), nil
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
	return s.Store.CheckApply(ctx, store.CheckApplyOptions{Commit: s.Ref("base"), Patch: patch, Scratch: dir})
}

// AddFix adds the patch that would mend a finding. While the session is open it is
// left where a program would leave it; afterwards it is checked on the base and
// filed at once, and the report names it.
func (s *Session) AddFix(ctx context.Context, finding string, patch []byte) error {
	if err := artifacts.CheckFindingID(finding); err != nil {
		return err
	}
	if s.Rec.State != superqode.StateDone {
		return staging.LeaveFix(s.ArtifactDir(), finding, patch)
	}
	if !s.Rec.HasFinal {
		return superqode.Errorf(superqode.ErrNotFound, "the base of session %s was not kept, since the session changed nothing; the patch cannot be checked", s.Rec.ID)
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return err
	}
	n, warning, err := s.fixes(store).Describe(ctx, staging.LeftFix{Finding: finding, Patch: patch})
	if err != nil {
		return err
	}
	if warning != "" {
		s.Tell(warning)
	}
	added, err := store.Add(ctx, n)
	if err != nil {
		return err
	}
	return s.changeReport(ctx, func(rep artifacts.Report) artifacts.Report {
		rep = rep.WithArtifacts([]artifacts.Artifact{added})
		return rep.WithFindings(findings.WithPatches(rep.AllFindings(), []artifacts.Artifact{added}))
	})
}

// changeReport is reportAgain under the lock that keeps others from changing the
// session's findings and report.
func (s *Session) changeReport(ctx context.Context, change func(artifacts.Report) artifacts.Report) error {
	unlock, err := findings.Lock(ctx, s.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // the lock goes with the process in any case
	return s.reportAgain(ctx, change)
}
