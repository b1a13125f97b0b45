package guard

import (
	"path"
	"strings"
)

const resetOptions = `q/quiet no-refresh mixed soft hard merge keep recurse-submodules? p/patch N/intent-to-add pathspec-from-file= pathspec-file-nul
 U/unified= inter-hunk-context= auto-advance`

func (k *call) reset() {
	p, done := k.parse(resetOptions)
	if done {
		return
	}
	for _, mode := range []string{"hard", "merge", "keep"} {
		if p.has(mode) {
			k.op(Operation("reset." + mode))
			return
		}
	}
	paths := p.has("pathspec-from-file", "patch") || p.dash == 0 || p.dash > 0 && len(p.args) > p.dash
	if p.has("soft") || !paths && len(p.args) == 1 {
		k.resetTo(p)
		return
	}
	k.op("reset") // nothing, or paths: the index only
}

// resetTo is a reset without paths, or with one word that may be a commit.
func (k *call) resetTo(p *parsed) {
	if len(p.args) == 0 || isHead(p.args[0]) {
		k.op("reset")
		return
	}
	to := p.args[0]
	if p.has("soft", "mixed") || p.dash == 1 {
		k.op("reset.commit")
		return
	}
	switch {
	case kindOf(to) == kindCommit || isMessageRev(to) && k.revision(to) != No:
		k.op("reset.commit")
	case kindOf(to) == kindTracked || kindOf(to) == kindUntracked || kindOf(to) == kindPaths || isPathspec(to):
		k.op("reset")
	case !isKnown(to):
		k.maybe("reset", "whether the argument is a commit or a file")
	case k.revision(to) == Yes:
		k.op("reset.commit")
	case k.path(to) == Yes || looksLikePath(to):
		k.op("reset")
	default:
		k.op("reset.commit")
	}
}

func isHead(rev string) bool {
	return rev == "HEAD" || rev == "@" || rev == "HEAD^{commit}" || rev == "HEAD^0" || rev == "HEAD~0" || rev == "@{0}" || rev == "HEAD@{0}"
}

const checkoutOptions = `b= B= l guess overlay q/quiet recurse-submodules? progress m/merge conflict= d/detach t/track? f/force orphan= overwrite-ignore
 ignore-other-worktrees 2/ours 3/theirs p/patch ignore-skip-worktree-bits pathspec-from-file= pathspec-file-nul U/unified= inter-hunk-context= auto-advance`

func (k *call) checkout() {
	p, done := k.parse(checkoutOptions)
	if done {
		return
	}
	switch {
	case p.has("force"):
		k.op("checkout.force")
		return
	case p.has("patch", "pathspec-from-file", "ours", "theirs") || p.dash >= 0 && len(p.args) > p.dash:
		k.op("checkout.discard")
		return
	}
	if p.has("merge", "conflict") { // --conflict implies --merge
		k.op("checkout.merge")
	}
	if name := p.last("B"); p.has("B") {
		if k.branch(name) == No {
			k.op("checkout.switch")
		} else {
			k.op("checkout.reset-branch")
		}
		return
	}
	if p.has("b", "orphan", "detach", "track") || len(p.args) == 0 {
		k.op("checkout.switch")
		return
	}
	if p.dash == len(p.args) && len(p.args) == 1 { // "checkout X --": X is a branch
		k.op("checkout.switch")
		return
	}
	if len(p.args) > 1 { // paths, with or without a revision before them
		k.op("checkout.discard")
		return
	}
	k.checkoutWord(p.args[0])
}

// checkoutWord decides on "git checkout X", as checkout.c does: a revision
// switches, a path is restored, a branch of a remote is made.
func (k *call) checkoutWord(x string) {
	kind := kindOf(x)
	switch {
	case x == "-" || kind == kindCommit || isHead(x) || strings.HasPrefix(x, "@{-"):
		k.op("checkout.switch")
	case kind == kindTracked || kind == kindPaths || kind == kindUntracked || isPathspec(x):
		k.op("checkout.discard")
	case !isKnown(x):
		if !strings.HasPrefix(x, string(rune(mark))) && looksLikePath(x) || looksLikePath(strings.ReplaceAll(printable(x), "…", "")) {
			k.op("checkout.discard")
			return
		}
		k.maybe("checkout.switch", "whether the argument is a branch or a file")
	case k.revision(x) == Yes:
		k.op("checkout.switch")
	case k.path(x) == Yes || looksLikePath(x):
		k.op("checkout.discard")
	default:
		k.op("checkout.switch")
	}
}

// isPathspec reports whether a word can not name a revision.
func isPathspec(x string) bool {
	return x == "." || x == ".." || strings.HasPrefix(x, "./") || strings.HasPrefix(x, "../") || strings.HasPrefix(x, "/") ||
		strings.HasPrefix(x, ":") && !isMessageRev(x) || strings.HasSuffix(x, "/") || strings.ContainsAny(x, "*?[\\")
}

// isMessageRev reports whether a word is rather ":/text", a commit by its
// message, than ":/path", a path from the top of the work tree.
func isMessageRev(x string) bool {
	text, ok := strings.CutPrefix(x, ":/")
	return ok && text != "" && !strings.ContainsAny(text, "./*?[") && !pathNames.has(text)
}

// pathExtensions end the names of files, hardly ever those of branches.
var pathExtensions = words{text: `.go .js .ts .tsx .jsx .mjs .cjs .py .rb .rs .c .h .cc .cpp .hpp .java .kt .swift .php .cs .sh .bash .zsh .md .txt .rst
 .json .yaml .yml .toml .lock .xml .html .css .scss .less .sql .proto .cfg .ini .conf .env .log .csv .tsv .svg .png .jpg .gif .pdf .bin .patch .diff .mod .sum
 .vue .svelte .lua .pl .ex .exs .erl .hs .ml .scala .clj .dart .r .ipynb .gradle .tf .bak .orig .out .dat .gitignore .gitattributes .gitmodules`}

var pathNames = words{text: `Makefile Dockerfile README LICENSE Gemfile Rakefile Procfile Vagrantfile Jenkinsfile CODEOWNERS CHANGELOG src lib pkg cmd internal
 node_modules vendor packages tests scripts public assets dist build app`}

// looksLikePath judges a word by its looks, for when nobody can be asked.
func looksLikePath(x string) bool {
	if isPathspec(x) {
		return true
	}
	base := path.Base(x)
	if strings.HasPrefix(base, ".") && len(base) > 1 && !strings.HasPrefix(base, "..") {
		return true
	}
	if pathExtensions.has(strings.ToLower(path.Ext(base))) || pathNames.has(base) {
		return true
	}
	first, _, nested := strings.Cut(x, "/")
	return nested && pathNames.has(first)
}

const switchOptions = `c/create= C/force-create= guess discard-changes q/quiet recurse-submodules? progress m/merge conflict= d/detach t/track? f/force orphan=
 overwrite-ignore ignore-other-worktrees`

func (k *call) doSwitch() {
	p, done := k.parse(switchOptions)
	switch {
	case done:
	case p.has("force", "discard-changes"):
		k.op("switch.force")
	case p.has("merge", "conflict"): // --conflict implies --merge
		k.op("switch.merge")
	case p.has("force-create") && k.branch(p.last("force-create")) != No:
		k.op("switch.reset-branch")
	default:
		k.op("switch")
	}
}

func (k *call) restore() {
	p, done := k.parse(`s/source= S/staged W/worktree ignore-unmerged overlay q/quiet recurse-submodules? progress m/merge conflict= 2/ours 3/theirs p/patch
 ignore-skip-worktree-bits pathspec-from-file= pathspec-file-nul U/unified= inter-hunk-context= auto-advance`)
	switch {
	case done:
	case p.has("staged") && !p.has("worktree"):
		k.op("restore.staged")
	default:
		k.op("restore.worktree")
	}
}

func (k *call) clean() {
	k.dryOr("clean", "q/quiet n/dry-run f/force i/interactive d e/exclude= x X")
}

func (k *call) rm() {
	p, done := k.parse("n/dry-run q/quiet cached f/force r ignore-unmatch sparse pathspec-from-file= pathspec-file-nul")
	switch {
	case done:
	case p.has("dry-run"):
		k.dryRun("rm")
	case p.has("force"):
		k.op("rm.force")
	case p.has("r") && !p.has("cached"):
		k.op("rm.recursive")
	default:
		k.op("rm")
	}
}

func (k *call) mv() {
	p, done := k.parse("v/verbose n/dry-run f/force k sparse")
	switch {
	case done:
	case p.has("dry-run"):
		k.dryRun("mv")
	case p.has("force"):
		k.op("mv.force")
	default:
		k.op("mv")
	}
}

func (k *call) checkoutIndex() {
	p, done := k.parse("a/all ignore-skip-worktree-bits f/force q/quiet n/no-create u/index z stdin temp prefix= stage=")
	switch {
	case done:
	case p.has("force") && !p.has("temp") && (p.last("prefix") == "" || strings.HasSuffix(p.last("prefix"), "/") && under(k.inv.dir, p.last("prefix")) == k.inv.dir):
		k.op("checkout-index.force")
	default:
		k.read("checkout-index")
	}
}

func (k *call) readTree() {
	p, done := k.parse("index-output= empty v/verbose trivial aggressive reset prefix= exclude-per-directory= n/dry-run no-sparse-checkout debug-unpack recurse-submodules? q/quiet m u i")
	switch {
	case done:
	case p.has("dry-run"):
		k.dryRun("read-tree.update")
	case p.has("u", "reset"):
		k.op("read-tree.update")
	default:
		k.read("read-tree")
	}
}

func (k *call) apply() {
	p, done := k.parse(`exclude= include= no-add stat allow-binary-replacement binary numstat summary check index N/intent-to-add cached unsafe-paths apply 3/3way
 ours theirs union build-fake-ancestor= whitespace= ignore-space-change ignore-whitespace R/reverse unidiff-zero reject allow-overlap v/verbose q/quiet
 inaccurate-eof recount directory= allow-empty p= C= z`)
	switch {
	case done:
	case p.has("check", "stat", "numstat", "summary") && !p.has("apply"):
		k.dryRun("apply")
	case (p.has("reverse") || k.appliesReverse(p.args)) && (!p.has("cached") || p.has("index")):
		k.op("apply.reverse")
	default:
		k.op("apply")
	}
}

// appliesReverse reports whether a patch that is applied was made backwards: "git
// diff -R | git apply" takes the changes away.
func (k *call) appliesReverse(files []string) bool {
	if len(files) == 0 || files[0] == "-" {
		return kindOf(inputOf(k.inv.st)) == kindReverse
	}
	return kindOf(k.files[under(k.inv.dir, k.inv.st.tilde(files[0]))]) == kindReverse
}
