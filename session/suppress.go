package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/text"
)

// suppressionsCopy is the origin's SuppressionsFile as it was when the session was
// opened. The session goes by this copy, which is sealed while programs run: in
// the modes that work in the origin a program could write itself a clean bill.
const suppressionsCopy = "suppressions.yaml"

// keepSuppressions copies the origin's file when the session is opened.
func (s *Session) keepSuppressions() error {
	data, err := readSuppressions(string(s.Rec.Origin))
	if err != nil || data == nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.Folder, suppressionsCopy), data, 0o600)
}

// readSuppressions returns the content of an origin's file, nil where there is
// none. A link is followed, as for other files that the user keeps in the origin.
func readSuppressions(origin string) ([]byte, error) {
	data, err := atomicfile.ReadThrough(filepath.Join(origin, artifacts.SuppressionsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// suppressions returns the entries that the session goes by: those of its
// beginning, or, once it has ended, those of now. A file that can not be read
// suppresses nothing, and is told.
func (s *Session) suppressions() (map[string]artifacts.Suppression, []string, error) {
	var data []byte
	var err error
	if s.Rec.State.Ended() {
		data, err = readSuppressions(string(s.Rec.Origin))
	} else if data, err = atomicfile.Read(filepath.Join(s.Folder, suppressionsCopy)); errors.Is(err, os.ErrNotExist) {
		data, err = nil, nil
	}
	if err != nil {
		return nil, []string{err.Error()}, nil
	}
	entries, problems, err := artifacts.ParseSuppressions(data)
	if err != nil {
		return nil, []string{err.Error() + "; nothing is suppressed"}, nil
	}
	var warnings []string
	for _, p := range problems {
		warnings = append(warnings, p.String())
	}
	return entries, warnings, nil
}

// SuppressFinding enters a finding of the session into the origin's
// SuppressionsFile, in the place of an older entry, and, where the session has
// ended, writes its report anew. ref is a fingerprint, the beginning of one, or a
// finding's id.
func (s *Session) SuppressFinding(ctx context.Context, ref string, entry artifacts.Suppression) (artifacts.Suppression, error) {
	list, err := s.Findings()
	if err != nil {
		return entry, err
	}
	hit, err := findFinding(list, ref)
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

// UnsuppressFinding takes a finding out of the origin's SuppressionsFile and,
// where the session has ended, writes its report anew. ref is as in
// SuppressFinding. The error wraps superqode.ErrNotFound when no entry is there.
func (s *Session) UnsuppressFinding(ctx context.Context, ref string) (artifacts.Suppression, error) {
	list, err := s.Findings()
	if err != nil {
		return artifacts.Suppression{}, err
	}
	hit, err := findFinding(list, ref)
	if hit != nil {
		if by := hit.Suppressed; by != nil && by.By != artifacts.SuppressionsFile {
			return artifacts.Suppression{}, superqode.Errorf(superqode.ErrNotFound, "finding %s was reported as suppressed by %s, and not by %s", hit.ID, text.Printable(by.By), artifacts.SuppressionsFile)
		}
		ref = hit.Fingerprint()
	} else if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return artifacts.Suppression{}, err
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
		if err := s.keepSuppressions(); err != nil {
			return err
		}
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "findings.lock"))
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // the lock goes with the process in any case
	err = s.reportAgain(ctx, func(rep artifacts.Report) artifacts.Report { return rep })
	if errors.Is(err, superqode.ErrNotFound) {
		err = nil
	}
	return err
}

// findFinding returns the finding that ref means; nil when it is a whole
// fingerprint of none.
func findFinding(list []artifacts.Finding, ref string) (*artifacts.Finding, error) {
	var hits []artifacts.Finding
	for _, f := range list {
		if f.ID == ref || f.Fingerprint() == ref {
			return &f, nil
		}
		if len(ref) >= 4 && strings.HasPrefix(f.Fingerprint(), ref) && !slices.ContainsFunc(hits, func(h artifacts.Finding) bool { return h.Fingerprint() == f.Fingerprint() }) {
			hits = append(hits, f)
		}
	}
	switch {
	case len(hits) == 1:
		return &hits[0], nil
	case len(hits) > 1:
		return nil, superqode.Errorf(superqode.ErrUsage, "%q begins the fingerprints of %d findings", ref, len(hits))
	case artifacts.IsFingerprint(ref):
		return nil, nil
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no finding has the id or the fingerprint %q", ref), "superqode finding list")
}
