package guard

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
)

// output returns what the command prints, as far as a line that uses it is read
// differently: lists of files, contents of a committed file, the place of the
// repository.
func (k *call) output() string {
	if text, ok := k.formatted(); ok {
		return text
	}
	switch k.name {
	case "ls-files":
		if p := newSpec("c/cached d/deleted m/modified o/others i/ignored s/stage u/unmerged k/killed x/exclude= X/exclude-from= exclude-per-directory= exclude-standard z t v f directory no-empty-directory full-name error-unmatch with-tree= format= eol deduplicate recurse-submodules").parse(k.args, false); p.has("others", "ignored", "killed") {
			return unknownValue(kindUntracked, "ls-files")
		}
		return unknownValue(kindTracked, "ls-files")
	case "diff", "diff-tree", "diff-index", "diff-files", "show":
		return k.diffOutput()
	case "log", "stash":
		if k.hasArg("-p", "--patch", "-u") {
			return k.patchOutput()
		}
		if k.hasArg("--format=%H", "--format=%h", "--pretty=%H", "--pretty=%h", "--pretty=format:%H", "--pretty=format:%h") {
			return unknownValue(kindCommit, "log")
		}
		if k.hasArg("--name-only") {
			return unknownValue(kindTracked, "diff")
		}
	case "status":
		return unknownValue(kindTracked, "status")
	case "clean":
		return unknownValue(kindUntracked, "clean")
	case "grep":
		if newSpec(grepOptions).parse(k.args, false).has("files-with-matches", "name-only", "files-without-match") {
			return unknownValue(kindTracked, "grep")
		}
	case "ls-tree":
		return unknownValue(kindTracked, "ls-tree")
	case "cat-file":
		if len(k.args) > 1 {
			return blobOf(k.args[len(k.args)-1])
		}
	case "merge-base", "rev-list", "commit-tree":
		return unknownValue(kindCommit, k.name)
	case "archive":
		if out := newSpec("o/output= format= prefix= remote= exec= l/list v/verbose add-file=").parse(k.args, false).last("output"); out != "" {
			k.files[under(k.inv.dir, k.inv.st.tilde(out))] = unknownValue(kindArchive, k.inv.dir)
			return ""
		}
		return unknownValue(kindArchive, k.inv.dir)
	case "rev-parse":
		return k.revParse()
	case "check-ignore":
		return unknownValue(kindUntracked, "check-ignore")
	}
	return unknownValue(kindOpen, "git "+k.name+" "+strings.Join(k.args, " "))
}

var formatFields = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%(\([^)]*\)|x[0-9a-fA-F]{2}|C\([^)]*\)|[acCGgt]?[a-zA-Z%])`)
})

// formatted is the output of a command that is told what to print around each
// name: --format='git branch -D %(refname)' makes a script.
func (k *call) formatted() (string, bool) {
	switch k.name {
	case "for-each-ref", "branch", "tag", "log", "show", "ls-files", "ls-tree", "rev-list", "reflog":
	default:
		return "", false
	}
	format := ""
	for i, a := range k.args {
		for _, name := range []string{"--format", "--pretty"} {
			if a == name && i+1 < len(k.args) {
				format = k.args[i+1]
			} else if v, ok := strings.CutPrefix(a, name+"="); ok {
				format = v
			}
		}
	}
	format = strings.TrimPrefix(strings.TrimPrefix(format, "format:"), "tformat:")
	if !strings.ContainsAny(strings.Trim(formatFields().ReplaceAllString(format, ""), " \t\"'"), "abcdefghijklmnopqrstuvwxyz") {
		return "", false // only names
	}
	return formatFields().ReplaceAllString(format, strings.ReplaceAll(unknownValue(kindOpen, "field"), "$", "$$")) + "\n", true
}

func (k *call) hasArg(names ...string) bool {
	return slices.ContainsFunc(k.args, func(a string) bool { return slices.Contains(names, a) })
}

func (k *call) diffOutput() string {
	if k.hasArg("--name-only", "--name-status") {
		return unknownValue(kindTracked, "diff")
	}
	if k.hasArg("--stat", "--shortstat", "--numstat", "--quiet", "-s", "--summary") {
		return unknownValue(kindOpen, "diff")
	}
	if k.name == "show" {
		for _, a := range k.args {
			if !strings.HasPrefix(a, "-") && strings.Contains(a, ":") {
				return blobOf(a)
			}
		}
	}
	return k.patchOutput()
}

// patchOutput is a patch, forwards or backwards.
func (k *call) patchOutput() string {
	if k.hasArg("-R") {
		return unknownValue(kindReverse, "diff")
	}
	return unknownValue(kindDiff, "diff")
}

// blobOf is the contents of REV:PATH.
func blobOf(rev string) string {
	for kind, name := range func(y func(byte, string) bool) { unknownParts(rev, y) } {
		if kind == kindBlobID {
			return unknownValue(kindBlob, name)
		}
	}
	_, file, ok := strings.Cut(rev, ":")
	if !ok || file == "" {
		return unknownValue(kindOpen, "blob")
	}
	return unknownValue(kindBlob, path.Clean(file))
}

func (k *call) revParse() string {
	if len(k.args) == 2 && k.args[0] == "--git-path" {
		return ".git/" + k.args[1]
	}
	if n := len(k.args); n > 0 && !strings.HasPrefix(k.args[n-1], "-") {
		if _, file, ok := strings.Cut(k.args[n-1], ":"); ok && file != "" && !strings.HasPrefix(file, "/") {
			return unknownValue(kindBlobID, path.Clean(file))
		}
		return unknownValue(kindCommit, k.args[n-1])
	}
	if len(k.args) != 1 {
		return unknownValue(kindOpen, "rev-parse "+strings.Join(k.args, " "))
	}
	switch k.args[0] {
	case "--git-dir", "--git-common-dir", "--absolute-git-dir":
		if k.inv.gitDir != "" {
			return k.inv.gitDir
		}
		return path.Join(k.topLevel(), ".git")
	case "--show-toplevel":
		return k.topLevel()
	case "--show-cdup":
		return ""
	}
	return unknownValue(kindOpen, "rev-parse "+k.args[0])
}

// topLevel is the root of the work tree, as far as the text tells: the root of a
// repository that the text made, else the starting directory.
func (k *call) topLevel() string {
	for root := range k.fresh {
		if superqode.Within(k.inv.dir, root) {
			return root
		}
	}
	if superqode.Within(k.inv.dir, k.startDir()) {
		return k.startDir()
	}
	return k.inv.dir
}
