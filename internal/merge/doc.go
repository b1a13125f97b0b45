// Package merge decides what becomes of one side's changes where another side
// has changed things too, and puts the contents together. It writes nothing but
// files on its own Bench.
//
// Ends are the two states that a session's patch lies between, and Ends.Pairs
// its changes. Look reads the part of a folder that they are about, a Decider
// makes a Step or a Conflict of each, and Plan brings the steps into an order in
// which they can be carried out. The rules are those of git's three-way merge
// with the base in the middle, the origin as "ours" and the session as "theirs":
//
//   - what only one side changed, that side wins; what both changed alike is done
//   - two texts are merged line by line; permission bits are merged bit by bit
//   - links and binary files are whole: two different changes are a conflict
//   - an edit follows a rename by the session; an edit against a deletion is a
//     conflict
//   - anything in the way that the session did not know is a conflict: a file, a
//     folder that would not be empty, a link or file where a folder is needed
//
// Of a patch some hunks alone can be chosen: they are numbered from 1 over the
// whole diff as it is printed.
package merge
