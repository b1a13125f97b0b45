package superqode

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// HostPath is an absolute path of this machine. In JSON it is a string, or, when
// it is not UTF-8, an object with its bytes in base64.
type HostPath string

type hostPathBytes struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON keeps every byte of the path.
func (p HostPath) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(hostPathBytes{[]byte(p)})
}

// UnmarshalJSON reads both forms.
func (p *HostPath) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*p = HostPath(s)
		return nil
	}
	var o hostPathBytes
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	*p = HostPath(o.Bytes)
	return nil
}

// Within reports whether path is dir or lies below it. Both are clean.
func Within[P ~string](path, dir P) bool {
	return path == dir || strings.HasPrefix(string(path), strings.TrimSuffix(string(dir), "/")+"/")
}

// Under returns path as it reads in dir: itself when it is absolute.
func Under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// RealPrefix resolves the links of the longest part of path that exists.
func RealPrefix(path string) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
