package guard

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// findCall is one call of find or fd: where it looks and what its expression
// leaves.
type findCall struct {
	*checker
	st    *state
	fd    bool // fd, fdfind
	args  []string
	roots []string

	pruned   bool   // an alternative that .git has ends in -prune
	excluded bool   // .git is left out
	named    bool   // tests leave some names only
	gitNamed bool   // … and what is in .git, or .git itself, can have them
	top      bool   // -maxdepth 1
	kind     string // -type
}

// find runs commands on what it finds, and deletes it. It returns the names that
// it prints.
func (c *checker) find(st *state, base string, args []string) string {
	f := &findCall{checker: c, st: st, args: args, fd: base == "fd" || base == "fdfind"}
	for _, a := range args {
		if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
			break
		}
		f.roots = append(f.roots, a)
	}
	if f.fd { // the first operand is a pattern
		f.named, f.roots = len(f.roots) > 0, f.roots[min(1, len(f.roots)):]
	}
	if len(f.roots) == 0 {
		f.roots = []string{"."}
	}
	for i := 0; i < len(args); {
		i = f.primary(i)
	}
	if i := slices.Index(args, "-printf"); i >= 0 && i+1 < len(args) { // "git checkout -- %p\n"
		return ansiC(findFields().ReplaceAllString(args[i+1], unknownValue(kindPaths, "printf")))
	}
	return f.found()
}

var findFields = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[-+ 0#]*[0-9]*(?:[ABCT].|[A-Za-z])`) })

// primary reads one test, operator or action and returns the index after it.
func (f *findCall) primary(i int) int {
	next := ""
	if i+1 < len(f.args) {
		next = f.args[i+1]
	}
	switch a := f.args[i]; a {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex":
		f.name(i, next)
		return i + 2
	case "-prune":
		f.pruned = f.pruned || f.gitNamed
	case "-o", "-or", ",":
		f.excluded = f.excluded || f.pruned // ".git -prune -o …": what follows leaves it out
		f.named, f.gitNamed, f.kind = false, false, ""
	case "-maxdepth":
		f.top = next == "1" || next == "0"
		return i + 2
	case "-type":
		f.kind = next
		return i + 2
	case "-mindepth", "-printf", "-fprint", "-fprintf", "-fls":
		return i + 2
	case "-empty", "-newer", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-size", "-user", "-group", "-perm", "-links", "-uid", "-gid", "-nouser", "-executable", "-newermt":
		f.named = true
	case "-delete":
		f.remove()
	case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		if (a == "-x" || a == "-X" || a[1] == '-') == f.fd {
			return f.exec(i + 1)
		}
	}
	return i + 1
}

// name reads a test of names or paths.
func (f *findCall) name(i int, pattern string) {
	negated := i > 0 && (f.args[i-1] == "!" || f.args[i-1] == "-not")
	hit := f.reaches(f.args[i], pattern)
	switch {
	case negated && hit:
		f.excluded = true
	case negated:
	case pattern == "*":
	default:
		// Two tests must both hold; a path inside .git can have any name.
		f.gitNamed = hit && (!f.named || f.gitNamed || strings.Contains(pattern, ".git/"))
		f.named = true
	}
}

// gitFiles and gitFolders are names in a git directory.
var (
	gitFiles   = words{text: "HEAD config index packed-refs ORIG_HEAD FETCH_HEAD description"}
	gitFolders = words{text: "refs objects hooks logs info worktrees modules"}
)

// reaches reports whether a pattern matches .git or what is in it.
func (f *findCall) reaches(test, pattern string) bool {
	if strings.HasSuffix(test, "regex") {
		return strings.Contains(pattern, ".git") && !strings.Contains(pattern, ".github") && !strings.Contains(pattern, ".gitignore")
	}
	if strings.Contains(test, "name") && !strings.Contains(test, "whole") {
		if glob(pattern, ".git") || strings.EqualFold(pattern, ".git") {
			return true
		}
		if !slices.ContainsFunc(f.roots, func(r string) bool { return f.wholeTree(under(f.st.dir, f.st.tilde(r))) }) {
			return false
		}
		files := f.kind != "d" && slices.ContainsFunc(gitFiles.all(), func(n string) bool { return glob(pattern, n) })
		return files || f.kind != "f" && slices.ContainsFunc(gitFolders.all(), func(n string) bool { return glob(pattern, n) })
	}
	for _, r := range f.roots {
		for _, p := range []string{"/.git", "/.git/config", "/.git/HEAD", "/.git/refs/heads/main"} {
			if glob(pattern, strings.TrimSuffix(r, "/")+p) {
				return true
			}
		}
	}
	return false
}

// glob matches as find does: "*" matches slashes and leading dots, too.
func glob(pattern, name string) bool {
	if len(pattern) > 200 || !isKnown(pattern) {
		return false
	}
	var b strings.Builder
	b.WriteString("^(?s:")
	for _, r := range pattern {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteByte('.')
		case '[', ']', '^', '-':
			b.WriteRune(r)
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	re, err := regexp.Compile(strings.ReplaceAll(b.String(), "[!", "[^") + ")$")
	return err == nil && re.MatchString(name)
}

// found is the names that are printed, and that stand for {}.
func (f *findCall) found() string {
	switch {
	case f.gitNamed && !f.excluded:
		root := f.roots[0]
		if slices.Contains(f.roots, ".") || root == ".git" || strings.Contains(root, "/.git") {
			return ".git"
		}
		return path.Join(root, ".git")
	case f.everything():
		return unknownValue(kindPaths, foundAll)
	case len(f.roots) == 1 && f.roots[0] != "." && !f.fd:
		return strings.TrimSuffix(f.roots[0], "/") + "/" + unknownValue(kindPaths, "find")
	}
	return unknownValue(kindPaths, "find")
}

// foundAll is the name of the unknown value that holds every file of the tree,
// those in .git too.
const foundAll = "all"

// everything reports whether the tree and its .git are found whole.
func (f *findCall) everything() bool {
	return !f.named && !f.excluded && !f.fd && !(f.top && f.kind == "f") &&
		slices.ContainsFunc(f.roots, func(r string) bool { return f.wholeTree(under(f.st.dir, f.st.tilde(r))) })
}

// exec runs -exec and returns the index after its end.
func (f *findCall) exec(i int) int {
	words := f.args[i:]
	end := slices.IndexFunc(words, func(w string) bool { return w == ";" || w == "+" })
	if end < 0 {
		end = len(words)
	}
	cmd, found := make([]string, 0, end), f.found()
	for _, w := range words[:end] {
		cmd = append(cmd, strings.ReplaceAll(w, "{}", found))
	}
	if f.fd && !slices.Contains(words[:end], "{}") {
		cmd = append(cmd, found)
	}
	f.run(withoutShell(f.st), cmd)
	return i + end + 1
}

// remove is -delete. With -prune GNU find refuses it, unless -depth stands there.
func (f *findCall) remove() {
	if slices.Contains(f.args, "-prune") && !slices.Contains(f.args, "-depth") && !slices.Contains(f.args, "-d") {
		return
	}
	for _, r := range f.roots {
		full := under(f.st.dir, f.st.tilde(r))
		if f.excluded && f.gitPath(f.st, full) == "" {
			continue
		}
		if f.gitNamed && !f.otherRoot(f.st, full) || f.gitPath(f.st, full) != "" || f.everything() && f.wholeTree(full) {
			f.operation("gitdir.write", append([]string{"find"}, f.args...), nil)
			return
		}
	}
}
