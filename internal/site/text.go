package site

import (
	"fmt"
	"strings"
)

// QuoteWord makes one word of a shell line out of s, for hints that can be
// pasted.
func QuoteWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./+:,@%=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Megabytes prints a number of bytes for a person.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
