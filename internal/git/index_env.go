package git

import "github.com/seed-2d964004/superqode"

// Getenv returns a variable of the environment that git is run with, or "".
func (g *Git) Getenv(key string) string {
	return superqode.Getenv(g.env, key)
}
