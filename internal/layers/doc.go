// Package layers puts the guard's layers to work on one machine, and tries whether
// they hold: the helper that stands in the place of git and of git's hooks in a
// session's folder, what has to be known of the user's git for that, and a Probe in a
// scratch repository, whose result is kept for as long as git and helper stay the same.
//
// What is allowed and what is denied is package guard's, what a hook's file holds is
// package hooks'.
package layers
