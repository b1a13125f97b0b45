package guard

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// call is one git command after its global options were read.
type call struct {
	*Judge
	cmd      Command
	globals  []string // the global options as given
	dir      string   // after -C
	gitDir   string   // --git-dir or GIT_DIR, absolute, "" when not given
	workTree string   // --work-tree or GIT_WORK_TREE
	config   []entry  // from the command line and the environment
	name     string
	args     []string
}

type entry struct{ key, value string }

// gitCommands are the commands that git brings along ("git --list-cmds=main" of
// 2.39.5, and those added up to 2.55). An alias cannot hide them.
const gitCommands = `add add--interactive am annotate apply archimport archive backfill bisect bisect--helper blame
 branch bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout--worker
 checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects
 credential credential-cache credential-cache--daemon credential-store cvsexportcommit cvsimport cvsserver daemon
 describe diagnose diff diff-files diff-index diff-pairs diff-tree difftool env--helper fast-export fast-import fetch
 fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects fsmonitor--daemon gc
 get-tar-commit-id grep gui hash-object help history hook http-backend http-fetch http-push imap-send index-pack init
 init-db instaweb interpret-trailers last-modified log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
 merge-base merge-file merge-index merge-octopus merge-one-file merge-ours merge-recursive merge-recursive-ours
 merge-recursive-theirs merge-resolve merge-subtree merge-tree mergetool mktag mktree multi-pack-index mv name-rev
 notes p4 pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push quiltimport range-diff
 read-tree rebase receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https
 repack replace replay repo request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell
 shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule
 submodule--helper subtree survey svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref
 update-server-info upload-archive upload-archive--writer upload-pack var verify-commit verify-pack verify-tag version
 whatchanged worktree write-tree`

// companions are programs of their own that change history or send it away; "git
// NAME" is classified here.
const companions = "lfs filter-repo"

// IsGitCommand reports whether git brings a command of this name along, so that
// no alias can stand behind it.
func IsGitCommand(name string) bool { return cmdline.In(gitCommands, name) }

// Program tells whether a program is git, by its name or path. For git-NAME it
// returns NAME as the first argument.
func Program(word string) (args []string, ok bool) {
	// On file systems that ignore case, as macOS has them, GIT is git.
	base := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	base = strings.TrimSuffix(base, ".exe")
	if base == "git" || base == "git.real" {
		return nil, true
	}
	if strings.ContainsAny(base, "*?[") && strings.Contains(word, "/") {
		if ok, err := path.Match(base, "git"); err == nil && ok {
			return nil, true
		}
	}
	if name, ok := strings.CutPrefix(base, "git-"); ok && (IsGitCommand(name) || cmdline.In(companions, name)) {
		return []string{name}, true
	}
	return nil, false
}

// Git decides on one git command.
func (j *Judge) Git(cmd Command) Ran {
	if len(cmd.Argv) > 0 {
		name, _ := Program(cmd.Argv[0])
		cmd.Argv = slices.Concat([]string{"git"}, name, cmd.Argv[1:])
	}
	k := j.call(cmd)
	seen := map[string]bool{}
	for {
		switch {
		case k.name == "":
			j.Step(k.text(), "git alone prints its usage")
			return Ran{}
		case !cmdline.Known(k.name):
			j.Undecided(k.text(), "which git command this is")
			return Ran{}
		case IsGitCommand(k.name) || cmdline.In(companions, k.name):
			k.classify()
			return Ran{Name: k.name, Args: k.args, Dir: k.dir, GitDir: k.gitDir}
		case seen[k.name] || len(seen) > 20:
			j.Step(k.text(), "an alias that calls itself fails")
			return Ran{}
		}
		seen[k.name] = true
		next, out := k.unlisted()
		if next == nil {
			return Ran{Output: out}
		}
		k = next
	}
}

func (k *call) text() string { return strings.Join(k.cmd.Argv, " ") }

// globalsWithValue are the global options that take the next word when no value is
// glued on with "=".
const globalsWithValue = `-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source
 --shallow-file`

// call follows handle_options of git.c: global options cannot be cut short, and -h
// or --version as a command end in help. What the configuration has git start is
// followed.
func (j *Judge) call(cmd Command) *call {
	k := &call{Judge: j, cmd: cmd, dir: cmd.Dir}
	k.readEnv()
	rest := cmd.Argv[min(1, len(cmd.Argv)):]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		name, value, glued := strings.Cut(rest[0], "=")
		took := 1
		if cmdline.In(globalsWithValue, name) && !glued {
			if len(rest) < 2 {
				return k
			}
			value, took = rest[1], 2
		}
		switch name {
		case "-h", "--help", "-v", "--version", "--html-path", "--man-path", "--info-path", "--list-cmds":
			k.name = "help"
			return k
		case "--exec-path":
			if !glued {
				k.name = "help"
				return k
			}
		case "-C":
			k.dir = cmdline.Under(k.dir, value)
		case "-c":
			k.config = append(k.config, configEntry(value))
		case "--config-env":
			if key, env, ok := strings.Cut(value, "="); ok {
				text, set := j.lookup(cmd.Place, env)
				if !set {
					text = cmdline.Open(cmdline.Any, env)
				}
				k.config = append(k.config, entry{key, text})
			}
		case "--git-dir":
			k.gitDir = cmdline.Under(k.dir, value)
		case "--work-tree":
			k.workTree = cmdline.Under(k.dir, value)
		}
		k.globals = append(k.globals, rest[:took]...)
		rest = rest[took:]
	}
	if len(rest) > 0 {
		k.name, k.args = rest[0], rest[1:]
	}
	k.configured()
	return k
}

func configEntry(text string) entry {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		value = "true"
	}
	return entry{key, value}
}

// readEnv reads the variables by which configuration and repository reach git.
func (k *call) readEnv() {
	env := func(name string) string {
		v, _ := k.lookup(k.cmd.Place, name)
		return v
	}
	if v := env("GIT_DIR"); v != "" {
		k.gitDir = cmdline.Under(k.cmd.Dir, v)
	}
	if v := env("GIT_WORK_TREE"); v != "" {
		k.workTree = cmdline.Under(k.cmd.Dir, v)
	}
	n, _ := strconv.Atoi(env("GIT_CONFIG_COUNT"))
	for i := range min(n, 256) {
		k.config = append(k.config, entry{env("GIT_CONFIG_KEY_" + strconv.Itoa(i)),
			env("GIT_CONFIG_VALUE_" + strconv.Itoa(i))})
	}
	for _, w := range cmdline.Split(env("GIT_CONFIG_PARAMETERS")) { // 'key=value' (old) or 'key'='value'
		k.config = append(k.config, configEntry(w))
	}
}

// setting looks a key up: the command line and environment first, then the files
// that the text wrote and makes git read, then the repository and the user's files
// through the resolver.
func (k *call) setting(key string) (string, bool) {
	for _, e := range slices.Backward(k.config) {
		if strings.EqualFold(e.key, key) {
			return e.value, true
		}
	}
	if v, ok := k.written(key); ok {
		return v, true
	}
	if r, at, ok := k.resolver(); ok {
		return r.Config(k.ctx, at, key)
	}
	return "", false
}

// written looks a key up in configuration files that the text itself wrote, named by
// GIT_CONFIG_GLOBAL, HOME, or -c include.path.
func (k *call) written(key string) (value string, ok bool) {
	if len(k.Files) == 0 {
		return "", false
	}
	var files []string
	for _, from := range [][2]string{{"GIT_CONFIG_SYSTEM", ""}, {"GIT_CONFIG_GLOBAL", ""},
		{"HOME", ".config/git/config"}, {"HOME", ".gitconfig"}, {"XDG_CONFIG_HOME", "git/config"}} {
		if v, ok := k.lookup(k.cmd.Place, from[0]); ok {
			files = append(files, path.Join(v, from[1]))
		}
	}
	for _, e := range k.config {
		if strings.EqualFold(e.key, "include.path") {
			files = append(files, k.tilde(k.cmd.Place, e.value))
		}
	}
	for _, f := range files {
		section := ""
		for line := range strings.Lines(k.Files[cmdline.Under(k.cmd.Dir, f)]) {
			if head, after, found := strings.Cut(strings.TrimSpace(line), "]"); found && strings.HasPrefix(head, "[") {
				section, line = strings.ReplaceAll(strings.ReplaceAll(head[1:], ` "`, "."), `"`, ""), after
			}
			name, text, found := strings.Cut(line, "=")
			if found && strings.EqualFold(section+"."+strings.TrimSpace(name), key) {
				value, ok = strings.Trim(strings.TrimSpace(text), `"`), true
			}
		}
	}
	return value, ok
}

// resolver returns the resolver, if it can be asked about this command at all.
func (k *call) resolver() (Resolver, At, bool) {
	if !cmdline.Known(k.dir) || slices.ContainsFunc(k.globals, func(g string) bool { return !cmdline.Known(g) }) {
		return nil, At{}, false
	}
	r := k.asks()
	if r == nil {
		return nil, At{}, false
	}
	var globals []string // without -C, which At.Dir already holds, and what only prints
	for i := 0; i < len(k.globals); i++ {
		switch g := k.globals[i]; g {
		case "-C":
			i++
		case "-p", "--paginate", "-P", "--no-pager":
		default:
			globals = append(globals, g)
		}
	}
	return r, At{Dir: k.dir, Globals: globals, Env: k.gitEnv(k.cmd.Place)}, true
}

// elsewhere reports whether the command clearly acts on a repository other than
// the guarded one: one that the text itself made, or one that the resolver found
// to have another common directory.
func (k *call) elsewhere() bool {
	place := k.dir
	if k.gitDir != "" {
		place = k.gitDir
	}
	if slices.ContainsFunc(k.config, func(e entry) bool { return strings.EqualFold(e.key, "core.worktree") }) {
		return false
	}
	if !k.foreign(place) {
		return false
	}
	// A foreign git dir with the guarded tree still writes into the tree.
	return k.workTree == "" || k.foreign(k.workTree)
}

func (k *call) foreign(place string) bool {
	if k.Fresh(place) {
		return true
	}
	r, at, ok := k.resolver()
	if k.in.Guarded == "" || !ok {
		return false
	}
	if place != k.gitDir && place != k.dir { // a work tree given by itself
		at = At{Dir: place}
	}
	common, ok := r.Repository(k.ctx, at)
	return ok && common != k.in.Guarded
}

// unlisted follows a name that is no command of git's: a program git-NAME, an
// alias, or a misspelling that help.autocorrect would put right. next is nil when
// there is nothing more to read; out is what an alias's own shell prints.
func (k *call) unlisted() (next *call, out string) {
	r, at, asked := k.resolver()
	if asked && r.External(k.ctx, at, k.name) == Yes {
		k.Undecided(k.text(), "git-"+k.name+" is a program of its own, it runs guarded")
		return nil, ""
	}
	if value, ok := k.setting("alias." + k.name); ok {
		return k.alias(value)
	}
	if to := k.autocorrect(); to != "" {
		k.Step(k.text(), "help.autocorrect runs it as "+to)
		n := *k
		n.name = to
		return &n, ""
	}
	if asked {
		k.Step(k.text(), "no such git command, git fails by itself")
	} else {
		k.Undecided(k.text(), "no command of git's; an alias or a program of its own")
	}
	return nil, ""
}

// alias expands one alias: "!text" goes to a shell, anything else is words
// before the arguments, global options included.
func (k *call) alias(value string) (next *call, out string) {
	if !cmdline.Known(value) {
		k.Undecided(k.text(), "an alias with an unknown value")
		return nil, ""
	}
	k.Step(k.text(), "alias: "+value)
	if line, ok := strings.CutPrefix(value, "!"); ok {
		if len(k.args) > 0 {
			line += ` "$@"`
		}
		return nil, k.start(Start{Line: line, Params: k.args})
	}
	// -C was applied once; reading the globals again applies it again to the
	// same starting directory, so the result is the same.
	cmd := k.cmd
	cmd.Argv = slices.Concat([]string{"git"}, k.globals, cmdline.Split(value), k.args)
	return k.Judge.call(cmd), ""
}

// start hands something on, with the directory that git would give it, and to an
// alias's shell the configuration too.
func (k *call) start(s Start) string {
	if k.cmd.Follow == nil {
		k.Undecided(strings.Join(append([]string{s.Line}, s.Argv...), " "), "git starts it")
		return ""
	}
	s.Place = k.cmd.Place
	s.Dir = k.dir
	if len(k.config) > 0 && s.Note == "" { // an alias
		var b strings.Builder
		for _, e := range k.config {
			b.WriteString("'" + strings.ReplaceAll(e.key+"="+e.value, "'", `'\''`) + "' ")
		}
		s.Set = append(slices.Clone(s.Set), "GIT_CONFIG_PARAMETERS="+b.String(), "GIT_CONFIG_COUNT")
	}
	return k.cmd.Follow(s)
}

// execKeys are configuration keys whose value git hands to a shell or runs; "*"
// stands for a subsection. Source: git-config(1) of 2.39 to 2.51.
const execKeys = `core.pager core.editor core.sshcommand core.askpass core.fsmonitor core.gitproxy
 core.alternaterefscommand sequence.editor diff.external diff.*.command diff.*.textconv difftool.*.cmd mergetool.*.cmd
 merge.*.driver filter.*.clean filter.*.smudge filter.*.process interactive.difffilter pager.* credential.helper
 credential.*.helper gpg.program gpg.*.program trailer.*.cmd trailer.*.command uploadpack.packobjectshook
 remote.*.uploadpack remote.*.receivepack remote.*.vcs browser.*.cmd man.*.cmd guitool.*.cmd submodule.*.update
 sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd init.templatedir web.browser`

// execVariables are the variables that do the same.
const execVariables = `GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER PAGER EDITOR VISUAL GIT_EXTERNAL_DIFF GIT_SSH_COMMAND
 GIT_SSH GIT_ASKPASS GIT_PROXY_COMMAND GIT_DIFFTOOL_EXTCMD`

// editing are the commands that open an editor.
const editing = `commit tag branch rebase config notes merge revert cherry-pick am add replace send-email pull
 bugreport reset checkout restore stash`

// configured follows commands that reach git through -c or through variables that
// the text sets. Plain programs ("less -R", "true") are passed over: what cannot
// start git or write its files has no "git" in it.
func (k *call) configured() {
	follow := func(name, line string) {
		edits := strings.HasSuffix(strings.ToLower(name), "editor") || name == "VISUAL"
		if cmdline.Known(line) && strings.Contains(line, "git") && (!edits || cmdline.In(editing, k.name)) {
			k.start(Start{Line: strings.TrimPrefix(line, "!"), Note: name + " is run by git"})
		}
	}
	for _, e := range k.config {
		if isExecKey(e.key) {
			follow(e.key, e.value)
		}
	}
	for _, kv := range k.cmd.Set {
		if name, value, _ := strings.Cut(kv, "="); cmdline.In(execVariables, name) {
			follow(name, value)
		}
	}
}

func isExecKey(key string) bool {
	key = strings.ToLower(key)
	for pattern := range strings.FieldsSeq(execKeys) {
		before, after, any := strings.Cut(pattern, "*")
		if key == pattern || any && len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) &&
			strings.HasSuffix(key, after) {
			return true
		}
	}
	return false
}
