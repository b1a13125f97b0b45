// Package revert knows what a directory and its repository were, brings both
// back, and proves it.
//
// A Tree is a directory and the snapshot that it is brought back to. Restore
// makes a Plan first, hands it to the caller, who keeps what is about to be
// overwritten or deleted, applies it without following any link, and then looks
// again: what it returns is what that look found. Every step can be repeated, so
// a crash in the middle needs no more than another Restore.
//
// A RepoState holds HEAD, every ref, the stash, the index, the configuration,
// info/, hooks/ and the operation state (a merge or rebase under way). Refs are
// compared by name and value, so that packing them is no difference, and the
// index by its entries, so that a refreshed stat cache is none either.
package revert
