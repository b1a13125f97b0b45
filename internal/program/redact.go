package program

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/report"
)

// Secrets are masked where something leaves the session for people to see: in the
// command's log as soon as the program has ended, in the other logs and the texts
// that it left when they become artifacts, and in every form of the report. The
// session's own folder, which is private, keeps the report as it is, for
// `superqode report --no-redact`.

// noteSecrets remembers the environment that a program is started with.
func (s *Program) noteSecrets(env []string) {
	for _, kv := range env {
		if !slices.Contains(s.secrets, kv) {
			s.secrets, s.masks = append(s.secrets, kv), nil
		}
	}
}

// Redactor returns what masks this session's secrets; nil, which masks nothing,
// where the session was opened so.
func (s *Program) Redactor() *redact.Redactor {
	if s.Rec.NoRedact {
		return nil
	}
	if s.masks == nil {
		s.masks = redact.New(slices.Concat(s.Env, s.secrets))
	}
	return s.masks
}

// Mask returns what stands before the store for contents that may be text.
func (s *Program) Mask() func(io.Writer) io.WriteCloser {
	r := s.Redactor()
	if r == nil {
		return nil
	}
	return r.IfText
}

// FlagSecrets names the secrets in a patch, which is never changed: it would not
// apply any more. Each warning has path, line and rule.
func (s *Program) FlagSecrets(ctx context.Context, file string) ([]string, error) {
	r := s.Redactor()
	if r == nil {
		return nil, nil
	}
	f, err := atomicfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := r.InPatch(ctx, f)
	if err != nil || len(found) == 0 {
		return found, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return found, err
	}
	return found, errors.Join(atomicfile.ClearWay(report.ShownPatch(s.Folder)), atomicfile.WriteFunc(report.ShownPatch(s.Folder), 0o600, func(w io.Writer) error {
		return r.Patch(w, f)
	}))
}

// appendMasked adds the contents of one log to another, with secrets masked.
func (s *Program) appendMasked(dst, src string) (err error) {
	in, err := atomicfile.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := atomicfile.Append(dst, 0o600)
	if err != nil {
		return err
	}
	w := s.Redactor().IfText(out)
	_, err = io.Copy(w, in)
	return errors.Join(err, w.Close(), out.Close())
}
