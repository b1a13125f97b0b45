package ignore

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// maxFile is the size in bytes above which a file of patterns is not read. It is
// git's, since 2.46.
const maxFile = 100 << 20

// Patterns are the lines of one file.
type Patterns []pattern

type pattern struct {
	glob
	literal string // what a matching name begins with; the glob is what follows
	whole   bool   // compared with the whole path below the file's folder, not with the last name
	dirOnly bool
	negated bool
}

// Read reads a file of patterns. Under fold, upper and lower case are the same
// (core.ignoreCase). As for git, a file that is missing, too large or not to be read
// has none; nor has one that is not a regular file.
func Read(path string, fold bool) Patterns {
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() > maxFile {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return Parse(data, fold)
}

// ReadThrough is Read for a path that may be a link, as those outside of a tree.
func ReadThrough(path string, fold bool) Patterns {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	return Read(real, fold)
}

// Parse reads the text of such a file.
func Parse(data []byte, fold bool) Patterns {
	var list Patterns
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		text, _, _ = strings.Cut(text, "\x00")
		if text = trimSpaces(text); text != "" && text[0] != '#' {
			list = append(list, parse(text, fold))
		}
	}
	return list
}

// trimSpaces removes the spaces at the end that no backslash keeps.
func trimSpaces(text string) string {
	end := -1 // where the last spaces begin
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == ' ' && end < 0:
			end = i
		case text[i] == '\\':
			i++
			end = -1
		case text[i] != ' ':
			end = -1
		}
	}
	if end < 0 {
		return text
	}
	return text[:end]
}

func parse(text string, fold bool) (p pattern) {
	text, p.negated = strings.CutPrefix(text, "!")
	text, p.dirOnly = strings.CutSuffix(text, "/")
	p.whole = strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	end := strings.IndexAny(text, `*?[\`)
	if end < 0 {
		end = len(text)
	}
	p.literal = text[:end]
	if fold {
		p.literal = lower(p.literal)
	}
	p.glob = glob{text: text[end:], path: p.whole, fold: fold}
	return p
}

// last returns the last pattern that matches, nil for none. The path is below the
// folder of the patterns' file.
func (list Patterns) last(path string, isDir bool) *pattern {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(list) - 1; i >= 0; i-- {
		p := &list[i]
		subject := name
		if p.whole {
			subject = path
		}
		if (isDir || !p.dirOnly) && p.matches(subject) {
			return p
		}
	}
	return nil
}

func (p *pattern) matches(name string) bool {
	if p.fold {
		name = lower(name)
	}
	rest, ok := strings.CutPrefix(name, p.literal)
	return ok && p.glob.matches(rest)
}

// lower changes ASCII letters alone, as git does.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}
