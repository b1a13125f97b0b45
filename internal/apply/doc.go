// Package apply brings a session's changes into its origin: all that were asked for
// or none, also when the machine loses power on the way.
//
// What becomes of each change is package merge's decision, made before anything is
// written. Then what is overwritten is salvaged, the plan is written down (apply.json
// in the session's folder), every new file is written beside its place, and they all
// change places. Whoever finds a plan goes forward or back with Finish.
//
// Commits brings over the commits that a session made, with HEAD, index and work
// tree. Whether the session may be applied, and who else works in the origin, is for
// the caller to know.
package apply
