package superqode

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// SessionID names one session: qe-<YYYYMMDD>-<HHMMSS>-<6 random base32, lower
// case>, in UTC. It is also the name of the session's folders and of its admin
// folder in .git/worktrees/.
type SessionID struct{ s string }

// sessionIDShape is a session id with a 0 for each digit and an a for each
// character of base32. It is not a regular expression, because the shim, which
// starts with every git command, would have to compile it.
const sessionIDShape = "qe-00000000-000000-aaaaaa"

func isSessionID(s string) bool {
	if len(s) != len(sessionIDShape) {
		return false
	}
	for i := range len(s) {
		c, want := s[i], sessionIDShape[i]
		switch want {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'a':
			if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
				return false
			}
		default:
			if c != want {
				return false
			}
		}
	}
	return true
}

// NewSessionID makes a session id for the given moment with 30 random bits.
func NewSessionID(now time.Time) SessionID {
	return SessionID{"qe-" + now.UTC().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:6])}
}

// ParseSessionID accepts a whole session id only; the registry of sessions
// resolves prefixes and suffixes.
func ParseSessionID(s string) (SessionID, error) {
	if !isSessionID(s) {
		return SessionID{}, fmt.Errorf("%q is not a session id", s)
	}
	return SessionID{s}, nil
}

// String returns the id, or "" for the zero value.
func (id SessionID) String() string { return id.s }

// IsZero reports whether id was never set.
func (id SessionID) IsZero() bool { return id.s == "" }

// MarshalText writes the id as text.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.s), nil }

// UnmarshalText accepts what ParseSessionID accepts, and the empty text.
func (id *SessionID) UnmarshalText(b []byte) error { return parseText(id, b, ParseSessionID) }

// parseText reads what is no text, which is the zero value, or what parse accepts.
func parseText[T any](to *T, b []byte, parse func(string) (T, error)) (err error) {
	if len(b) == 0 {
		*to = *new(T)
		return nil
	}
	*to, err = parse(string(b))
	return err
}

// AgentID names the program that works in a session: letters, digits, dot,
// underscore and dash, at most 64 bytes, beginning with a letter or digit.
type AgentID struct{ s string }

func isAgentID(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// ParseAgentID checks an agent's name.
func ParseAgentID(s string) (AgentID, error) {
	if !isAgentID(s) {
		return AgentID{}, fmt.Errorf("%q is not an agent name (letters, digits, . _ -, at most 64)", s)
	}
	return AgentID{s}, nil
}

// String returns the name, or "" for the zero value.
func (id AgentID) String() string { return id.s }

// IsZero reports whether id was never set.
func (id AgentID) IsZero() bool { return id.s == "" }

// MarshalText writes the name as text.
func (id AgentID) MarshalText() ([]byte, error) { return []byte(id.s), nil }

// UnmarshalText accepts what ParseAgentID accepts, and the empty text.
func (id *AgentID) UnmarshalText(b []byte) error { return parseText(id, b, ParseAgentID) }

// RelPath is a path below a workspace: slash-separated raw bytes, relative,
// clean, without NUL, never outside the workspace. It need not be UTF-8; "" is
// the workspace itself, or no path. ParseRelPath makes it from what comes from
// outside; a scan, which reads names out of directories, by conversion.
//
// In JSON it is a string, or, when it is not UTF-8, an object with its bytes in
// base64, as a HostPath is. Where a document gives it printable and exact side
// by side, JSONPath makes both.
type RelPath string

// ParseRelPath checks p and keeps its bytes as they are; nothing is trimmed or
// cleaned. An empty path is an error.
func ParseRelPath(p string) (RelPath, error) {
	switch {
	case p == "" || p == ".":
		return "", fmt.Errorf("empty path")
	case strings.IndexByte(p, 0) >= 0:
		return "", fmt.Errorf("path %q holds a NUL byte", p)
	case p[0] == '/':
		return "", fmt.Errorf("path %q is absolute", p)
	case path.Clean(p) != p:
		return "", fmt.Errorf("path %q is not clean", p)
	case p == ".." || strings.HasPrefix(p, "../"):
		return "", fmt.Errorf("path %q leads out", p)
	}
	return RelPath(p), nil
}

// String returns the path's bytes.
func (p RelPath) String() string { return string(p) }

// IsZero reports whether p is "".
func (p RelPath) IsZero() bool { return p == "" }

// Parent returns the folder of the path, "" for one that stands at the top.
func (p RelPath) Parent() RelPath { return p[:max(strings.LastIndexByte(string(p), '/'), 0)] }

// Name returns the last part of the path.
func (p RelPath) Name() string { return string(p[strings.LastIndexByte(string(p), '/')+1:]) }

// Join returns the path of name, which is clean and relative, in the folder p.
func (p RelPath) Join(name string) RelPath {
	if p == "" {
		return RelPath(name)
	}
	return p + "/" + RelPath(name)
}

// In returns the path's place on this machine when its workspace is dir.
func (p RelPath) In(dir string) string { return filepath.Join(dir, string(p)) }

// MarshalJSON keeps every byte of the path.
func (p RelPath) MarshalJSON() ([]byte, error) { return HostPath(p).MarshalJSON() }

// UnmarshalJSON accepts what MarshalJSON wrote of a path that ParseRelPath accepts,
// and of the empty one.
func (p *RelPath) UnmarshalJSON(b []byte) error {
	var h HostPath
	if err := h.UnmarshalJSON(b); err != nil {
		return err
	}
	return parseText(p, []byte(h), ParseRelPath)
}

// Digest is a SHA-256 over a snapshot's entries.
type Digest struct {
	sum [32]byte
	set bool
}

// NewDigest wraps a SHA-256 sum.
func NewDigest(sum [32]byte) Digest { return Digest{sum, true} }

// ParseDigest reads "sha256:<64 hex digits, lower case>".
func ParseDigest(s string) (Digest, error) {
	h, ok := strings.CutPrefix(s, "sha256:")
	var d Digest
	if !ok || len(h) != 64 || h != strings.ToLower(h) {
		return Digest{}, fmt.Errorf("%q is not a digest", s)
	}
	if _, err := hex.Decode(d.sum[:], []byte(h)); err != nil {
		return Digest{}, fmt.Errorf("%q is not a digest", s)
	}
	d.set = true
	return d, nil
}

// String returns "sha256:<hex>", or "" for the zero value.
func (d Digest) String() string {
	if !d.set {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d.sum[:])
}

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return !d.set }

// MarshalText writes the digest as String does.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts what ParseDigest accepts, and the empty text.
func (d *Digest) UnmarshalText(b []byte) error { return parseText(d, b, ParseDigest) }
