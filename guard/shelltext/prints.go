package shelltext

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// prints returns the output of the tools that put text together, and of those that
// pass names of files on, so that what goes on to a shell, a file or another
// command's arguments is known. Other filters are not followed: what they print is
// open, of the same kind as what they read.
func (c *command) prints() (out string, ok bool) {
	st, args := c.st, c.args
	switch c.name {
	case "echo":
		out = echo(args)
	case "printf":
		if len(args) > 2 && args[0] == "-v" {
			st.set(args[1], noZeros(printf(args[2:])))
		} else {
			out = printf(args)
		}
	case "cat":
		files := cmdline.Parse("", args).Args
		if len(files) == 0 {
			out = st.input()
		}
		for _, name := range files {
			out += c.readFile(st, name)
		}
	case "tee", "sponge":
		p := cmdline.Parse("a/append", args)
		out = st.input()
		for _, name := range p.Args {
			c.writeFile(st, name, out, p.Has("append"))
		}
	case "pwd":
		out = st.dir + "\n"
	case "basename":
		out = path.Base(last(args)) + "\n"
	case "dirname":
		out = path.Dir(last(args)) + "\n"
	case "realpath", "readlink":
		out = st.path(last(args)) + "\n"
	case "which":
		out = "/usr/bin/" + last(args) + "\n"
	case "type", "whence", "where":
		if out = open(c.name); len(args) == 2 && (args[0] == "-p" || args[0] == "-P") {
			out = "/usr/bin/" + args[1] + "\n"
		}
	case "mktemp":
		out = "/tmp/" + open("mktemp"+strconv.Itoa(c.work)) + "\n"
	case "head", "tail", "sort", "uniq", "tac", "nl", "column", "grep", "egrep", "fgrep", "rg", "sed", "gsed", "awk",
		"gawk", "mawk", "cut", "tr", "ls", "tree", "locate", "ag", "ack", "jq", "yq", "rev", "paste", "fold":
		c.writers()
		if l := languageOf(c.name); l != nil {
			c.interpreter(l)
		}
		out = c.filter()
	default:
		return "", false
	}
	c.Step(c.text(), "only text")
	return out, true
}

func last(words []string) string {
	if len(words) == 0 {
		return open("nothing")
	}
	return words[len(words)-1]
}

// filter is what a tool prints of what it reads.
func (c *command) filter() string {
	in := c.st.input()
	has := func(test func(a string) bool) bool { return slices.ContainsFunc(c.args, test) }
	switch {
	case c.name == "ls" && has(func(a string) bool {
		return guard.NamesGitDir(path.Base(a)) && slices.Contains(c.args, "-d")
	}):
		return ".git\n"
	case c.name == "ls" && has(func(a string) bool { return strings.Contains(a, ".git/") && strings.Contains(a, "*") }):
		return last(c.args) + "\n"
	case cmdline.In("ls tree locate", c.name), cmdline.In("rg grep egrep fgrep ag ack", c.name) &&
		has(func(a string) bool {
			return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "lL") ||
				cmdline.In("--files-with-matches --files", a)
		}):
		return cmdline.Open(cmdline.Paths, c.name)
	case composed(c.args) != "":
		return composed(c.args)
	case cmdline.In("head tail sort uniq tac grep egrep fgrep", c.name) &&
		strings.Trim(cmdline.Printable(in), "… \n") != "":
		return in
	case cmdline.KindOf(in) == cmdline.Paths: // no longer all that find printed
		return cmdline.Open(cmdline.Paths, c.name)
	}
	return sameKind(in)
}

// composed is the git commands that a filter puts together by its script, for a
// shell to read: sed 's/^/git add /', awk '{print "git add " $1}'.
func composed(args []string) string {
	var b strings.Builder
	for _, a := range args {
		for part := range strings.FieldsFuncSeq(a,
			func(c rune) bool { return strings.ContainsRune("/\"'|,#{}()=\n", c) }) {
			if strings.HasPrefix(part, "git ") {
				b.WriteString(part + "\n" + part + open("field") + "\n")
			}
		}
	}
	return b.String()
}

// sameKind is an open text of the same kind as another one.
func sameKind(s string) string {
	for k, name := range cmdline.Parts(s) {
		if k != cmdline.Any {
			return cmdline.Open(k, name)
		}
	}
	return open("text")
}

func echo(args []string) string {
	end, escapes := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if escapes {
		s = unescape(s)
	}
	return s + end
}

// unescape decodes \n and its kin.
func unescape(s string) string {
	if out, _, err := expand.Format(&expand.Config{}, s, nil); err == nil {
		return noZeros(out)
	}
	return s
}

// printf fills the format in, over and over while there are arguments.
func printf(args []string) string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	format, rest := args[0], args[1:]
	var b strings.Builder
	for range 64 {
		out, used, err := expand.Format(&expand.Config{}, format, append([]string{}, rest...))
		if err != nil {
			return open("printf")
		}
		b.WriteString(out)
		if rest = rest[used:]; len(rest) == 0 || used == 0 || b.Len() > maxValue {
			break
		}
	}
	return b.String()
}

// gitPrints is what a git command prints, as far as a line that uses it is read
// differently: names of files, a committed file's contents, the id of a commit, the
// place of the repository.
func (r *reader) gitPrints(ran guard.Ran) string {
	kind, name := cmdline.Any, ran.Name
	if text := composed(ran.Args); text != "" && hasFormat(ran) { // --format='git branch -D %(refname)' makes a script
		return text
	}
	switch ran.Name {
	case "":
		return ran.Output + open("git")
	case "ls-files":
		kind = cmdline.Tracked
		if cmdline.Parse("o/others i/ignored k/killed x= X=", ran.Args).Has("others", "ignored", "killed") {
			kind = cmdline.Untracked
		}
	case "ls-tree", "status":
		kind = cmdline.Tracked
	case "clean", "check-ignore":
		kind = cmdline.Untracked
	case "diff", "diff-tree", "diff-index", "diff-files", "show", "log", "stash", "format-patch":
		return diffPrints(ran)
	case "grep":
		if cmdline.Parse(guard.GrepOptions, ran.Args).Has("files-with-matches", "name-only", "files-without-match") {
			kind = cmdline.Tracked
		}
	case "cat-file":
		if len(ran.Args) > 1 {
			return blob(last(ran.Args))
		}
	case "merge-base", "rev-list", "commit-tree":
		kind = cmdline.Commit
	case "rev-parse":
		return r.revParse(ran)
	}
	return cmdline.Open(kind, name+" "+strings.Join(ran.Args, " "))
}

func hasArg(ran guard.Ran, names ...string) bool {
	return slices.ContainsFunc(ran.Args, func(a string) bool { return slices.Contains(names, a) })
}

func hasFormat(ran guard.Ran) bool {
	return slices.ContainsFunc(ran.Args, func(a string) bool {
		return strings.HasPrefix(a, "--format") || strings.HasPrefix(a, "--pretty")
	})
}

// diffPrints is what diff, show and log print.
func diffPrints(ran guard.Ran) string {
	var revs []string
	for _, a := range ran.Args {
		if strings.HasPrefix(a, "--format=") || strings.HasPrefix(a, "--pretty=") {
			if _, f, _ := strings.Cut(a, "="); cmdline.In("%H %h format:%H format:%h", f) {
				return cmdline.Open(cmdline.Commit, "log")
			}
		}
		if !strings.HasPrefix(a, "-") {
			revs = append(revs, a)
		}
	}
	patch := strings.HasPrefix(ran.Name, "diff") || hasArg(ran, "-p", "--patch", "-u")
	switch {
	case hasArg(ran, "--name-only", "--name-status"):
		return cmdline.Open(cmdline.Tracked, "diff")
	case ran.Name == "show" && len(revs) == 1 && strings.Contains(revs[0], ":"):
		return blob(revs[0])
	case (patch || ran.Name == "show") && hasArg(ran, "-R"):
		return cmdline.Open(cmdline.Reverse, "diff")
	case patch, ran.Name == "show":
		return cmdline.Open(cmdline.Diff, "diff")
	}
	return open(ran.Name)
}

// blob is the contents of REV:PATH.
func blob(rev string) string {
	_, file, ok := strings.Cut(rev, ":")
	if !ok || file == "" {
		return open("blob")
	}
	return cmdline.Open(cmdline.Blob, path.Clean(file))
}

func (r *reader) revParse(ran guard.Ran) string {
	arg := last(ran.Args)
	switch {
	case len(ran.Args) == 2 && ran.Args[0] == "--git-path":
		return ".git/" + arg
	case !strings.HasPrefix(arg, "-"):
		return cmdline.Open(cmdline.Commit, arg)
	case cmdline.In("--git-dir --git-common-dir --absolute-git-dir", arg):
		if ran.GitDir != "" {
			return ran.GitDir
		}
		return path.Join(r.topLevel(ran.Dir), ".git")
	case arg == "--show-toplevel":
		return r.topLevel(ran.Dir)
	case arg == "--show-cdup":
		return ""
	}
	return open("rev-parse " + arg)
}

// topLevel is the root of the work tree, as far as the text tells.
func (r *reader) topLevel(dir string) string {
	if superqode.Within(dir, r.Start()) && !r.Fresh(dir) {
		return r.Start()
	}
	return dir
}
