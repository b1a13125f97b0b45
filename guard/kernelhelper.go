package guard

// ConfineCommand is the word with which superqode starts its helper in front of a
// program that needs mounts of its own and is not root's:
//
//	HELPER ConfineCommand FOLDER… -- [PATH ARGV0 ARG…]
//
// The folders become read-only, then the Landlock ruleset in descriptor
// confineRules is applied, then the helper becomes the program. Without one it
// ends with 0, which says that all of this can be had.
const ConfineCommand = "confined-program"

// confineRules is the descriptor of the ruleset: the first after the streams.
const confineRules = 3
