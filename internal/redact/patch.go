package redact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/text"
)

// PatchHolds begins each of InPatch's sentences.
const PatchHolds = "the patch holds "

// maxNamed bounds how many secrets in patches are named.
const maxNamed = 50

// Patch copies a patch in git's format, masked line by line, so that it keeps its form.
func (r *Redactor) Patch(w io.Writer, patch io.Reader) error {
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
		case BeginsPrivateKey(line):
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

// InPatch names the secrets in the lines of a patch in git's format: path, line and
// rule of each, at most maxNamed of them.
func (r *Redactor) InPatch(ctx context.Context, patch io.Reader) ([]string, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
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
			isKey := func(m Match) bool { return m.Name == "private-key" }
			if BeginsPrivateKey(line[1:]) && !slices.ContainsFunc(matches, isKey) {
				matches = append(matches, Match{Name: "private-key"})
			}
			for _, m := range matches {
				if len(found) == maxNamed {
					return append(found, PatchHolds+"more secrets than are named here"), nil
				}
				found = append(found, fmt.Sprintf(PatchHolds+"a secret: %s (%s)", at.text(), m.Name))
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
