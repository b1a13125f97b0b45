package guard

import (
	"slices"
)

// gitCommands are the commands that git brings along ("git --list-cmds=main" of
// 2.39.5, and those added up to 2.55), sorted. An alias can not hide them.
var gitCommands = words{text: `
add add--interactive am annotate apply archimport archive backfill bisect bisect--helper blame branch bugreport bundle
cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index cherry cherry-pick citool
clean clone column commit commit-graph commit-tree config count-objects credential credential-cache credential-cache--daemon
credential-store cvsexportcommit cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree difftool
env--helper fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck
fsck-objects fsmonitor--daemon gc get-tar-commit-id grep gui hash-object help history hook http-backend http-fetch http-push imap-send
index-pack init init-db instaweb interpret-trailers last-modified log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
merge-base merge-file merge-index merge-octopus merge-one-file merge-ours merge-recursive merge-recursive-ours
merge-recursive-theirs merge-resolve merge-subtree merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4
pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push quiltimport range-diff read-tree rebase
receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay repo
request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index
show-ref sparse-checkout stage stash status stripspace submodule submodule--helper subtree survey svn switch symbolic-ref tag
unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-archive--writer upload-pack
var verify-commit verify-pack verify-tag version whatchanged worktree write-tree`}

// commonCommands get git's bonus in the search for a misspelled command
// (command-list.txt, the commands that "git help" lists).
var commonCommands = words{text: `add backfill bisect branch clone commit diff fetch grep init log merge mv pull push rebase reset restore rm show
sparse-checkout status switch tag`}

func isGitCommand(name string) bool {
	_, ok := slices.BinarySearch(gitCommands.all(), name)
	return ok
}
