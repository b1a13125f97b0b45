package guard

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

const configOptions = `global system local worktree f/file= blob= get get-all get-regexp get-urlmatch replace-all add append unset unset-all rename-section
 remove-section l/list fixed-value e/edit get-color get-colorbool t/type= bool int bool-or-int bool-or-str path expiry-date z/null name-only includes
 show-origin show-scope show-names default= comment= all regexp value= url= no-section`

// config tells reading from writing, in the old form (flags, or a second word)
// and in the new one of git 2.46 (git config set).
func (k *call) config() {
	p, done := k.parse(configOptions)
	if done {
		return
	}
	write := false
	sub := ""
	if len(p.args) > 0 {
		sub = p.args[0]
	}
	switch {
	case p.has("get", "get-all", "get-regexp", "get-urlmatch", "list", "get-color", "get-colorbool", "blob"):
	case p.has("add", "append", "unset", "unset-all", "replace-all", "rename-section", "remove-section", "edit", "comment"):
		write = true
	case sub == "list" || sub == "get":
	case slices.Contains([]string{"set", "unset", "edit", "rename-section", "remove-section"}, sub):
		write = true
	case len(p.args) > 0 && p.open && len(p.args) == 1 && p.args[0][0] == mark:
		k.maybe("config", "whether it reads or writes")
		return
	default:
		write = len(p.args) > 1
	}
	switch {
	case !write:
		k.read("config")
	case p.has("global"):
		k.operation("config.write", k.inv.argv, func() bool { return k.anotherHome() })
	case p.has("system"):
		k.global("config.write")
	case p.has("file"):
		k.configFile(p.last("file"))
	default:
		k.op("config.write")
	}
}

// anotherHome reports whether the global configuration is clearly not the user's.
// Git writes to ~/.gitconfig, and to the XDG file only where that is there and the
// first one is not (git-config(1), FILES).
func (k *call) anotherHome() bool {
	if len(k.in.UserConfig) == 0 {
		return false
	}
	st := k.inv.st
	file, ok := st.exported("GIT_CONFIG_GLOBAL")
	if !ok {
		home, _ := st.exported("HOME")
		if home == "" {
			return false
		}
		xdg, _ := st.exported("XDG_CONFIG_HOME")
		if xdg == "" {
			xdg = home + "/.config"
		}
		if file = home + "/.gitconfig"; !fileThere(file) && fileThere(xdg+"/git/config") {
			file = xdg + "/git/config"
		}
	}
	return isKnown(file) && !slices.Contains(k.in.UserConfig, realFile(under(k.inv.dir, file)))
}

// configFile is a write to a file that is named: git's own files are protected,
// others are plain files.
func (k *call) configFile(file string) {
	full := under(k.inv.dir, k.inv.st.tilde(file))
	base := path.Base(full)
	if k.gitPath(k.inv.st, full) != "" || base == ".gitconfig" || strings.HasSuffix(full, "/git/config") || full == "/etc/gitconfig" {
		k.global("config.write")
		return
	}
	k.op("config.file")
}

// init: over an existing repository it changes the configuration; anywhere else
// it makes a repository of its own, which the rest of the line may use freely.
func (k *call) init() {
	p, done := k.parse("template= bare shared? q/quiet separate-git-dir= b/initial-branch= object-format= ref-format=")
	if done {
		return
	}
	dir := k.inv.dir
	if len(p.args) > 0 {
		dir = under(dir, k.inv.st.tilde(p.args[0]))
	}
	if k.inv.st.noRepo && !p.has("separate-git-dir") && k.inv.gitDir == "" {
		k.step(strings.Join(k.inv.argv, " "), "runs only where there is no repository: allowed")
		return
	}
	if p.has("separate-git-dir") || k.inv.gitDir != "" || k.overGuarded(dir) {
		k.op("init")
		return
	}
	if !isKnown(dir) && strings.HasPrefix(k.relative(dir), string(rune(mark))+string(kindOpen)) {
		k.unknown = true
	}
	k.fresh[dir] = true
	k.step(strings.Join(k.inv.argv, " "), "a repository of its own: allowed")
	k.allowed(Verdict{Decision: Allow, Operation: "init", Certainty: Certain, Command: shown(k.inv.argv), Reason: "it makes another repository"})
}

// relative strips the starting directory.
func (k *call) relative(dir string) string {
	return strings.TrimPrefix(strings.TrimPrefix(dir, k.startDir()), "/")
}

// overGuarded reports whether a repository in dir would lie over the guarded
// one: at or above the starting directory, or where git finds one.
func (k *call) overGuarded(dir string) bool {
	if k.fresh[dir] {
		return false
	}
	if superqode.Within(k.startDir(), dir) {
		if r, at, ok := k.resolver(k.inv); ok && isKnown(dir) {
			at.Dir = k.startDir()
			_, there := r.Repository(k.ctx, at)
			return there // nothing lies there yet
		}
		return true
	}
	if r, at, ok := k.resolver(k.inv); ok && isKnown(dir) {
		at.Dir = dir
		if r.Path(k.ctx, at, path.Join(dir, ".git")) != Yes {
			return false
		}
		there, _ := r.Repository(k.ctx, at)
		here, ok := k.in.Guarded, k.in.Guarded != ""
		if !ok {
			here, ok = r.Repository(k.ctx, At{Dir: k.startDir()})
		}
		return !ok || here == there
	}
	return false
}

func (k *call) clone() {
	p, done := k.parse(`v/verbose q/quiet progress reject-shallow n/no-checkout bare naked mirror l/local no-hardlinks s/shared recurse-submodules? recursive j/jobs=
 template= reference= reference-if-able= dissociate o/origin= b/branch= u/upload-pack= depth= shallow-since= shallow-exclude= single-branch no-tags
 shallow-submodules separate-git-dir= c/config= server-option= 4/ipv4 6/ipv6 filter= also-filter-submodules remote-submodules sparse bundle-uri= ref-format= revision=`)
	if done || len(p.args) == 0 {
		return
	}
	k.transport(p.args[0])
	k.op("clone")
	dir := strings.TrimSuffix(path.Base(strings.TrimSuffix(strings.ReplaceAll(p.args[0], ":", "/"), "/")), ".git")
	if len(p.args) > 1 {
		dir = k.inv.st.tilde(p.args[1])
	}
	dir = under(k.inv.dir, dir)
	if !superqode.Within(k.startDir(), dir) && !p.has("separate-git-dir") {
		k.fresh[dir] = true
	}
}

func (k *call) bisect() {
	sub, rest := first(k.args)
	k.op("bisect")
	if sub == "run" && len(rest) > 0 {
		k.run(k.inv.st.clone(), rest)
	}
}

// difftool -x runs a command on the files of the work tree.
func (k *call) difftool() {
	p := newSpec("g/gui d/dir-diff y/no-prompt prompt symlinks t/tool= tool-help trust-exit-code x/extcmd= no-index index").parse(k.args, false)
	k.read("difftool")
	if cmd := p.last("extcmd"); cmd != "" {
		k.nested(k.inv.st, cmd+` "$LOCAL" "$REMOTE"`, "difftool runs it on the files", "LOCAL", "REMOTE")
	}
}

const grepOptions = `cached no-index untracked exclude-standard recurse-submodules v/invert-match i/ignore-case w/word-regexp a/text textconv r/recursive
 max-depth= E/extended-regexp G/basic-regexp F/fixed-strings P/perl-regexp n/line-number column full-name l/files-with-matches name-only
 L/files-without-match z/null o/only-matching c/count color? break heading C/context= B/before-context= A/after-context= threads= p/show-function
 W/function-context f= e= and or not q/quiet all-match O/open-files-in-pager? ext-grep m/max-count= h H I`

// grep -O opens the files that match in a program: "git grep -Orm".
func (k *call) grep() {
	p := newSpec(grepOptions).parse(k.args, false)
	k.read("grep")
	if cmd := p.last("open-files-in-pager"); cmd != "" {
		k.nested(k.inv.st, cmd+` "$FILES"`, "grep -O runs it on the files", "FILES")
	}
}

func (k *call) forEachRepo() {
	p := newSpec("config= keep-going").parse(k.args, true)
	k.read("for-each-repo")
	if len(p.args) > 0 {
		k.run(k.inv.st.clone(), append([]string{"git"}, p.args...))
	}
}

// bridge is a bridge to another version control system.
func (k *call) bridge() {
	sub, rest := first(k.args)
	switch {
	case slices.Contains([]string{"log", "info", "blame", "find-rev", "show-ignore", "propget", "proplist", "show-externals", "gc"}, sub) && k.name == "svn":
		k.read(k.name)
	case newSpec("n/dry-run").parse(rest, false).has("dry-run"):
		k.dryRun("svn.write")
	default:
		k.op("svn.write")
	}
}

func (k *call) subtree() {
	p := newSpec("P/prefix= q/quiet d/debug m/message= annotate= b/branch= onto= ignore-joins rejoin squash").parse(k.args, false)
	sub, _ := first(p.args)
	switch {
	case sub == "push":
		k.op("push")
	case sub == "split" && !p.has("rejoin"):
		k.read("subtree")
	case sub == "":
		k.read("help")
	default:
		k.op("merge")
	}
}

func (k *call) lfs() {
	sub, rest := first(k.args)
	dry := newSpec("d/dry-run").parse(rest, false).has("dry-run")
	op := Operation("")
	switch sub {
	case "push":
		op = "lfs.push"
	case "prune":
		op = "lfs.prune"
	case "install", "uninstall", "update":
		op = "config.write"
	case "migrate":
		if m, _ := first(rest); m != "info" {
			op = "filter-branch"
		}
	}
	switch {
	case op == "":
		k.read("lfs")
	case dry:
		k.dryRun(op)
	default:
		k.op(op)
	}
}

// newFileExtensions end the names of files that --output usually makes.
var newFileExtensions = words{text: ".patch .diff .mbox .log .out .tar .gz .tgz .zip .bundle .xz .bz2"}

// outputFile checks the options by which reading commands write a file.
func (k *call) outputFile() {
	file := ""
	for i, a := range k.args {
		if a == "--" {
			break
		}
		short := k.name == "archive" && strings.HasPrefix(a, "-o") && !strings.HasPrefix(a, "--")
		switch {
		case strings.HasPrefix(a, "--output="):
			file = a[len("--output="):]
		case (a == "--output" || short && a == "-o") && i+1 < len(k.args):
			file = k.args[i+1]
		case short:
			file = a[2:]
		case k.name == "bundle" && i == 1 && k.args[0] == "create" && !strings.HasPrefix(a, "-"):
			file = a
		}
	}
	if file == "" || file == "-" || file == "/dev/null" || file == "/dev/stdout" {
		return
	}
	full := under(k.inv.dir, k.inv.st.tilde(file))
	if why := k.gitPath(k.inv.st, full); why != "" {
		k.global("gitdir.write")
		return
	}
	if !isKnown(file) || isDevice(full) || strings.HasPrefix(full, "/tmp/") && !superqode.Within(full, k.startDir()) {
		return
	}
	switch k.path(full) {
	case Yes:
		k.op("output.overwrite")
	case NotKnown:
		if !newFileExtensions.has(path.Ext(full)) {
			k.op("output.overwrite")
		}
	}
}
