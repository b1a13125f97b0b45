package guard

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// A form of commands: their names, the options that they know, and what they do.
//
// Names stand between commas; "worktree prune" is a command's own command. Of the
// options those are listed that take a value, and those that decide.
//
// What it does stands between semicolons: a condition and an operation, or an
// operation alone; the first condition that holds counts, and where none does the
// command reads. A condition is made of options that were given, "!" negates, "+"
// joins, "|" separates alternatives. The other conditions: "args" (there are
// operands), "args>1", "@WORD" (the first operand), "^TEXT" (how the first argument
// begins), "old:OPTION" (the branch that it names may exist). Of an operation "~" is
// the dry run, "*" stands for the last word of the command's name, and "=" is the
// command that only reads.
type form struct{ names, options, does string }

const (
	commitOptions = `F/file= author= date= m/message= c/reedit-message= C/reuse-message= fixup= squash= trailer=
 t/template= cleanup= S/gpg-sign? u/untracked-files? pathspec-from-file= U/unified= inter-hunk-context= dry-run short
 porcelain long z/null`
	pushOptions = "repo= recurse-submodules= receive-pack= exec= o/push-option= n/dry-run"
	pullOptions = `r/rebase? cleanup= s/strategy= X/strategy-option= S/gpg-sign? upload-pack= j/jobs? depth=
 shallow-since= shallow-exclude= deepen= refmap= o/server-option= negotiation-tip= dry-run`
	switchOptions  = "c/create= C/force-create= conflict= orphan= t/track? f/force discard-changes m/merge"
	restoreOptions = "s/source= conflict= pathspec-from-file= U/unified= inter-hunk-context= S/staged W/worktree"
	listOptions    = `contains= no-contains= with= without= merged= no-merged= sort= points-at= format= l/list
 d/delete f/force`
	branchOptions = listOptions + ` t/track? u/set-upstream-to= set-upstream unset-upstream edit-description r/remotes
 a/all show-current D m/move M c/copy C`
	tagOptions     = listOptions + " n? m/message= F/file= trailer= cleanup= u/local-user= v/verify"
	subtreeOptions = "P/prefix= m/message= annotate= b/branch= onto= rejoin"
	repackOptions  = `d cruft cruft-expiration= unpack-unreachable= window= window-memory= depth= threads= max-pack-size=
 keep-pack= g/geometric= expire-to= filter= filter-to= combine-cruft-below-size= max-cruft-size=`
	readTreeOptions = "index-output= prefix= exclude-per-directory= n/dry-run reset u"
)

// forms is the table. A command that has no row, or whose conditions do not hold,
// only reads, or writes what takes nothing away (objects, the index).
var forms = []form{
	// --short and its kin imply --dry-run
	{"commit", commitOptions, "dry-run|short|porcelain|long|null ~commit; commit"},
	{"citool,gui citool", "", "commit"},
	{"push,send-pack,http-push", pushOptions, "dry-run ~push; push"},
	{"receive-pack", "", "push"},
	{"merge,merge-index,merge-octopus,merge-one-file,merge-ours,merge-resolve," +
		"merge-recursive,merge-recursive-ours,merge-recursive-theirs,merge-subtree", "", "merge"},
	{"rebase,am", "", "^--show-c ~*; *"},
	{"cherry-pick,revert,fast-import,update-ref,gc", "", "*"},
	{"quiltimport", "n/dry-run patches= author= series=", "dry-run ~am; am"},
	{"pull", pullOptions, "dry-run ~pull; pull"},
	{"filter-branch,filter-repo", "n/dry-run analyze", "dry-run|analyze ~filter-branch; filter-branch"},
	{"stash", "m/message= pathspec-from-file=", "stash.push"},
	{"stash list,stash show,stash create", "", "="},
	{"stash pop,stash apply,stash drop,stash clear,stash store,stash branch", "", "stash.*"},
	{"stash import", "", "stash.store"},
	{"stash export", "print to-ref=", "print =; stash.store"},
	{"switch", switchOptions,
		"force|discard-changes switch.force; merge|conflict switch.merge; old:force-create switch.reset-branch; switch"},
	{"restore", restoreOptions, "staged+!worktree restore.staged; restore.worktree"},
	{"clean", "n/dry-run e/exclude=", "dry-run ~clean; clean"},
	{"rm", "n/dry-run cached f/force r pathspec-from-file=", "dry-run ~rm; force rm.force; r+!cached rm.recursive; rm"},
	{"mv", "n/dry-run f/force", "dry-run ~mv; force mv.force; mv"},
	{"read-tree", readTreeOptions, "dry-run ~read-tree.update; u|reset read-tree.update"},
	{"branch", branchOptions, "delete|D branch.delete; move|M branch.rename; C|copy+force branch.copy; list =;" +
		"force branch.force;set-upstream|set-upstream-to|unset-upstream|edit-description branch.config;" +
		"!args|remotes|all|show-current|contains|no-contains|merged|no-merged|points-at =; branch.create"},
	{"tag", tagOptions,
		"delete tag.delete; list|verify =; force tag.force; !args|n|contains|no-contains|merged|no-merged|points-at =; tag.create"},
	{"symbolic-ref", "d/delete m=", "delete|args>1 symbolic-ref.write"},
	{"replace", "l/list d/delete e/edit g/graft convert-graft-file format=",
		"list =; delete|edit|graft|convert-graft-file|args>1 replace.write"},
	{"notes", "ref= m/message= F/file= C/reuse-message= c/reedit-message= n/dry-run",
		"@prune+dry-run ~notes.write; @add|@copy|@append|@edit|@merge|@remove|@prune notes.write"},
	{"reflog expire,reflog delete", "n/dry-run expire= expire-unreachable=", "dry-run ~reflog.*; reflog.*"},
	{"reflog drop,reflog write", "", "reflog.delete"},
	{"maintenance run", "", "gc"},
	{"maintenance start,maintenance stop,maintenance register,maintenance unregister", "", "config.write.global"},
	{"prune", "n/dry-run expire=", "dry-run ~prune; prune"},
	{"repack", repackOptions, "d repack.delete"},
	{"worktree add", "B= b= reason=", "old:B branch.force; worktree.add"},
	{"worktree prune", "n/dry-run expire=", "dry-run ~worktree.prune; worktree.prune"},
	{"worktree remove,worktree move", "f/force", "worktree.*"},
	{"remote", "", "="},
	{"remote add,remote remove,remote rename,remote set-url,remote set-branches,remote set-head", "", "remote.*"},
	{"remote rm", "", "remote.remove"},
	{"remote prune", "n/dry-run", "dry-run ~fetch; fetch"},
	{"submodule", "", "="},
	{"submodule deinit", "", "submodule.deinit"},
	{"submodule update", "f/force reference= depth= j/jobs= filter=", "force submodule.update-force"},
	{"sparse-checkout set,sparse-checkout add,sparse-checkout init,sparse-checkout disable," +
		"sparse-checkout reapply,sparse-checkout clean", "", "sparse-checkout.set"},
	{"add,stage", "", "add"},
	{"bisect", "", "bisect"},
	{"send-email,imap-send", "dry-run", "dry-run ~send-email; send-email"},
	{"svn log,svn info,svn blame,svn find-rev,svn show-ignore,svn propget,svn proplist,svn show-externals,svn gc", "",
		"="},
	{"svn,p4,cvsimport,cvsexportcommit,archimport", "n/dry-run", "dry-run ~svn.write; svn.write"},
	{"subtree", subtreeOptions, "@push push; @split+!rejoin|!args =; merge"},
	{"lfs push", "d/dry-run", "dry-run ~lfs.push; lfs.push"},
	{"lfs prune", "d/dry-run", "dry-run ~lfs.prune; lfs.prune"},
	{"lfs install,lfs uninstall,lfs update", "", "config.write.global"},
	{"lfs migrate", "everything include= exclude=", "@info =; filter-branch"},
}

// classify names the operations of a command, and follows what it starts.
func (k *call) classify() {
	if len(k.args) > 0 && (k.args[0] == "-h" && k.name != "grep" || k.args[0] == "--help") {
		k.reads("help")
		return
	}
	if k.special() {
		return
	}
	f, _ := find(forms, k.name)
	last, args := k.name, k.args
	if p := cmdline.ParseUntil(f.options, k.args); len(p.Args) > 0 {
		if sub, ok := find(forms, k.name+" "+p.Args[0]); ok {
			f, last, args = sub, p.Args[0], p.Args[1:]
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				k.reads("help")
				return
			}
		} else if !cmdline.Known(p.Args[0]) && slices.ContainsFunc(forms, func(f form) bool { return strings.HasPrefix(f.names, k.name+" ") }) {
			k.reads(k.name)
			k.Undecided(k.text(), "which "+k.name+" command this is")
			return
		}
	}
	p := cmdline.Parse(f.options, args)
	if p.Help && f.options != "" {
		k.reads("help")
		return
	}
	for clause := range strings.SplitSeq(f.does, ";") {
		words := strings.Fields(clause)
		if len(words) == 0 || len(words) == 2 && !k.holds(words[0], p, args) {
			continue
		}
		op, dry := strings.CutPrefix(strings.ReplaceAll(words[len(words)-1], "*", last), "~")
		switch {
		case op == "=":
			k.reads(k.name)
		case dry:
			k.dryRun(Operation(op))
		default:
			k.op(Operation(op))
		}
		return
	}
	k.reads(k.name)
}

func find(rows []form, name string) (form, bool) {
	for _, f := range rows {
		for n := range strings.SplitSeq(f.names, ",") {
			if n == name {
				return f, true
			}
		}
	}
	return form{}, false
}

// holds reports whether a condition of a form holds.
func (k *call) holds(condition string, p *cmdline.Parsed, args []string) bool {
	atom := func(a string) bool {
		a, negated := strings.CutPrefix(a, "!")
		kind, rest := a[0], a[1:]
		holds := false
		switch {
		case a == "args":
			holds = len(p.Args) > 0
		case a == "args>1":
			holds = len(p.Args) > 1
		case kind == '@':
			holds = len(p.Args) > 0 && p.Args[0] == rest
		case kind == '^':
			holds = len(args) > 0 && strings.HasPrefix(args[0], rest)
		case strings.HasPrefix(a, "old:"):
			holds = p.Has(a[4:]) && k.branch(p.Last(a[4:])) != No
		default:
			holds = p.Has(a)
		}
		return holds != negated
	}
	for alternative := range strings.SplitSeq(condition, "|") {
		all := true
		for a := range strings.SplitSeq(alternative, "+") {
			all = all && atom(a)
		}
		if all {
			return true
		}
	}
	return false
}

// op records an operation of this command.
func (k *call) op(op Operation) {
	excused := k.elsewhere
	if op.Leaves() && (k.name != "push" || !k.in.PushElsewhere) {
		excused = nil
	}
	p := k.in.Policy
	if k.in.Own != nil && p.Decide(op) != p.Elsewhere().Decide(op) && !k.in.Own(FindRepository(k.dir, k.in.Env, k.gitDir, k.workTree), k.gitDir != "") {
		p = p.Elsewhere()
	}
	k.decide(p, op, k.cmd.Argv, excused)
}

// global records an operation that reaches beyond the repository it names.
func (k *call) global(op Operation) { k.Operation(op, k.cmd.Argv, nil) }

// Leaves reports whether an operation sends something away: then it does not
// help that it starts in another repository, a clone pushes to its origin.
func (op Operation) Leaves() bool {
	return op == "push" || op == "lfs.push" || op == "send-email" || op == "svn.write"
}

// reads records a command that changes nothing of the user's. It has the name of
// its subcommand, so that a deny list can name it.
func (k *call) reads(name string) { k.global(Operation(name)) }

// dryRun records the dry run of an operation.
func (k *call) dryRun(op Operation) {
	k.Step(k.text(), "a dry run of "+string(op)+": allowed")
	k.allow(op, k.cmd.Argv, "a dry run changes nothing")
}

// maybe records an allowed operation that could be another one.
func (k *call) maybe(op Operation, why string) {
	k.op(op)
	k.Undecided(k.text(), why)
}

// parse reads the arguments with an option table; done is true when the command
// only prints its usage.
func (k *call) parse(table string) (p *cmdline.Parsed, done bool) {
	if p = cmdline.Parse(table, k.args); p.Help {
		k.reads("help")
	}
	return p, p.Help
}

func (k *call) branch(name string) Answer   { return k.ask(name, Resolver.Branch) }
func (k *call) revision(name string) Answer { return k.ask(name, Resolver.Revision) }
func (k *call) path(name string) Answer     { return k.ask(name, Resolver.Path) }

func (k *call) ask(name string, question func(r Resolver, ctx context.Context, at At, name string) Answer) Answer {
	if r, at, ok := k.resolver(); ok && cmdline.Known(name) {
		return question(r, k.ctx, at, name)
	}
	return NotKnown
}
