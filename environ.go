package superqode

import (
	"slices"
	"strings"
)

// LookupEnv returns the value of a variable in a list of KEY=VALUE, and whether
// the list has it. Of several the last one counts, as in programs that get such
// a list.
func LookupEnv(env []string, key string) (value string, ok bool) {
	for _, kv := range slices.Backward(env) {
		if len(kv) > len(key) && kv[len(key)] == '=' && kv[:len(key)] == key {
			return kv[len(key)+1:], true
		}
	}
	return "", false
}

// Getenv is LookupEnv for a variable that may as well be empty.
func Getenv(env []string, key string) string {
	value, _ := LookupEnv(env, key)
	return value
}

// Override returns env with the assignments in set replacing earlier ones, the
// last of each name winning.
func Override(env, set []string) []string {
	last := make(map[string]int, len(set))
	for i, kv := range set {
		k, _, _ := strings.Cut(kv, "=")
		last[k] = i
	}
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		_, replaced := last[k]
		return replaced
	})
	for i, kv := range set {
		k, _, _ := strings.Cut(kv, "=")
		if last[k] == i {
			out = append(out, kv)
		}
	}
	return out
}
