package superqode

import "slices"

// LookupEnv returns the value of a variable in a list of KEY=VALUE, and whether
// it is there. Of several the last one counts, as for the programs that get such
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
