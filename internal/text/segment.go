package text

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// Segment makes one safe path segment of any text: what is readable of hint, and a
// hash of all of it, so that no two texts meet.
func Segment(s, hint string) string {
	var b strings.Builder
	for _, r := range hint {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
		if b.Len() >= maxHint {
			break
		}
	}
	sum := sha256.Sum256([]byte(s))
	readable := strings.Trim(b.String(), "-.")
	if readable == "" {
		readable = "x"
	}
	ext := path.Ext(readable)
	if ext == readable || len(ext) > 8 {
		ext = ""
	}
	return strings.TrimSuffix(readable, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
}

// maxHint is how many bytes stay readable in a segment.
const maxHint = 48
