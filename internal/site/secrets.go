package site

import (
	"errors"
	"io"
	"slices"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/redact"
)

// Secrets are masked where something leaves the session for people to see: in the
// command's log as soon as the program has ended, in the other logs and the texts
// that it left when they become artifacts, and in every form of the report. The
// session's own folder, which is private, keeps the report as it is, for
// `superqode report --no-redact`.

// NoteSecrets remembers the environment that a program is started with.
func (s *Site) NoteSecrets(env []string) {
	for _, kv := range env {
		if !slices.Contains(s.secrets, kv) {
			s.secrets, s.masks = append(s.secrets, kv), nil
		}
	}
}

// Redactor returns what masks this session's secrets; nil, which masks nothing,
// where the session was opened so.
func (s *Site) Redactor() *redact.Redactor {
	if s.Rec.NoRedact {
		return nil
	}
	if s.masks == nil {
		s.masks = redact.New(slices.Concat(s.Env, s.secrets))
	}
	return s.masks
}

// AppendMasked adds the contents of one log to another, with secrets masked.
func (s *Site) AppendMasked(dst, src string) (err error) {
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
