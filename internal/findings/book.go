package findings

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Book is what the programs of one session found, and the report that tells of it.
type Book struct {
	*site.Site
	Log
	Gone  bool               // cleanup took the session's folder: only its report is known
	Wrote func(lines []byte) // called with what is appended to the log; nil calls nothing
}

// Open opens the book of a session.
func Open(s *site.Site) *Book {
	workspace, origin := string(s.Rec.Inside()), string(s.Rec.Origin)
	return &Book{Site: s, Log: Log{
		Dir: s.Folder, Roots: []string{workspace, origin}, Origin: origin, Ended: s.Rec.State.Ended(), At: s.Now(),
	}}
}

// Reports are the session's reports.
func (b *Book) Reports() report.Files {
	r := &b.Rec
	return report.Files{
		Dir: b.Folder, Origin: b.Origin, Session: r.ID, Name: r.Name, Trial: r.Trial, Formats: r.Reports, Masks: b.Redactor(),
	}
}

// AddAll adds several findings with one write; the answer says in the order given
// which are wrong, and the others are kept. The report of a session that has ended
// is written anew.
func (b *Book) AddAll(ctx context.Context, raws []json.RawMessage) (list []Added, err error) {
	unlock, err := lock(ctx, b.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	opt := addOptions{foundBy: b.Actor().String(), done: b.Rec.State == superqode.StateDone, wrote: b.Wrote}
	if opt.done {
		rep, err := b.Reports().Read(ctx)
		if err != nil {
			return nil, err
		}
		opt.reported = rep.AllFindings()
	}
	list, added, err := b.Log.add(raws, opt)
	if err != nil || len(added) == 0 || !b.Ended {
		return list, err
	}
	err = b.reportAgain(ctx, func(rep artifacts.Report) artifacts.Report {
		return rep.WithFindings(append(rep.AllFindings(), added...))
	})
	if !opt.done && errors.Is(err, superqode.ErrNotFound) { // preserved before it had a report
		err = nil
	}
	return list, err
}

// List returns the session's findings in the order in which they came, those that do
// not count among them, with secrets masked.
func (b *Book) List(ctx context.Context) ([]artifacts.Finding, error) {
	if b.Rec.State == superqode.StateDone {
		rep, err := b.Reports().Read(ctx)
		if !errors.Is(err, superqode.ErrNotFound) {
			return rep.AllFindings(), err
		}
	}
	list, err := b.Log.List()
	return report.MaskedFindings(list, b.Redactor()), err
}

// Import reads what the program left in its artifact folder; see Log.Import.
func (b *Book) Import() (warnings []string, err error) { return b.Log.Import(b.ArtifactDir()) }

func (b *Book) file() File {
	return File{Origin: b.Origin, Locks: b.Project.Dir, Now: b.At}
}

// Suppress enters a finding of the session into the origin's file of
// suppressions, in the place of an older entry, and, where the session has ended,
// writes its report anew. ref is a fingerprint, the beginning of one, or a
// finding's id.
func (b *Book) Suppress(ctx context.Context, ref string, entry Suppression) (Suppression, error) {
	list, err := b.List(ctx)
	if err != nil {
		return entry, err
	}
	hit, err := Find(list, ref)
	if err != nil {
		return entry, err
	}
	entry.Fingerprint = ref
	if hit != nil {
		entry.Fingerprint = hit.Fingerprint()
		entry.Title, entry.File = strings.ToValidUTF8(hit.Title, "\uFFFD"), strings.ToValidUTF8(hit.File, "\uFFFD")
	}
	if entry, err = b.file().Enter(ctx, entry); err != nil {
		return entry, err
	}
	return entry, b.suppressedAnew(ctx)
}

// Unsuppress takes a finding out of the origin's file of suppressions and,
// where the session has ended, writes its report anew. ref is as in
// Suppress. The error wraps superqode.ErrNotFound when no entry is there.
func (b *Book) Unsuppress(ctx context.Context, ref string) (Suppression, error) {
	list, err := b.List(ctx)
	if err != nil {
		return Suppression{}, err
	}
	hit, err := Find(list, ref)
	if hit != nil {
		if by := hit.Suppressed; by != nil && by.By != SuppressionsFile {
			return Suppression{}, superqode.Errorf(superqode.ErrNotFound,
				"finding %s was reported as suppressed by %s, and not by %s", hit.ID, text.Printable(by.By), SuppressionsFile)
		}
		ref = hit.Fingerprint()
	} else if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return Suppression{}, err
	}
	entry, err := b.file().Remove(ctx, ref)
	if err != nil {
		return entry, err
	}
	return entry, b.suppressedAnew(ctx)
}

// suppressedAnew lets the session go by the file as it is now.
func (b *Book) suppressedAnew(ctx context.Context) error {
	if !b.Ended || b.Gone {
		return nil
	}
	if b.Rec.State == superqode.StatePreserved { // it may go on
		if err := b.KeepSuppressions(); err != nil {
			return err
		}
	}
	err := b.ChangeReport(ctx, func(rep artifacts.Report) artifacts.Report { return rep })
	if errors.Is(err, superqode.ErrNotFound) {
		err = nil
	}
	return err
}

// ChangeReport changes the report of a session that has ended, goes by the
// suppressions of now, and files it anew.
func (b *Book) ChangeReport(ctx context.Context, change func(artifacts.Report) artifacts.Report) error {
	unlock, err := lock(ctx, b.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // the lock goes with the process in any case
	return b.reportAgain(ctx, change)
}

// reportAgain is ChangeReport for who holds the lock.
func (b *Book) reportAgain(ctx context.Context, change func(artifacts.Report) artifacts.Report) error {
	entries, warnings := b.Suppressions()
	for _, w := range warnings {
		b.Tell(w)
	}
	return b.Reports().Change(ctx, func(rep artifacts.Report) artifacts.Report {
		rep = change(rep)
		return rep.WithFindings(entries.Mark(rep.AllFindings(), b.At))
	})
}
