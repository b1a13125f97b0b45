// Package glob is the dialect of patterns for files that are asked for: doublestar's,
// where "*" stays within a folder, "**" does not and "{a,b}" are alternatives; and the
// plain name of a folder, or a pattern that ends in "/", stands for all that is below.
package glob

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Pattern is one of the patterns, relative to a folder.
type Pattern struct {
	glob string
	all  bool // what is below a folder that it names counts, too
	only bool // and nothing else does
}

const special = `*?[{\`

// Parse reads a pattern. The error goes on where a sentence has named it.
func Parse(text string) (Pattern, error) {
	switch {
	case text == "" || strings.ContainsRune(text, 0):
		return Pattern{}, errors.New("is empty or holds a NUL byte")
	case path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), ".."):
		return Pattern{}, errors.New("leads out of its folder")
	case !doublestar.ValidatePattern(text):
		return Pattern{}, errors.New("is not a pattern")
	}
	p := Pattern{glob: path.Clean(text)}
	slash := strings.HasSuffix(text, "/")
	p.only = slash && p.glob != "."
	p.all = slash || !strings.ContainsAny(p.glob, special)
	return p, nil
}

// Fold returns the pattern for names in lower case.
func (p Pattern) Fold() Pattern {
	p.glob = strings.ToLower(p.glob)
	return p
}

// Match reports whether a file is asked for.
func (p Pattern) Match(name string) bool {
	return !p.only && doublestar.MatchUnvalidated(p.glob, name) || p.all && p.above(name)
}

// Covers reports whether a path, or a folder that it lies in, is asked for.
func (p Pattern) Covers(name string) bool {
	return doublestar.MatchUnvalidated(p.glob, name) || p.above(name)
}

// Everything reports whether nothing is left out.
func (p Pattern) Everything() bool { return p.glob == "**" || p.glob == "." }

// above reports whether the pattern matches a folder that the path lies in.
func (p Pattern) above(name string) bool {
	if p.glob == "." {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if doublestar.MatchUnvalidated(p.glob, dir) {
			return true
		}
	}
	return false
}

// Base is the folder that contains all matches, or the one file that matches.
func (p Pattern) Base() string {
	if p.all && !strings.ContainsAny(p.glob, special) {
		return p.glob
	}
	base, _ := doublestar.SplitPattern(p.glob)
	return base
}

// Below reports whether a folder may hold matches: one that is deeper than the pattern has
// components does not.
func (p Pattern) Below(dir string) bool {
	return p.all || strings.Contains(p.glob, "**") || strings.Contains(p.glob, "{") ||
		strings.Count(dir, "/") < strings.Count(p.glob, "/")
}

// Names reports whether the pattern itself names a folder called name.
func (p Pattern) Names(name string) bool {
	return slices.Contains(strings.Split(p.glob, "/"), name)
}
