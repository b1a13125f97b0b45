package installation

// Command is the word after which a hook that guard install wrote calls the helper:
// Command NAME STATE-FOLDER NEXT-HOOK [ARG…].
const Command = "installed-hook"

// Processors is what the hooks give the helper as GOMAXPROCS where the user has set
// none: it has one thing to do, and starts a tenth faster when it need not find out
// how many Processors there are. The helper knows it by the zero in front, and
// nobody after it sees it.
const Processors = "GOMAXPROCS=01"

// Hooks of git's with a meaning of their own here.
const (
	TransactionHook = "reference-transaction"
	PushToCheckout  = "push-to-checkout"
)

// GitHooks are the names of git's hooks (githooks(5) of 2.55). push-to-checkout is
// not among them: where that hook exists git no longer updates the work tree
// itself.
func GitHooks() []string {
	return []string{
		"applypatch-msg", "commit-msg", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
		"p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change",
		"post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
		"pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
		"proc-receive", TransactionHook, "sendemail-validate", "update",
	}
}

// Deciders are the hooks that refuse. reference-transaction sees every commit,
// stash, branch, tag and ref that moves, --no-verify and plumbing included; the
// others come earlier, before work was done, and have more to say.
func Deciders() []string {
	return []string{"applypatch-msg", "pre-commit", "pre-push", "pre-rebase", "prepare-commit-msg", TransactionHook}
}
