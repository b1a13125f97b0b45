// Package revert records what a directory and its repository were, restores
// both, and proves it.
//
// A Tree is a directory and the snapshot to restore it to. Restore first makes
// a Plan and hands it to the caller, who saves what is about to be overwritten
// or deleted. Then it applies the plan without following any link, looks again,
// and returns what that look found. Every step can be repeated, so after a
// crash another Restore is enough.
//
// A RepoState holds HEAD, every ref, the stash, the index, the configuration,
// info/, hooks/ and the operation state (a merge or rebase under way). It
// compares refs by name and value, so that packing them makes no difference,
// and the index by its entries, so that a refreshed stat cache makes none
// either.
package revert
