// Package salvage keeps what a directory holds before superqode overwrites or
// deletes it, so that nothing of the user's is lost.
//
// A Keeper makes the salvages of one session. It puts contents into the
// project's store, the exact list of entries and a Record into the session's
// folder, and all three again into a commit of the store, which outlives that
// folder. In finds salvages later, by folder and by ref; Pick finds the one
// that a person named.
package salvage
