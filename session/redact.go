package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Secrets are masked where something leaves the session for people to see: in the
// command's log as soon as the program has ended, in the other logs and the texts
// that it left when they become artifacts, and in every form of the report. The
// session's own folder, which is private, keeps the report as it is, for
// `superqode report --no-redact`.

// noteSecrets remembers the environment that a program is started with.
func (s *Session) noteSecrets(env []string) {
	for _, kv := range env {
		if !slices.Contains(s.Secrets, kv) {
			s.Secrets, s.Masks = append(s.Secrets, kv), nil
		}
	}
}

// redactor returns what masks this session's secrets; nil, which masks nothing,
// where the session was opened so.
func (s *Session) redactor() *redact.Redactor {
	if s.Rec.NoRedact {
		return nil
	}
	if s.Masks == nil {
		s.Masks = redact.New(slices.Concat(s.Env, s.Secrets))
	}
	return s.Masks
}

// mask returns what stands before the store for contents that may be text.
func (s *Session) mask() func(io.Writer) io.WriteCloser {
	r := s.redactor()
	if r == nil {
		return nil
	}
	return func(w io.Writer) io.WriteCloser { return &textMask{r: r, w: w} }
}

// textMask masks text and passes everything else on as it is: a screenshot, a
// trace, a database would be broken. The first bytes tell.
type textMask struct {
	r    *redact.Redactor
	w    io.Writer
	head []byte
	out  io.WriteCloser // nil until it is known
}

const textProbe = 8 << 10

// Write takes b whole.
func (t *textMask) Write(b []byte) (int, error) {
	if t.out != nil {
		return t.out.Write(b)
	}
	if t.head = append(t.head, b...); len(t.head) >= textProbe {
		if err := t.decide(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (t *textMask) decide() error {
	r := t.r
	if !redact.IsText(t.head) {
		r = nil
	}
	t.out = r.Writer(t.w)
	_, err := t.out.Write(t.head)
	t.head = nil
	return err
}

// Close completes the content.
func (t *textMask) Close() error {
	if t.out == nil {
		if err := t.decide(); err != nil {
			return err
		}
	}
	return t.out.Close()
}

// maskedReport returns a copy of the report without secrets. Paths and ids stay:
// without them nothing in the report could be found.
func maskedReport(rep artifacts.Report, r *redact.Redactor) artifacts.Report {
	if r == nil {
		return rep
	}
	rep.Findings, rep.Suppressed = fixed(rep.Findings), fixed(rep.Suppressed)
	maskStrings(reflect.ValueOf(&rep).Elem(), r)
	return rep
}

// maskedFindings returns copies of findings without secrets.
func maskedFindings(list []artifacts.Finding, r *redact.Redactor) []artifacts.Finding {
	if r != nil {
		list = fixed(list)
		maskStrings(reflect.ValueOf(&list).Elem(), r)
	}
	return list
}

// fixed returns copies of findings whose fingerprints stay when texts are masked.
func fixed(list []artifacts.Finding) []artifacts.Finding {
	out := make([]artifacts.Finding, len(list))
	for i, f := range list {
		out[i] = f.WithFingerprint()
	}
	return out
}

// maskStrings masks every exported string below v. Slices and pointers are copied
// before they are changed: the caller's report is not ours.
func maskStrings(v reflect.Value, r *redact.Redactor) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); v.CanSet() && s != "" {
			if m := r.Text(s); m != s {
				v.SetString(m)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				maskStrings(v.Field(i), r)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 || !v.CanSet() || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		for i := range v.Len() {
			maskStrings(v.Index(i), r)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.CanSet() {
			one := reflect.New(v.Type().Elem())
			one.Elem().Set(v.Elem())
			v.Set(one)
			maskStrings(one.Elem(), r)
		}
	}
}

// maxFlags bounds how many secrets in patches are named.
const maxFlags = 50

// flagSecrets names the secrets in a patch, which is never changed: it would not
// apply any more. Each warning has path, line and rule.
func (s *Session) flagSecrets(ctx context.Context, file string) ([]string, error) {
	r := s.redactor()
	if r == nil {
		return nil, nil
	}
	f, err := atomicfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := secretsInPatch(ctx, f, r)
	if err != nil || len(found) == 0 {
		return found, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return found, err
	}
	return found, errors.Join(atomicfile.ClearWay(s.shownPatchPath()), atomicfile.WriteFunc(s.shownPatchPath(), 0o600, func(w io.Writer) error {
		return maskPatch(w, f, r)
	}))
}

// shownPatchPath is a copy of the session's patch without the secrets that it
// holds, for showing it; it is there only when there are some.
func (s *Session) shownPatchPath() string { return filepath.Join(s.Folder, "patch.shown") }

// maskPatch copies a patch line by line, so that it keeps its form.
func maskPatch(w io.Writer, patch io.Reader, r *redact.Redactor) error {
	in, out := bufio.NewReader(patch), bufio.NewWriter(w)
	key := 0 // lines of a private key that may still come
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case key > 0 && len(line) > 1:
			if key--; bytes.Contains(line, []byte("-----END")) {
				key = 0
			} else {
				line = append(line[:1:1], "[redacted:private-key]\n"...)
			}
		case redact.BeginsPrivateKey(line):
			key = maxKeyLines
		default:
			line = r.Bytes(line)
		}
		_, werr := out.Write(line)
		if werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// maxKeyLines bounds a private key in a patch: the biggest in use have 200 lines.
const maxKeyLines = 400

func secretsInPatch(ctx context.Context, patch io.Reader, r *redact.Redactor) ([]string, error) {
	var found []string
	at := patchPlace{}
	in := bufio.NewReaderSize(patch, 64<<10)
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil // a long line is looked at in pieces
		}
		at.read(line)
		if at.content && len(line) > 1 {
			matches := r.Find(line[1:])
			if redact.BeginsPrivateKey(line[1:]) && !slices.ContainsFunc(matches, func(m redact.Match) bool { return m.Name == "private-key" }) {
				matches = append(matches, redact.Match{Name: "private-key"})
			}
			for _, m := range matches {
				if len(found) == maxFlags {
					return append(found, "the patch holds more secrets than are named here"), nil
				}
				found = append(found, fmt.Sprintf("the patch holds a secret: %s (%s)", at.text(), m.Name))
			}
		}
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if n%1000 == 0 && ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
	}
}

// patchPlace follows a patch in git's format from line to line.
type patchPlace struct {
	path     string
	old, new int // the next line's numbers
	left     int // lines of the hunk that are still to come, both sides
	content  bool
	removed  bool
	line     int
}

// text returns path:line, and says so when the line is one that goes.
func (p *patchPlace) text() string {
	if p.removed {
		return fmt.Sprintf("%s:%d of before", text.Printable(p.path), p.line)
	}
	return fmt.Sprintf("%s:%d", text.Printable(p.path), p.line)
}

func (p *patchPlace) read(line []byte) {
	p.content = p.left > 0 && len(line) > 0 && bytes.IndexByte([]byte("+- "), line[0]) >= 0
	if p.content {
		p.removed = line[0] == '-'
		p.line = p.new
		if p.removed {
			p.line = p.old
		}
		if line[0] != '+' {
			p.old, p.left = p.old+1, p.left-1
		}
		if line[0] != '-' {
			p.new, p.left = p.new+1, p.left-1
		}
		return
	}
	text := strings.TrimRight(string(line), "\r\n")
	switch {
	case strings.HasPrefix(text, "+++ b/"), strings.HasPrefix(text, "--- a/"):
		p.path = strings.TrimSuffix(text[6:], "\t")
	case strings.HasPrefix(text, `+++ "b/`), strings.HasPrefix(text, `--- "a/`):
		p.path = strings.Trim(text[4:], `"`)[2:]
	case strings.HasPrefix(text, "@@ "):
		var a, an, b, bn int
		an, bn = 1, 1
		old, rest, _ := strings.Cut(strings.TrimPrefix(text, "@@ -"), " +")
		fresh, _, _ := strings.Cut(rest, " ")
		_, _ = fmt.Sscanf(old+" ", "%d,%d", &a, &an) // without a comma there is one line
		_, _ = fmt.Sscanf(fresh+" ", "%d,%d", &b, &bn)
		p.old, p.new, p.left = a, b, an+bn
	}
}

// appendMasked adds the contents of one log to another, with secrets masked.
func (s *Session) appendMasked(dst, src string) (err error) {
	in, err := atomicfile.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := atomicfile.Append(dst, 0o600)
	if err != nil {
		return err
	}
	w := io.WriteCloser(nopCloser{out})
	if mask := s.mask(); mask != nil {
		w = mask(out)
	}
	_, err = io.Copy(w, in)
	return errors.Join(err, w.Close(), out.Close())
}

type nopCloser struct{ *os.File }

// Close leaves the file open.
func (nopCloser) Close() error { return nil }
