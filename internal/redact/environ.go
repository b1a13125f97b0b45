package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	minSecret = 6       // bytes: a shorter value occurs in a text by chance
	maxSecret = 4 << 10 // bytes: of a longer value each line is a literal
	minLine   = 12      // bytes of one line of a value that has several
)

// secretParts are words that mark a variable as a secret, wherever they are in
// its name.
func secretParts() []string {
	return []string{
		"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "API_KEY", "APIKEY", "PRIVATE_KEY", "PRIVATEKEY",
		"ACCESS_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "CREDENTIAL",
	}
}

// secretWords mark it if they are a whole word of it, between underscores.
func secretWords() []string { return []string{"AUTH", "PASS", "PWD", "PAT", "CREDS", "KEY"} }

// IsSecretName reports whether a variable of that name holds a secret: *_TOKEN,
// DB_PASSWORD, AWS_SECRET_ACCESS_KEY, API_KEY, NPM_AUTH, …
func IsSecretName(name string) bool {
	name = strings.ToUpper(name)
	words := strings.Split(name, "_")
	switch last := words[len(words)-1]; last {
	case "FILE", "PATH", "DIR", "SOCK", "NAME", "ID", "URL", "HOST", "PORT", "USER", "TYPE", "METHOD", "TTL", "EXPIRY",
		"LENGTH":
		return false // it refers to a secret; a URL that holds one is found by its shape
	}
	if name == "PWD" || name == "OLDPWD" || strings.HasPrefix(name, "SUPERQODE_") {
		return false
	}
	if slices.ContainsFunc(secretParts(), func(p string) bool { return strings.Contains(name, p) }) {
		return true
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords(), w) })
}

// trivial are values that reveal nothing, although a variable with a
// secret-like name may hold them.
func trivial(value string) bool {
	switch strings.ToLower(value) {
	case "disabled", "enabled", "required", "default", "changeme", "password", "secret", "unknown", "prompt", "github",
		"basic", "bearer", "oauth2", "localhost", "undefined":
		return true
	}
	return len(value) < minSecret || strings.Trim(value, value[:1]) == "" ||
		len(value) < 8 && strings.Trim(value, "0123456789") == ""
}

// literal is a text to mask wherever it is.
type literal struct {
	text string
	name string // what replaces it
}

// literals returns what to look for: each secret value as it is and as it is
// commonly encoded.
func literals(env, extra []string) []literal {
	var list []literal
	seen := map[string]bool{}
	add := func(name, text string) {
		if len(text) >= minSecret && len(text) <= maxSecret && !seen[text] {
			seen[text] = true
			list = append(list, literal{text, name})
		}
	}
	value := func(name, v string) {
		v = strings.TrimSpace(v)
		if v == "" || trivial(v) {
			return
		}
		for _, form := range forms(v) {
			add(name, form)
		}
		if lines := strings.Split(v, "\n"); len(lines) > 1 {
			for _, l := range lines {
				if l = strings.TrimSpace(l); len(l) >= minLine && !strings.HasPrefix(l, "-----") {
					add(name, l)
				}
			}
		}
	}
	for _, kv := range env {
		name, v, ok := strings.Cut(kv, "=")
		switch {
		case !ok:
		case IsSecretName(name):
			value(name, v)
		case strings.Contains(v, "://") && strings.Contains(v, "@"):
			if u, err := url.Parse(strings.TrimSpace(v)); err == nil && u.User != nil {
				password, _ := u.User.Password()
				value(name, password)
			}
		}
	}
	for _, v := range extra {
		value("secret", v)
	}
	return list
}

// forms returns a value and its encodings. Base64 of it inside a longer text,
// as in "user:password", depends on where it begins: forms returns each of the
// three ways without its first and last letters, which depend on the
// neighbours.
func forms(v string) []string {
	digits := hex.EncodeToString([]byte(v))
	list := []string{v, url.QueryEscape(v), url.PathEscape(v), digits, strings.ToUpper(digits)}
	if b, err := json.Marshal(v); err == nil {
		list = append(list, string(b[1:len(b)-1]))
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, enc.EncodeToString([]byte(v)))
		for shift := range 3 {
			text := enc.EncodeToString(append(make([]byte, shift), v...))
			from, end := (shift*8+5)/6, (shift+len(v))*8/6
			if end-from >= 8 { // shorter pieces occur by chance
				list = append(list, text[from:end])
			}
		}
	}
	return list
}
