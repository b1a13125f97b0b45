package guard

import "strings"

// classify names the operations of a command. A command that stands in no case
// only reads, or writes what takes nothing away (objects, the index).
func (k *call) classify() {
	switch k.name {
	case "commit", "citool":
		k.commit()
	case "push", "send-pack", "http-push":
		k.push()
	case "receive-pack":
		k.op("push")
	case "merge", "merge-index", "merge-octopus", "merge-one-file", "merge-ours", "merge-recursive", "merge-recursive-ours",
		"merge-recursive-theirs", "merge-resolve", "merge-subtree":
		k.simple("merge")
	case "rebase", "am":
		k.sequence(Operation(k.name))
	case "cherry-pick", "revert", "fast-import", "update-ref":
		k.simple(Operation(k.name))
	case "quiltimport":
		k.dryOr("am", "n/dry-run patches= author= series= keep-non-patch")
	case "pull":
		k.dryOr("pull", pullOptions)
	case "filter-branch", "filter-repo":
		k.dryOr("filter-branch", "n/dry-run analyze")
	case "stash":
		k.stash()
	case "reset":
		k.reset()
	case "checkout":
		k.checkout()
	case "switch":
		k.doSwitch()
	case "restore":
		k.restore()
	case "clean":
		k.clean()
	case "rm":
		k.rm()
	case "mv":
		k.mv()
	default:
		k.classifyState()
	}
}

// classifyState goes on with the commands that change shared state.
func (k *call) classifyState() {
	switch k.name {
	case "checkout-index":
		k.checkoutIndex()
	case "read-tree":
		k.readTree()
	case "apply":
		k.apply()
	case "branch":
		k.doBranch()
	case "tag":
		k.tag()
	case "fetch":
		k.fetch()
	case "symbolic-ref":
		k.symbolicRef()
	case "replace":
		k.replace()
	case "notes":
		k.notes()
	case "reflog":
		k.reflog()
	case "gc":
		k.simple("gc")
	case "maintenance":
		k.maintenance()
	case "prune":
		k.dryOr("prune", "n/dry-run v/verbose progress expire= exclude-promisor-objects")
	case "repack":
		k.repack()
	case "worktree":
		k.worktree()
	case "remote":
		k.remote()
	case "submodule":
		k.submodule()
	case "sparse-checkout":
		k.sparseCheckout()
	case "config":
		k.config()
	case "init", "init-db":
		k.init()
	case "clone":
		k.clone()
	default:
		k.classifyRest()
	}
}

func (k *call) classifyRest() {
	switch k.name {
	case "add", "stage":
		k.op("add")
	case "bisect":
		k.bisect()
	case "difftool":
		k.difftool()
	case "grep":
		k.grep()
	case "for-each-repo":
		k.forEachRepo()
	case "send-email", "imap-send":
		k.dryOr("send-email", "dry-run")
	case "svn", "p4", "cvsimport", "cvsexportcommit", "archimport":
		k.bridge()
	case "subtree":
		k.subtree()
	case "gui":
		if sub, _ := first(k.args); sub == "citool" {
			k.op("commit")
			return
		}
		k.read("gui")
	case "shell":
		k.read("shell")
		if p := newSpec("c=").parse(k.args, true); p.has("c") {
			k.nested(k.inv.st, p.last("c"), "git shell runs it")
		}
	case "lfs":
		k.lfs()
	case "diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "stash-show", "format-patch", "range-diff", "archive", "bundle":
		k.outputFile()
		k.read(k.name)
	default:
		k.read(k.name)
	}
}

// knownExternal names companions that are programs of their own but change
// history or send it away; "git NAME" is classified here.
func knownExternal(name string) bool { return name == "lfs" || name == "filter-repo" }

// simple is a command that does one thing in every form.
func (k *call) simple(op Operation) { k.op(op) }

// dryOr is an operation with a dry run.
func (k *call) dryOr(op Operation, spec string) {
	p, done := k.parse(spec)
	if done {
		return
	}
	if p.has("dry-run", "analyze") {
		k.dryRun(op)
		return
	}
	k.op(op)
}

const commitOptions = `q/quiet v/verbose F/file= author= date= m/message= c/reedit-message= C/reuse-message= fixup= squash=
 reset-author trailer= s/signoff t/template= e/edit cleanup= status S/gpg-sign? a/all i/include interactive p/patch o/only n/no-verify
 dry-run short branch ahead-behind porcelain long z/null amend no-post-rewrite u/untracked-files? pathspec-from-file= pathspec-file-nul
 allow-empty allow-empty-message U/unified= inter-hunk-context=`

func (k *call) commit() {
	p, done := k.parse(commitOptions)
	if done {
		return
	}
	// --short, --porcelain and --long imply --dry-run, -z implies --porcelain
	// (git-commit(1)).
	if k.name == "commit" && p.has("dry-run", "short", "porcelain", "long", "null") {
		k.dryRun("commit")
		return
	}
	k.op("commit")
}

const pushOptions = `v/verbose q/quiet repo= all branches mirror d/delete tags n/dry-run porcelain f/force force-with-lease? force-if-includes
 recurse-submodules= thin receive-pack= exec= u/set-upstream progress prune no-verify follow-tags signed? atomic o/push-option= 4/ipv4 6/ipv6
 stdin stateless-rpc helper-status`

func (k *call) push() {
	p, done := k.parse(pushOptions)
	if done {
		return
	}
	if p.has("dry-run") {
		k.dryRun("push")
		return
	}
	k.op("push")
}

const pullOptions = `v/verbose q/quiet progress recurse-submodules? r/rebase? n stat summary log? signoff squash commit edit cleanup= ff ff-only
 verify verify-signatures autostash s/strategy= X/strategy-option= S/gpg-sign? allow-unrelated-histories all a/append upload-pack= f/force
 t/tags p/prune j/jobs? dry-run k/keep depth= shallow-since= shallow-exclude= deepen= unshallow update-shallow refmap= o/server-option=
 4/ipv4 6/ipv6 negotiation-tip= show-forced-updates set-upstream`

// sequence is rebase or am: one form only shows.
func (k *call) sequence(op Operation) {
	if len(k.args) > 0 && strings.HasPrefix(k.args[0], "--show-c") {
		k.dryRun(op)
		return
	}
	k.op(op)
}

func (k *call) stash() {
	sub := "push"
	if len(k.args) > 0 && !strings.HasPrefix(k.args[0], "-") {
		sub = k.args[0]
	}
	switch sub {
	case "list", "show":
		if sub == "show" {
			k.outputFile()
		}
		k.read("stash")
	case "create":
		k.read("stash")
	case "pop", "apply", "drop", "clear", "store", "branch":
		k.op(Operation("stash." + sub))
	case "import":
		k.op("stash.store")
	case "export":
		if strings.Contains(strings.Join(k.args, " "), "--print") {
			k.read("stash")
			return
		}
		k.op("stash.store")
	default: // push, save, and words that git may take for push
		if len(k.args) > 0 && !isKnown(sub) {
			k.maybe("stash", "which stash command this is")
			return
		}
		if p := newSpec("").parse(k.args, false); p.help {
			k.read("help")
			return
		}
		k.op("stash.push")
	}
}
