// Package revert knows what a repository is beside its work tree, tells whether
// it is still what it was, and brings it back.
//
// A RepoState holds HEAD, every ref, the stash, the index, the configuration,
// info/, hooks/ and the operation state (a merge or rebase under way). Refs are
// compared by name and value, so that packing them is no difference, and the
// index by its entries, so that a refreshed stat cache is none either.
package revert
