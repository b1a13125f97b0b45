package guard

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// special classifies the commands whose options alone do not decide, and follows
// what a command starts. It reports false for the commands that the table of forms
// decides.
func (k *call) special() bool {
	switch k.name {
	case "reset":
		k.reset()
	case "checkout":
		k.checkout()
	case "checkout-index":
		p := cmdline.Parse("f/force temp prefix= stage=", k.args)
		prefix := p.Last("prefix")
		if p.Help || !p.Has("force") || p.Has("temp") || prefix != "" &&
			(!strings.HasSuffix(prefix, "/") || cmdline.Under(k.dir, prefix) != k.dir) {
			k.reads(k.name)
		} else {
			k.op("checkout-index.force")
		}
	case "apply":
		k.apply()
	case "fetch":
		k.fetch()
	case "config":
		k.configure()
	case "init", "init-db":
		k.init()
	case "clone":
		k.clone()
	case "diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "format-patch", "range-diff",
		"archive", "bundle":
		k.writesFile()
		k.reads(k.name)
	default:
		return k.starts()
	}
	return true
}

// starts follows the commands that carry another command in their arguments, or the
// name of a program. It reports false where that is all that is to be said about them.
func (k *call) starts() bool {
	switch k.name {
	case "bisect":
		if len(k.args) > 1 && k.args[0] == "run" {
			k.start(Start{Argv: k.args[1:], Note: "bisect runs it"})
		}
	case "difftool":
		if cmd := cmdline.Parse("t/tool= x/extcmd=", k.args).Last("extcmd"); cmd != "" {
			k.start(Start{Line: cmd + ` "$LOCAL" "$REMOTE"`, Files: []string{"LOCAL", "REMOTE"},
				Note: "difftool runs it on the files"})
		}
	case "grep": // "git grep -Orm" opens the files that match in a program
		if cmd := cmdline.Parse(GrepOptions, k.args).Last("open-files-in-pager"); cmd != "" {
			k.start(Start{Line: cmd + ` "$FILES"`, Files: []string{"FILES"}, Note: "grep -O runs it on the files"})
		}
	case "for-each-repo":
		if p := cmdline.ParseUntil("config=", k.args); len(p.Args) > 0 {
			k.start(Start{Argv: append([]string{"git"}, p.Args...), Note: "git runs it in each repository"})
		}
	case "shell":
		if line := cmdline.ParseUntil("c=", k.args).Last("c"); line != "" {
			k.start(Start{Line: line, Note: "git shell runs it"})
		}
	case "submodule":
		p := cmdline.ParseUntil("", k.args)
		if len(p.Args) == 0 || p.Args[0] != "foreach" {
			return false
		}
		switch f := cmdline.ParseUntil("", p.Args[1:]); len(f.Args) {
		case 0:
		case 1:
			k.start(Start{Line: f.Args[0], Note: "submodule foreach runs it"})
		default:
			k.start(Start{Argv: f.Args, Note: "submodule foreach runs it"})
		}
	case "fetch-pack", "ls-remote", "pull":
		k.transport(k.args...)
	case "stash":
		k.writesFile()
	}
	return false
}

// GrepOptions is the option table of git grep, see cmdline.Parse.
const GrepOptions = `max-depth= C/context= B/before-context= A/after-context= threads= f= e= m/max-count=
 O/open-files-in-pager? l/files-with-matches name-only L/files-without-match h`

const resetOptions = "mixed soft hard merge keep p/patch pathspec-from-file= U/unified= inter-hunk-context="

func (k *call) reset() {
	p, done := k.parse(resetOptions)
	if done {
		return
	}
	for _, mode := range []string{"hard", "merge", "keep"} {
		if p.Has(mode) {
			k.op(Operation("reset." + mode))
			return
		}
	}
	paths := p.Has("pathspec-from-file", "patch") || p.Dash == 0 || p.Dash > 0 && len(p.Args) > p.Dash
	if !p.Has("soft") && (paths || len(p.Args) != 1) || len(p.Args) == 0 || isHead(p.Args[0]) {
		k.op("reset") // the index only
		return
	}
	to := p.Args[0]
	kind := cmdline.KindOf(to)
	switch {
	case p.Has("soft", "mixed"), p.Dash == 1, kind == cmdline.Commit, isMessageRev(to) && k.revision(to) != No:
		k.op("reset.commit")
	case ofFiles(kind), isPathspec(to):
		k.op("reset")
	case kind != cmdline.None:
		k.maybe("reset", "whether the argument is a commit or a file")
	case k.revision(to) == Yes:
		k.op("reset.commit")
	case k.path(to) == Yes, looksLikePath(to):
		k.op("reset")
	default:
		k.op("reset.commit")
	}
}

func isHead(rev string) bool {
	return cmdline.In("HEAD @ HEAD^{commit} HEAD^0 HEAD~0 @{0} HEAD@{0}", rev)
}

// ofFiles reports whether an open part stands for names of files.
func ofFiles(k cmdline.Kind) bool {
	return k == cmdline.Tracked || k == cmdline.Untracked || k == cmdline.Paths
}

const checkoutOptions = `b= B= m/merge conflict= d/detach t/track? f/force orphan= 2/ours 3/theirs p/patch
 pathspec-from-file= U/unified= inter-hunk-context=`

func (k *call) checkout() {
	p, done := k.parse(checkoutOptions)
	switch {
	case done:
		return
	case p.Has("force"):
		k.op("checkout.force")
		return
	case p.Has("patch", "pathspec-from-file", "ours", "theirs") || p.Dash >= 0 && len(p.Args) > p.Dash:
		k.op("checkout.discard")
		return
	}
	if p.Has("merge", "conflict") { // --conflict implies --merge
		k.op("checkout.merge")
	}
	switch {
	case p.Has("B") && k.branch(p.Last("B")) != No:
		k.op("checkout.reset-branch")
	// "checkout X --": X is a branch
	case p.Has("B", "b", "orphan", "detach", "track"), len(p.Args) == 0, p.Dash == 1 && len(p.Args) == 1:
		k.op("checkout.switch")
	case len(p.Args) > 1: // paths, with or without a revision before them
		k.op("checkout.discard")
	default:
		k.checkoutWord(p.Args[0])
	}
}

// checkoutWord decides on "git checkout X", as checkout.c does: a revision
// switches, a path is restored, a branch of a remote is made.
func (k *call) checkoutWord(x string) {
	kind := cmdline.KindOf(x)
	switch {
	case x == "-", kind == cmdline.Commit, isHead(x), strings.HasPrefix(x, "@{-"):
		k.op("checkout.switch")
	case ofFiles(kind), isPathspec(x), kind != cmdline.None &&
		looksLikePath(strings.ReplaceAll(cmdline.Printable(x), "…", "")):
		k.op("checkout.discard")
	case kind != cmdline.None:
		k.maybe("checkout.switch", "whether the argument is a branch or a file")
	case k.revision(x) == Yes:
		k.op("checkout.switch")
	case k.path(x) == Yes, looksLikePath(x):
		k.op("checkout.discard")
	default:
		k.op("checkout.switch")
	}
}

// isPathspec reports whether a word cannot name a revision.
func isPathspec(x string) bool {
	return x == "." || x == ".." || strings.HasPrefix(x, "./") || strings.HasPrefix(x, "../") ||
		strings.HasPrefix(x, "/") ||
		strings.HasPrefix(x, ":") && !isMessageRev(x) || strings.HasSuffix(x, "/") || strings.ContainsAny(x, "*?[\\")
}

// isMessageRev reports whether a word is rather ":/text", a commit by its
// message, than ":/path", a path from the top of the work tree.
func isMessageRev(x string) bool {
	text, ok := strings.CutPrefix(x, ":/")
	return ok && text != "" && !strings.ContainsAny(text, "./*?[") && !cmdline.In(pathNames, text)
}

// pathExtensions end the names of files, hardly ever those of branches.
const pathExtensions = `.go .js .ts .tsx .jsx .mjs .cjs .py .rb .rs .c .h .cc .cpp .hpp .java .kt .swift .php .cs .sh
 .bash .zsh .md .txt .rst .json .yaml .yml .toml .lock .xml .html .css .scss .less .sql .proto .cfg .ini .conf .env
 .log .csv .tsv .svg .png .jpg .gif .pdf .bin .patch .diff .mod .sum .vue .svelte .lua .pl .ex .exs .erl .hs .ml
 .scala .clj .dart .r .ipynb .gradle .tf .bak .orig .out .dat .gitignore .gitattributes .gitmodules`

const pathNames = `Makefile Dockerfile README LICENSE Gemfile Rakefile Procfile Vagrantfile Jenkinsfile CODEOWNERS
 CHANGELOG src lib pkg cmd internal node_modules vendor packages tests scripts public assets dist build app`

// looksLikePath judges a word by its looks, for when nobody can be asked.
func looksLikePath(x string) bool {
	base := path.Base(x)
	first, _, nested := strings.Cut(x, "/")
	return isPathspec(x) || strings.HasPrefix(base, ".") && len(base) > 1 && !strings.HasPrefix(base, "..") ||
		cmdline.In(pathExtensions, strings.ToLower(path.Ext(base))) || cmdline.In(pathNames, base) || nested &&
		cmdline.In(pathNames, first)
}

func (k *call) apply() {
	p, done := k.parse(`exclude= include= build-fake-ancestor= whitespace= directory= p= C= stat numstat summary check
 index cached apply R/reverse`)
	patch := k.cmd.Input // "git diff -R | git apply" takes the changes away
	if len(p.Args) > 0 && p.Args[0] != "-" {
		patch = k.Files[cmdline.Under(k.dir, k.tilde(k.cmd.Place, p.Args[0]))]
	}
	switch {
	case done:
	case p.Has("check", "stat", "numstat", "summary") && !p.Has("apply"):
		k.dryRun("apply")
	case (p.Has("reverse") || cmdline.KindOf(patch) == cmdline.Reverse) && (!p.Has("cached") || p.Has("index")):
		k.op("apply.reverse")
	default:
		k.op("apply")
	}
}

func (k *call) fetch() {
	p, done := k.parse(`upload-pack= j/jobs= depth= shallow-since= shallow-exclude= deepen= submodule-prefix=
 recurse-submodules-default= refmap= o/server-option= negotiation-tip= filter= bundle-uri= f/force m/multiple p/prune
 P/prune-tags dry-run`)
	if done {
		return
	}
	k.transport(k.args...)
	specs := p.Values["refmap"]
	for _, e := range k.config {
		if key := strings.ToLower(e.key); strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".fetch") {
			specs = append(specs, e.value)
		}
	}
	if len(p.Args) > 1 && !p.Has("multiple") {
		specs = append(specs, p.Args[1:]...)
	}
	switch {
	case p.Has("dry-run"):
		k.dryRun("fetch")
	case p.Has("prune-tags"): // deletes the tags that the remote has not
		k.op("tag.delete")
	case slices.ContainsFunc(specs, func(spec string) bool { return k.fetchUpdates(spec, p.Has("force")) }):
		k.op("fetch.update")
	default:
		k.op("fetch")
	}
}

// fetchUpdates reports whether a refspec writes a ref of the user's: the target
// is neither remote-tracking nor known to be new.
func (k *call) fetchUpdates(spec string, force bool) bool {
	src, dst, _ := strings.Cut(spec, ":")
	switch {
	case dst == "", strings.HasPrefix(dst, "refs/remotes/"), strings.HasPrefix(dst, "remotes/"):
		return false
	case strings.HasPrefix(dst, "refs/tags/"):
		return force || strings.HasPrefix(src, "+")
	case strings.Contains(dst, "*"):
		return true
	case strings.HasPrefix(dst, "refs/") && !strings.HasPrefix(dst, "refs/heads/"): // refs/stash, refs/notes/…
		return k.revision(dst) != No
	}
	return k.branch(strings.TrimPrefix(strings.TrimPrefix(dst, "refs/"), "heads/")) != No
}

// transport follows the options by which a command names a program for the other
// end, and an address that runs one: "ext::git reset --hard".
func (k *call) transport(args ...string) {
	for i, a := range args {
		name, value, glued := strings.Cut(a, "=")
		switch {
		case strings.HasPrefix(a, "ext::"):
			k.start(Start{Argv: extWords(a[len("ext::"):]), Note: "the ext:: transport runs it"})
		case name == "--upload-pack", name == "--exec", name == "-u" && k.name == "clone":
			if !glued && i+1 < len(args) {
				value = args[i+1]
			}
			if strings.Contains(value, "git") {
				k.start(Start{Line: value, Note: name + " is run by git"})
			}
		}
	}
}

// extWords splits as git-remote-ext(1) does: at spaces, where "% " is a space of
// the word and "%%" a percent sign.
func extWords(line string) []string {
	words := strings.Split(strings.NewReplacer("%%", "\x01", "% ", "\x02").Replace(line), " ")
	for i, w := range words {
		words[i] = strings.NewReplacer("\x01", "%", "\x02", " ").Replace(w)
	}
	return words
}

const configOptions = `f/file= blob= t/type= default= comment= value= url= global system get get-all get-regexp
 get-urlmatch get-color get-colorbool l/list replace-all add append unset unset-all rename-section remove-section
 e/edit`

// configure is git config. It tells reading from writing, in the old form (flags, or
// a second word) and in the new one of git 2.46 (git config set).
func (k *call) configure() {
	p, done := k.parse(configOptions)
	if done {
		return
	}
	sub := append(p.Args, "")[0]
	write := len(p.Args) > 1
	switch {
	case p.Has("get", "get-all", "get-regexp", "get-urlmatch", "list", "get-color", "get-colorbool", "blob"),
		sub == "list", sub == "get":
		write = false
	case p.Has("add", "append", "unset", "unset-all", "replace-all", "rename-section", "remove-section", "edit",
		"comment"),
		cmdline.In("set unset edit rename-section remove-section", sub):
		write = true
	case !write && !cmdline.Known(sub):
		k.maybe("config", "whether it reads or writes")
		return
	}
	full := cmdline.Under(k.dir, k.tilde(k.cmd.Place, p.Last("file")))
	switch {
	case !write:
		k.reads("config")
	case p.Has("global"):
		k.Operation("config.write.global", k.cmd.Argv, k.anotherHome)
	case p.Has("system"), p.Has("file") && (k.Protects(k.cmd.Place, full) || path.Base(full) == ".gitconfig" ||
		strings.HasSuffix(full, "/git/config") || full == "/etc/gitconfig"):
		k.global("config.write.global")
	case p.Has("file"):
		k.op("config.file")
	default:
		k.op("config.write")
	}
}

// anotherHome reports whether the global configuration is clearly not the user's.
// Git writes to ~/.gitconfig, and to the XDG file only where that is there and the
// first one is not (git-config(1), FILES).
func (k *call) anotherHome() bool {
	file, ok := k.lookup(k.cmd.Place, "GIT_CONFIG_GLOBAL")
	if !ok {
		home, _ := k.lookup(k.cmd.Place, "HOME")
		if home == "" {
			return false
		}
		xdg, _ := k.lookup(k.cmd.Place, "XDG_CONFIG_HOME")
		if xdg == "" {
			xdg = home + "/.config"
		}
		if file = home + "/.gitconfig"; !fileThere(file) && fileThere(xdg+"/git/config") {
			file = xdg + "/git/config"
		}
	}
	return len(k.in.UserConfig) > 0 && cmdline.Known(file) &&
		!slices.Contains(k.in.UserConfig, realFile(cmdline.Under(k.dir, file)))
}

// init: over an existing repository it changes the configuration; anywhere else
// it makes a repository of its own, which the rest of the text may use freely.
func (k *call) init() {
	p, done := k.parse("template= separate-git-dir= b/initial-branch= object-format= ref-format=")
	if done {
		return
	}
	dir := k.dir
	if len(p.Args) > 0 {
		dir = cmdline.Under(dir, k.tilde(k.cmd.Place, p.Args[0]))
	}
	elsewhere := p.Has("separate-git-dir") || k.gitDir != ""
	switch {
	case k.cmd.NoRepo && !elsewhere:
		k.Step(k.text(), "runs only where there is no repository: allowed")
	case elsewhere, k.overGuarded(dir):
		k.op("init")
	default:
		rest := strings.TrimPrefix(strings.TrimPrefix(dir, k.Start()), "/")
		if strings.HasPrefix(rest, string(cmdline.Any)) {
			k.unknown = true
		}
		k.fresh[dir] = true
		k.Step(k.text(), "a repository of its own: allowed")
		k.allow("init", k.cmd.Argv, "it makes another repository")
	}
}

// overGuarded reports whether a repository in dir would lie over the guarded
// one: at or above the starting directory, or where git finds one.
func (k *call) overGuarded(dir string) bool {
	r, at, ok := k.resolver()
	ok = ok && cmdline.Known(dir)
	start := At{Dir: k.Start()}
	switch above := superqode.Within(k.Start(), dir); {
	case k.fresh[dir]:
		return false
	case above && ok:
		at.Dir = start.Dir
		_, there := r.Repository(k.ctx, at)
		return there // nothing lies there yet
	case above, !ok:
		return above
	}
	at.Dir = dir
	if r.Path(k.ctx, at, path.Join(dir, ".git")) != Yes {
		return false
	}
	there, _ := r.Repository(k.ctx, at)
	here, known := k.in.Guarded, k.in.Guarded != ""
	if !known {
		here, known = r.Repository(k.ctx, start)
	}
	return !known || here == there
}

func (k *call) clone() {
	p, done := k.parse(`j/jobs= template= reference= reference-if-able= o/origin= b/branch= u/upload-pack= depth=
 shallow-since= shallow-exclude= separate-git-dir= c/config= server-option= filter= bundle-uri= ref-format=
 revision=`)
	if done || len(p.Args) == 0 {
		return
	}
	k.transport(k.args...)
	k.op("clone")
	dir := strings.TrimSuffix(path.Base(strings.TrimSuffix(strings.ReplaceAll(p.Args[0], ":", "/"), "/")), ".git")
	if len(p.Args) > 1 {
		dir = k.tilde(k.cmd.Place, p.Args[1])
	}
	if dir = cmdline.Under(k.dir, dir); !superqode.Within(k.Start(), dir) && !p.Has("separate-git-dir") {
		k.fresh[dir] = true
	}
}

// newFiles end the names of files that --output usually makes.
const newFiles = ".patch .diff .mbox .log .out .tar .gz .tgz .zip .bundle .xz .bz2"

// writesFile checks the options by which reading commands write a file.
func (k *call) writesFile() {
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
	full := cmdline.Under(k.dir, k.tilde(k.cmd.Place, file))
	switch {
	case file == "" || file == "-":
	case k.Protects(k.cmd.Place, full):
		k.global("gitdir.write")
	case !cmdline.Known(file), IsDevice(full), strings.HasPrefix(full, "/tmp/") && !superqode.Within(full, k.Start()):
	default:
		if there := k.path(full); there == Yes || there == NotKnown && !cmdline.In(newFiles, path.Ext(full)) {
			k.op("output.overwrite")
		}
	}
}

// IsDevice reports whether a path is one of a device, where nothing that is written
// stays. /dev/shm holds files.
func IsDevice(path string) bool {
	return strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}
