package cmdline

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Kind says what is known of an open part of a text.
type Kind rune

// The kinds of open parts. Each is the private-use character that begins such a
// part; a name and the character end follow. So a parser takes it for letters, and
// no case conversion changes it.
const (
	None      Kind = 0        // the text has no open part
	Any       Kind = '\uE0C1' // nothing is known
	Paths     Kind = '\uE0C2' // names of files, from ls, find, grep -l
	Tracked   Kind = '\uE0C3' // names of files that git listed: tracked or changed ones
	Untracked Kind = '\uE0C4' // names of files that git listed as untracked or ignored
	Blob      Kind = '\uE0C5' // the contents of a file in a commit; the name is its path
	Commit    Kind = '\uE0C6' // the id of a commit
	Place     Kind = '\uE0C7' // a part of a starting directory that is not known
	Diff      Kind = '\uE0C8' // the output of git diff or show
	Reverse   Kind = '\uE0C9' // the output of git diff -R

	end = '\uE0CF'
	// lead is the first two bytes of all of these.
	lead = "\xee\x83"
)

// Open returns an open part. The name keeps two of one kind apart.
func Open(k Kind, name string) string {
	if name = Tame(name); k != Blob { // the slashes of a committed file's path are needed
		name = strings.ReplaceAll(name, "/", "_")
	}
	return string(k) + name[:min(len(name), 200)] + string(end)
}

// Tame keeps of a name what means nothing to a parser.
func Tame(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '/':
			return r
		}
		return '_'
	}, name)
}

// Known reports whether a text has no open part.
func Known(s string) bool { return !strings.Contains(s, lead) }

// Plain takes out of a text from outside what could be taken for an open part.
func Plain(s string) string {
	if Known(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isMark(r) {
			return '?'
		}
		return r
	}, s)
}

func isMark(r rune) bool { return r >= '\uE0C0' && r <= '\uE0FF' }

// Parts yields the kind and name of each open part. One that an expansion has cut
// in two is still there.
func Parts(s string) iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		for {
			i := strings.Index(s, lead)
			if i < 0 {
				return
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			name := ""
			if s = s[i+n:]; r == end {
				r = rune(Any)
			} else {
				name, s, _ = strings.Cut(s, string(end))
			}
			if !yield(Kind(r), name) {
				return
			}
		}
	}
}

// KindOf returns the most telling kind among a text's open parts.
func KindOf(s string) Kind {
	kind := None
	for k := range Parts(s) {
		if kind == None || kind == Any || kind == Place {
			kind = k
		}
	}
	return kind
}

// KindOr is KindOf, and Any for a text that is known.
func KindOr(s string) Kind {
	if k := KindOf(s); k != None {
		return k
	}
	return Any
}

// Printable shows a text to people: "…" for each open part.
func Printable(s string) string {
	if Known(s) {
		return s
	}
	var b strings.Builder
	inside := false
	for _, r := range s {
		switch {
		case r == end:
			inside = false
		case isMark(r):
			b.WriteRune('…')
			inside = true
		case !inside:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Shown makes words printable.
func Shown(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Printable(w)
	}
	return out
}
