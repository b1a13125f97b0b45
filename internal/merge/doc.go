// Package merge decides what happens to one side's changes if another side has
// changed things too, and merges the contents. It writes only files of its own
// Scratch.
//
// Ends are the two states of a session's patch, and Ends.Pairs the changes
// between them. Look reads the part of a folder that they affect, a Decider
// makes a Step or a Conflict of each, and Plan sorts the steps so that they can
// be carried out. The rules are those of git's three-way merge with the base in
// the middle, the origin as "ours" and the session as "theirs":
//
//   - what only one side changed, that side wins; what both changed alike is done
//   - two texts are merged line by line; permission bits are merged bit by bit
//   - links and binary files are whole: two different changes are a conflict
//   - an edit follows a rename by the session; an edit against a deletion is a
//     conflict
//   - anything in the way that the session did not know is a conflict: a file, a
//     folder that would not be empty, a link or file where a folder is needed
//
// Hunks of a patch can be chosen one by one: they are numbered from 1 over the
// whole diff as it is printed.
package merge
