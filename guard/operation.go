package guard

import (
	"slices"
	"strings"
)

// Operation is the dotted name of something that a git command does: "commit",
// "reset.hard", "stash.drop". Commands that only read carry the name of their
// subcommand.
type Operation string

// OperationInfo is one row of the operations table.
type OperationInfo struct {
	Name    Operation `json:"name"`
	Default Decision  `json:"default"`
	Covers  string    `json:"covers"` // what a user would type
	Why     string    `json:"why"`    // the reason for the default
	// what to do instead; commands in it stand in backquotes and are allowed
	Suggestion string `json:"suggestion,omitempty"`
}

// Operations returns a copy of the table, sorted by name.
func Operations() []OperationInfo { return slices.Clone(operationTable) }

// Info returns an operation's row of the table; false when it has none, as for
// commands that only read.
func (op Operation) Info() (OperationInfo, bool) {
	i, ok := slices.BinarySearchFunc(operationTable, op, func(r OperationInfo, op Operation) int {
		return strings.Compare(string(r.Name), string(op))
	})
	if !ok {
		return OperationInfo{}, false
	}
	return operationTable[i], true
}

const (
	whyHistory = "history is the user's"
	whyRemote  = "nothing leaves the machine"
	whyStash   = "the stash is shared by all worktrees"
	whyLoss    = "uncommitted work would be lost"
	whyShared  = "it changes state that the whole repository shares"
	whyDelete  = "it deletes what git cannot bring back"
	whyRead    = "it changes nothing of the user's"

	doLeave  = "leave the changes in the files; they are collected when the session ends. `git diff` shows them"
	doRemote = "leave publishing to the user; `git log --oneline HEAD --not --remotes` shows what no remote has"
	doStash  = "keep the changes where they are; to try something on the side, " +
		"`git worktree add --detach $(mktemp -d)/side` or `git diff > /tmp/work.patch`"
	doEdit = "undo your own edits by editing the files; `git diff -- FILE` shows them and " +
		"`git show HEAD:FILE` prints the committed text"
	doDelete = "remove the files you made by name; `git clean -n` and `git status --short` list candidates"
	doRefs   = "leave refs to the user; `git branch NEW-NAME` makes a new branch without touching others"
	doConfig = "set it for one command: `git -c user.name=x log`; `git config --get KEY` reads"
	doAsk    = "ask the user to do it"
)

// operationTable is sorted by name (a test holds it so); it is the one source of
// the default policy, of "guard status --operations" and of the documentation.
var operationTable = []OperationInfo{
	{"add", Allow, "git add", "staging loses nothing", ""},
	{"am", Deny, "git am", whyHistory,
		"apply the patch to the files only: `git apply --check FILE`, then `git apply FILE`"},
	{"apply", Allow, "git apply", "it is an edit of files", ""},
	{"apply.reverse", Deny, "git apply -R on the work tree", whyLoss, doEdit},
	{"bisect", Allow, "git bisect (the command of bisect run is checked by itself)", "git refuses to lose work there",
		""},
	{"branch.config", Allow, "git branch --set-upstream-to, --unset-upstream, --edit-description",
		"it moves no branch", ""},
	{"branch.copy", Deny, "git branch -C, -c -f", whyShared, doRefs},
	{"branch.create", Allow, "git branch NAME, -c", "a new name takes nothing away", ""},
	{"branch.delete", Deny, "git branch -d, -D", whyShared,
		"leave the branch; `git branch --merged` lists what could go"},
	{"branch.force", Deny, "git branch -f", whyShared, doRefs},
	{"branch.rename", Deny, "git branch -m, -M", whyShared, doRefs},
	{"checkout-index.force", Deny, "git checkout-index -f", whyLoss,
		"write the files elsewhere: `git checkout-index -a --prefix=/tmp/export/`"},
	{"checkout.discard", Deny, "git checkout [REV] -- PATH, -p, git show REV:FILE > FILE", whyLoss, doEdit},
	{"checkout.force", Deny, "git checkout -f", whyLoss,
		"switch without force: `git checkout BRANCH` refuses when work would be lost; " +
			"`git worktree add --detach $(mktemp -d)/side BRANCH` gives a second tree"},
	{"checkout.merge", Deny, "git checkout -m BRANCH", "staged changes may be lost",
		"look at the branch in a second tree: `git worktree add --detach $(mktemp -d)/side BRANCH`"},
	{"checkout.reset-branch", Deny, "git checkout -B on an existing branch", "it moves a branch of the user's",
		"make a new branch: `git checkout -b NEW-NAME`"},
	{"checkout.switch", Allow, "git checkout BRANCH, --detach, -b", "git itself refuses to lose work there", ""},
	{"cherry-pick", Deny, "git cherry-pick", whyHistory, "read the change: `git show REV`, and make it in the files"},
	{"clean", Deny, "git clean without -n, deleting the files that git lists as untracked", whyDelete, doDelete},
	{"clone", Allow, "git clone", "it makes another repository", ""},
	{"commit", Deny, "git commit, every form", whyHistory, doLeave},
	{"config.file", Allow, "git config --file FILE outside of git's own files", "it is an edit of a file", ""},
	{"config.write", Deny, "git config that writes", whyShared, doConfig},
	{"config.write.global", Deny, "git config --global or --system, git lfs install, git maintenance start",
		"it changes git for all repositories of the user's", doConfig},
	{"fast-import", Deny, "git fast-import", whyHistory, doAsk},
	{"fetch", Allow, "git fetch", "only remote-tracking refs move", ""},
	{"fetch.update", Deny, "git fetch with a local target (main:feature, +refs/heads/*:refs/heads/*)",
		"it moves a branch of the user's", "fetch without a local target: `git fetch origin BRANCH`, then use FETCH_HEAD"},
	{"filter-branch", Deny, "git filter-branch, filter-repo, lfs migrate", "it rewrites history", doAsk},
	{"gc", Deny, "git gc, git maintenance", whyShared, "`git count-objects -v` shows sizes"},
	{"gitdir.write", Deny, "writing, moving or deleting inside .git", "it is the user's repository itself",
		"use git's reading commands; `git rev-parse --git-path NAME` names a file"},
	{"init", Deny, "git init over the session's repository", whyShared,
		"make a repository in a folder of its own: `git init /tmp/scratch`"},
	{"lfs.prune", Deny, "git lfs prune", whyDelete, doAsk},
	{"lfs.push", Deny, "git lfs push", whyRemote, doRemote},
	{"merge", Deny, "git merge", whyHistory,
		"see what it would give: `git merge-tree --write-tree HEAD BRANCH` or `git diff HEAD...BRANCH`"},
	{"mv", Allow, "git mv", "git refuses to overwrite", ""},
	{"mv.force", Deny, "git mv -f", whyLoss, "move without force: `git mv OLD NEW` refuses to overwrite"},
	{"notes.write", Deny, "git notes add, append, copy, edit, merge, remove, prune", whyShared,
		"`git notes show` reads"},
	{"output.overwrite", Deny, "a git option that writes over an existing file (--output=FILE)", whyLoss,
		"write to a new file: `git diff --output=/tmp/work.patch`"},
	{"prune", Deny, "git prune", whyDelete, "`git prune -n` lists what it would delete"},
	{"pull", Deny, "git pull", whyHistory, "look at what came: `git fetch origin BRANCH && git diff HEAD...FETCH_HEAD`"},
	{"push", Deny, "git push, every form", whyRemote, doRemote},
	{"read-tree.update", Deny, "git read-tree -u, --reset", whyLoss,
		"read into another index: `GIT_INDEX_FILE=/tmp/index git read-tree HEAD`"},
	{"rebase", Deny, "git rebase", whyHistory,
		"`git log --oneline BRANCH..HEAD` shows what a rebase would replay"},
	{"reflog.delete", Deny, "git reflog delete, drop", whyDelete, "`git reflog` shows it"},
	{"reflog.expire", Deny, "git reflog expire", whyDelete, "`git reflog expire --dry-run --all` shows what would go"},
	{"remote.add", Deny, "git remote add", whyShared,
		"name the address itself: `git fetch URL` or `git ls-remote URL`"},
	{"remote.remove", Deny, "git remote remove", whyShared, "`git remote -v` shows the remotes"},
	{"remote.rename", Deny, "git remote rename", whyShared, "`git remote -v` shows the remotes"},
	{"remote.set-branches", Deny, "git remote set-branches", whyShared,
		"fetch what you need: `git fetch origin BRANCH`"},
	{"remote.set-head", Deny, "git remote set-head", whyShared, "`git remote show origin` shows it"},
	{"remote.set-url", Deny, "git remote set-url", whyShared, "name the address itself: `git fetch URL`"},
	{"repack.delete", Deny, "git repack -d", whyDelete, "`git count-objects -v` shows sizes"},
	{"replace.write", Deny, "git replace that writes", whyShared, "`git replace -l` lists"},
	{"reset", Allow, "git reset, git reset [REV] -- FILE", "it only unstages", ""},
	{"reset.commit", Deny, "git reset --soft or --mixed to another commit", whyHistory,
		"to unstage: `git reset` or `git reset -- FILE`"},
	{"reset.hard", Deny, "git reset --hard", whyLoss, doEdit},
	{"reset.keep", Deny, "git reset --keep", whyHistory,
		"look at the commit in a second tree: `git worktree add --detach $(mktemp -d)/side REV`"},
	{"reset.merge", Deny, "git reset --merge", whyLoss, doEdit},
	{"restore.staged", Allow, "git restore --staged", "it only unstages", ""},
	{"restore.worktree", Deny, "git restore of the work tree", whyLoss, doEdit},
	{"revert", Deny, "git revert", whyHistory, "undo it in the files: `git show REV` shows what to take back"},
	{"rm", Allow, "git rm, git rm --cached", "git refuses when the file has changes", ""},
	{"rm.force", Deny, "git rm -f, deleting the files that git lists", whyDelete,
		"stop tracking a file and keep it: `git rm --cached FILE`"},
	{"rm.recursive", Deny, "git rm -r of the work tree", whyDelete,
		"stop tracking a folder and keep it: `git rm -r --cached DIR`"},
	{"send-email", Deny, "git send-email, imap-send", whyRemote,
		"write the patches to files: `git format-patch -o /tmp/out HEAD~1`"},
	{"sparse-checkout.set", Deny, "git sparse-checkout that changes the tree", "it takes files out of the tree",
		"`git ls-files -t` marks with S what is not in the tree"},
	{"stash.apply", Deny, "git stash apply", whyStash, "read it instead: `git stash show -p`"},
	{"stash.branch", Deny, "git stash branch", whyStash, "read it instead: `git stash show -p`"},
	{"stash.clear", Deny, "git stash clear", whyStash, "`git stash list` lists"},
	{"stash.drop", Deny, "git stash drop", whyStash, "`git stash list` lists"},
	{"stash.pop", Deny, "git stash pop", whyStash, "read it instead: `git stash show -p`"},
	{"stash.push", Deny, "git stash, stash push, stash save", whyStash, doStash},
	{"stash.store", Deny, "git stash store, import, export --to-ref", whyStash,
		"`git stash create` makes the commit without storing it"},
	{"submodule.deinit", Deny, "git submodule deinit", whyDelete, "`git submodule status` shows the submodules"},
	{"submodule.update-force", Deny, "git submodule update --force", whyLoss,
		"update without force: `git submodule update --init`"},
	{"svn.write", Deny, "git svn, p4, cvs and other bridges that write", whyHistory, doAsk},
	{"switch", Allow, "git switch BRANCH, -c, --detach", "git itself refuses to lose work there", ""},
	{"switch.force", Deny, "git switch -f, --discard-changes", whyLoss,
		"switch without force: `git switch BRANCH` refuses when work would be lost"},
	{"switch.merge", Deny, "git switch -m BRANCH", "staged changes may be lost",
		"look at the branch in a second tree: `git worktree add --detach $(mktemp -d)/side BRANCH`"},
	{"switch.reset-branch", Deny, "git switch -C on an existing branch", "it moves a branch of the user's",
		"make a new branch: `git switch -c NEW-NAME`"},
	{"symbolic-ref.write", Deny, "git symbolic-ref that writes", whyShared,
		"`git branch --show-current` reads; `git switch BRANCH` switches"},
	{"tag.create", Allow, "git tag NAME", "a new name takes nothing away", ""},
	{"tag.delete", Deny, "git tag -d", whyShared, "`git tag -l` lists"},
	{"tag.force", Deny, "git tag -f", whyShared, "make a new tag: `git tag NEW-NAME`"},
	{"update-ref", Deny, "git update-ref", whyShared, doRefs},
	{"worktree.add", Allow, "git worktree add", "a second tree takes nothing away", ""},
	{"worktree.move", Deny, "git worktree move", whyShared, "`git worktree list` lists"},
	{"worktree.prune", Deny, "git worktree prune", whyShared, "`git worktree prune -n` shows what would go"},
	{"worktree.remove", Deny, "git worktree remove", whyDelete, "leave it; `git worktree list` lists"},
}
