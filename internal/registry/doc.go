// Package registry finds sessions: where the project of an origin lies, which
// sessions there are, and which one a person means.
package registry
