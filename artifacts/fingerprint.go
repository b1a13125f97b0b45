package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// fingerprintLength is the number of hex digits of a fingerprint.
const fingerprintLength = 16

// Fingerprint names what was found so that it is known again in another session:
// 16 hex digits made of the rule (or the category), the file, and the title
// without letter case, numbers and spacing. The line is no part of it, since lines
// move; neither is the severity, which people change.
func (f Finding) Fingerprint() string {
	if f.fingerprint != "" {
		return f.fingerprint
	}
	kind := f.RuleID
	if kind == "" {
		kind = f.Category
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"superqode-finding-1", strings.ToLower(strings.TrimSpace(kind)), f.File, plainTitle(f.Title)}, "\x00")))
	return hex.EncodeToString(sum[:])[:fingerprintLength]
}

// plainTitle takes out of a title what differs between two reports of one thing:
// case, numbers, addresses and spacing.
func plainTitle(s string) string {
	var b strings.Builder
	number := false
	for _, r := range strings.ToLower(strings.Join(strings.Fields(s), " ")) {
		digit := unicode.IsDigit(r)
		switch {
		case digit && number:
		case digit:
			b.WriteByte('#')
		default:
			b.WriteRune(r)
		}
		number = digit
	}
	return b.String()
}

// IsFingerprint reports whether s has the form of a fingerprint.
func IsFingerprint(s string) bool {
	return len(s) == fingerprintLength && strings.Trim(s, "0123456789abcdef") == ""
}
