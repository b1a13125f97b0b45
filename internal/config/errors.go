package config

import (
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Error is one thing that is wrong with the configuration. Where is the file,
// the environment variable or the flag; Line and Column count from 1 and are 0
// outside files, Column also where a whole entry is wrong; Key is the full key, or "" for a file that is not YAML.
type Error struct {
	Where        string
	Line, Column int
	Key          string
	Msg          string
}

// Error returns "superqode.yaml:3:5: workspace.default_mode: …".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Where)
	for _, n := range []int{e.Line, e.Column} {
		if n > 0 {
			fmt.Fprintf(&b, ":%d", n)
		}
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns superqode.ErrUsage.
func (e *Error) Unwrap() error { return superqode.ErrUsage }

// nearest returns the known key that resembles key most. A key whose last part
// is right but whose section is missing or wrong is near as well.
func nearest(key string, known []string) string {
	best, bestDistance := "", -1
	last := key[strings.LastIndexByte(key, '.')+1:]
	for _, k := range known {
		d := distance(key, k)
		if tail := k[strings.LastIndexByte(k, '.')+1:]; tail != k || last != key {
			d = min(d, distance(last, tail)+1) // one more, so that the same section wins
			if len(last) > 2 && strings.Contains(tail, last) {
				d = min(d, 2) // mode for default_mode
			}
		}
		if bestDistance < 0 || d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters to insert, remove or replace to
// turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range y {
			cost := 1
			if r == s {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}
