// Package apply brings a session's changes into its origin: all that were asked
// for or none, even if the machine loses power meanwhile.
//
// Package merge decides what happens to each change before anything is written.
// Then apply salvages what it overwrites, writes the plan down (apply.json in
// the session's folder), writes every new file beside its place, and exchanges
// them all. Whoever finds a plan completes or undoes it with Finish.
//
// Commits brings over the commits that a session made, with HEAD, index and
// work tree. The caller must know whether the session may be applied, and who
// else works in the origin.
package apply
