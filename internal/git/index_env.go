package git

import "strings"

// Getenv returns a variable of the environment that git is run with, or "".
func (g *Git) Getenv(key string) string {
	for i := len(g.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(g.env[i], key+"="); ok {
			return v
		}
	}
	return ""
}
